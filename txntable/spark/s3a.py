"""Spark's own S3 client, Hadoop's S3A: its libraries, and its settings made from our storage options.

Owns which libraries are fetched (a small part of the AWS SDK in place of its bundle of 650 MB), and that S3A and our
own client go by the same options: keys, profile, role, endpoint, region.  Settings are those of one bucket, so that
a session may use others with other keys.  Needs no Spark to be asked; works without a JVM.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from txntable.errors import InvalidRequestError, MissingDependencyError
from txntable.storage.aws_configuration import configured_endpoint, configured_session, endpoint_without_bucket
from txntable.storage.aws_session import open_session
from txntable.storage.storage_options import ClientSettings, parse_options

EXCLUDES = (
    # 650 MB; of it, S3A uses what the modules below hold
    "software.amazon.awssdk:bundle",
    "org.wildfly.openssl:wildfly-openssl",
    # Spark has these, newer
    "io.netty:*",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "org.apache.httpcomponents:*",
    "com.google.code.findbugs:jsr305",
)
"""What S3A's libraries would bring and a session does without, for ``spark.jars.excludes``."""

# The AWS SDK that each Hadoop was built and tested with.
_SDK_OF_HADOOP = {"3.4.2": "2.29.52", "3.5.0": "2.35.4"}
_SDK_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client")
_CLIENT_JAR = "hadoop-client-api-"

_SCHEMES = frozenset({"s3", "s3a"})
_S3A_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_HADOOP = "org.apache.hadoop.fs.s3a."
_AWS = "software.amazon.awssdk.auth.credentials."
_ENCRYPTIONS = {"AES256": "AES256", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS", "sse-c": "SSE-C"}
_SECRETS = ("access.key", "secret.key", "session.token", "encryption.key", "proxy.password")
_ROLE_SESSION = "txntable"
# The AWS SDK's names for the same thing: of variables, of options, of properties of the JVM.
_WEB_IDENTITY = {
    "AWS_WEB_IDENTITY_TOKEN_FILE": "web_identity_token_file",
    "AWS_ROLE_ARN": "role_arn",
    "AWS_ROLE_SESSION_NAME": "role_session_name",
}
_PROPERTIES = {
    "AWS_WEB_IDENTITY_TOKEN_FILE": "aws.webIdentityTokenFile",
    "AWS_ROLE_ARN": "aws.roleArn",
    "AWS_ROLE_SESSION_NAME": "aws.roleSessionName",
    "AWS_REGION": "aws.region",
    "AWS_ENDPOINT_URL_STS": "aws.endpointUrlSts",
    "AWS_PROFILE": "aws.profile",
}


def s3a_packages() -> tuple[str, ...]:
    """Return the Maven coordinates of S3A for the Hadoop that this Spark brings; none when it brings S3A as well.

    Raises
    ------
    MissingDependencyError
        There is no Spark, or its Hadoop is one whose libraries are not known here: bring S3A yourself.
    """
    jars = _folder_of_jars()
    if any(jars.glob("hadoop-aws-*.jar")):
        return ()
    found = [path.stem.removeprefix(_CLIENT_JAR) for path in jars.glob(f"{_CLIENT_JAR}*.jar")]
    hadoop = found[0] if found else "none"
    sdk = _SDK_OF_HADOOP.get(hadoop)
    if sdk is None:
        raise MissingDependencyError(
            "it is not known which libraries let this spark read s3; put hadoop-aws of its hadoop version on its class"
            " path",
            hadoop=hadoop,
            known=",".join(_SDK_OF_HADOOP),
        )
    modules = (f"software.amazon.awssdk:{module}:{sdk}" for module in _SDK_MODULES)
    return f"org.apache.hadoop:hadoop-aws:{hadoop}", *modules


def s3a_settings(url: str, storage_options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings of a Spark session that reads and writes a bucket, under ``s3://`` and ``s3a://``.

    :func:`txntable.spark.session.build_session` does so for one warehouse.  Beside S3A's options these are
    ``spark.jars.packages``, and where a profile, a role or a web identity is named, what the JVM's process is told of
    it; neither of these for a driver that spark-submit has started.  Keys are among them where the options have keys.

    Parameters
    ----------
    url : str
        Of a warehouse, or of anything in the bucket; a url of another store needs no settings of S3A: there are none.
    storage_options : Mapping[str, str], optional
        As for :meth:`txntable.Warehouse.open`.

    Raises
    ------
    InvalidRequestError
        The URL names no bucket.
    InvalidConfigError
        A storage option is unknown or unusable.
    MissingDependencyError
        As :func:`s3a_packages`.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        return {}
    if not parts.netloc:
        raise InvalidRequestError("the url names no bucket; write s3://bucket/prefix", url=url)
    settings = parse_options("s3", storage_options or {})
    of_bucket = {**_connection(settings, parts.netloc), **_encryption(settings), **_credentials(settings)}
    return {
        "spark.hadoop.fs.s3.impl": _S3A_FILE_SYSTEM,
        **{f"spark.hadoop.fs.s3a.bucket.{parts.netloc}.{name}": value for name, value in of_bucket.items()},
        **_of_processes(settings),
        **_libraries(),
    }


def is_secret(name: str) -> bool:
    """Return whether a setting of :func:`s3a_settings` holds what nobody else may see."""
    return name.startswith("spark.hadoop.") and name.endswith(_SECRETS)


def _libraries() -> dict[str, str]:
    packages = () if has_jvm() else s3a_packages()
    return {"spark.jars.packages": ",".join(packages)} if packages else {}


def has_jvm() -> bool:
    """Return whether spark-submit started this process: its JVM has a class path and properties already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _folder_of_jars() -> Path:
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("spark is not installed; pip install 'txntable[spark]'", missing="pyspark")
    return Path(spec.origin).parent / "jars"


def _connection(settings: ClientSettings, bucket: str) -> dict[str, str]:
    session = configured_session(settings)
    found = {
        "endpoint.region": str(session.get_config_variable("region")),
        "path.style.access": "false" if settings.flag("virtual_hosted_style_request") else "true",
    }
    endpoint = configured_endpoint(settings, session)
    if endpoint is not None:
        found["endpoint"] = endpoint_without_bucket(endpoint, bucket)
        found["connection.ssl.enabled"] = "false" if endpoint.lower().startswith("http://") else "true"
    if settings.flag("request_payer"):
        found["requester.pays.enabled"] = "true"
    for name, option in (("connection.establish.timeout", "connect_timeout"), ("connection.timeout", "read_timeout")):
        if option in settings.client:
            found[name] = settings.client[option]
    return found | _proxy(settings)


def _proxy(settings: ClientSettings) -> dict[str, str]:
    if "proxy_url" not in settings.client:
        return {}
    proxy = urlsplit(settings.client["proxy_url"])
    encrypted = proxy.scheme == "https"
    found = {
        "proxy.host": proxy.hostname or "",
        "proxy.port": str(proxy.port or (443 if encrypted else 80)),
        "proxy.ssl.enabled": "true" if encrypted else "false",
    }
    if proxy.username is not None:
        found |= {"proxy.username": unquote(proxy.username), "proxy.password": unquote(proxy.password or "")}
    return found


def _encryption(settings: ClientSettings) -> dict[str, str]:
    kind = settings.store.get("server_side_encryption")
    if kind is None:
        return {}
    key = settings.store.get("sse_customer_key_base64" if kind == "sse-c" else "sse_kms_key_id")
    return {"encryption.algorithm": _ENCRYPTIONS[kind], **({} if key is None else {"encryption.key": key})}


def _credentials(settings: ClientSettings) -> dict[str, str]:
    """Return S3A's way to the keys that our own client finds with the same options."""
    # Refuses what contradicts itself; nothing is asked of AWS.
    open_session(settings)
    options = settings.store
    if settings.flag("skip_signature"):
        return {"aws.credentials.provider": f"{_HADOOP}AnonymousAWSCredentialsProvider"}
    if _has_web_identity(options):
        return {"aws.credentials.provider": f"{_AWS}WebIdentityTokenFileCredentialsProvider"}
    keys = {}
    if "access_key_id" in options:
        provider = f"{_HADOOP}SimpleAWSCredentialsProvider"
        keys = {"access.key": options["access_key_id"], "secret.key": options["secret_access_key"]}
        if "session_token" in options:
            provider = f"{_HADOOP}TemporaryAWSCredentialsProvider"
            keys["session.token"] = options["session_token"]
    elif "profile" in options:
        provider = f"{_AWS}ProfileCredentialsProvider"
    else:
        provider = f"{_AWS}DefaultCredentialsProvider"
    if "role_arn" not in options:
        return {**keys, "aws.credentials.provider": provider}
    return {**keys, **_role(settings), "assumed.role.credentials.provider": provider}


def _role(settings: ClientSettings) -> dict[str, str]:
    options = settings.store
    endpoint, region, is_plain = _security_token_service(settings)
    found = {
        "aws.credentials.provider": f"{_HADOOP}auth.AssumedRoleCredentialProvider",
        "assumed.role.arn": options["role_arn"],
        "assumed.role.session.name": options.get("role_session_name", _ROLE_SESSION),
    }
    if "external_id" in options:
        found["assumed.role.external.id"] = options["external_id"]
    if is_plain:
        found |= {"assumed.role.sts.endpoint": urlsplit(endpoint).netloc, "assumed.role.sts.endpoint.region": region}
    return found


def _has_web_identity(options: Mapping[str, str]) -> bool:
    """Return whether a token file, named by an option or by the environment, is what comes first in boto3's chain."""
    if "web_identity_token_file" in options:
        return True
    if "AWS_WEB_IDENTITY_TOKEN_FILE" not in os.environ or {"access_key_id", "profile"} & options.keys():
        return False
    if "role_arn" in options:
        return "AWS_ROLE_ARN" not in os.environ
    return "AWS_ROLE_ARN" in os.environ and not {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"} & os.environ.keys()


def _security_token_service(settings: ClientSettings) -> tuple[str, str, bool]:
    """Return its endpoint and region, and whether S3A takes that: https, and no port."""
    session = configured_session(settings)
    # Of no account: without them it would look for some, and all that is asked of it is where it would go.
    keys = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
    client = session.create_client("sts", endpoint_url=settings.store.get("sts_endpoint"), **keys)
    parts = urlsplit(client.meta.endpoint_url)
    is_plain = parts.scheme == "https" and parts.port is None and not parts.path.strip("/")
    return client.meta.endpoint_url, client.meta.region_name, is_plain


def _of_processes(settings: ClientSettings) -> dict[str, str]:
    """Return what the AWS SDK takes from its process only: the driver's JVM has properties, executors variables."""
    options = settings.store
    named = {}
    if _has_web_identity(options) or "role_arn" in options:
        endpoint, region, is_plain = _security_token_service(settings)
        if _has_web_identity(options):
            named = {variable: options[name] for variable, name in _WEB_IDENTITY.items() if name in options}
        if _has_web_identity(options) or not is_plain:
            named["AWS_REGION"] = region
        if not is_plain:
            named["AWS_ENDPOINT_URL_STS"] = endpoint
    if "profile" in options and "access_key_id" not in options:
        named["AWS_PROFILE"] = options["profile"]
    found = {f"spark.executorEnv.{variable}": value for variable, value in named.items()}
    if named and not has_jvm():
        properties = (shlex.quote(f"-D{_PROPERTIES[variable]}={value}") for variable, value in named.items())
        found["spark.driver.extraJavaOptions"] = " ".join(properties)
    return found
