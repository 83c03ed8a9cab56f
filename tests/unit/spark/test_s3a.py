"""What Spark's S3 client is told of our storage options, and which libraries it gets; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from txntable.errors import InvalidConfigError, InvalidRequestError, MissingDependencyError
from txntable.spark.s3a import is_secret, s3a_packages, s3a_settings

KEYS = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "hidden"}
ROLE = "arn:aws:iam::123456789012:role/reader"
HADOOP = "org.apache.hadoop.fs.s3a."
AWS = "software.amazon.awssdk.auth.credentials."


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Spark without S3A and without a Hadoop yet."""
    folder = tmp_path / "jars"
    folder.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    return folder


def of_bucket(options: dict[str, str]) -> dict[str, str]:
    prefix = "spark.hadoop.fs.s3a.bucket.lake."
    settings = s3a_settings("s3://lake/wh", options)
    return {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}


@pytest.mark.parametrize(("hadoop", "sdk"), [("3.4.2", "2.29.52"), ("3.5.0", "2.35.4")])
def test_libraries_are_those_of_the_hadoop_that_spark_brings(jars: Path, hadoop: str, sdk: str) -> None:
    (jars / f"hadoop-client-api-{hadoop}.jar").touch()

    packages = s3a_packages()

    assert packages[0] == f"org.apache.hadoop:hadoop-aws:{hadoop}"
    assert f"software.amazon.awssdk:sts:{sdk}" in packages


def test_no_library_is_fetched_when_spark_brings_s3a(jars: Path) -> None:
    (jars / "hadoop-aws-3.4.1-vendor.jar").touch()

    assert s3a_packages() == ()


@pytest.mark.parametrize("name", ["hadoop-client-api-3.9.9.jar", "other.jar"])
def test_libraries_are_refused_for_a_hadoop_that_nobody_knows(jars: Path, name: str) -> None:
    (jars / name).touch()

    with pytest.raises(MissingDependencyError, match="hadoop-aws") as refused:
        s3a_packages()

    assert refused.value.facts["known"] == "3.4.2,3.5.0"


def test_no_library_is_named_when_spark_submit_has_started_the_jvm(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    settings = s3a_settings("s3://lake/wh", KEYS)

    assert [name for name in settings if not name.startswith("spark.hadoop.")] == []


@pytest.mark.parametrize(
    ("options", "provider"),
    [
        ({}, f"{AWS}DefaultCredentialsProvider"),
        (KEYS, f"{HADOOP}SimpleAWSCredentialsProvider"),
        ({**KEYS, "aws_session_token": "t"}, f"{HADOOP}TemporaryAWSCredentialsProvider"),
        ({"skip_signature": "true"}, f"{HADOOP}AnonymousAWSCredentialsProvider"),
        ({**KEYS, "role_arn": ROLE}, f"{HADOOP}auth.AssumedRoleCredentialProvider"),
        ({"role_arn": ROLE, "web_identity_token_file": "/token"}, f"{AWS}WebIdentityTokenFileCredentialsProvider"),
    ],
)
def test_credentials_come_from_where_the_options_say(options: dict[str, str], provider: str) -> None:
    assert of_bucket(options)["aws.credentials.provider"] == provider


@pytest.mark.parametrize(
    ("environment", "options", "is_web_identity"),
    [
        ({"AWS_ROLE_ARN": ROLE}, {}, True),
        ({}, {"role_arn": ROLE}, True),
        ({"AWS_ROLE_ARN": ROLE}, {"role_arn": ROLE}, False),
        ({"AWS_ROLE_ARN": ROLE}, KEYS, False),
        ({"AWS_ROLE_ARN": ROLE, "AWS_ACCESS_KEY_ID": "AKIA"}, {}, False),
        ({}, {}, False),
    ],
)
def test_web_identity_of_the_environment_counts_in_the_order_of_boto3(
    environment: dict[str, str], options: dict[str, str], is_web_identity: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", **environment}.items():
        monkeypatch.setenv(name, value)

    assert ("WebIdentity" in of_bucket(options)["aws.credentials.provider"]) == is_web_identity


def test_role_is_assumed_with_the_keys_of_the_options_at_the_service_of_the_region() -> None:
    settings = of_bucket({**KEYS, "role_arn": ROLE, "external_id": "x", "region": "eu-west-1"})

    assert settings["assumed.role.credentials.provider"] == f"{HADOOP}SimpleAWSCredentialsProvider"
    assert settings["assumed.role.arn"] == ROLE
    assert settings["assumed.role.external.id"] == "x"
    assert settings["assumed.role.sts.endpoint"] == "sts.eu-west-1.amazonaws.com"
    assert settings["assumed.role.sts.endpoint.region"] == "eu-west-1"


def test_profile_is_told_to_the_process_of_the_driver_and_of_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile lake]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    settings = s3a_settings("s3://lake/wh", {"profile": "lake"})

    assert settings["spark.driver.extraJavaOptions"] == "-Daws.profile=lake"
    assert settings["spark.executorEnv.AWS_PROFILE"] == "lake"
    assert settings["spark.hadoop.fs.s3a.bucket.lake.endpoint.region"] == "eu-west-1"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"endpoint": "http://h:1", "allow_http": "true"},
            {"endpoint": "http://h:1", "connection.ssl.enabled": "false"},
        ),
        ({"endpoint": "https://h"}, {"endpoint": "https://h", "path.style.access": "true"}),
        ({"endpoint": "https://lake.h", "virtual_hosted_style_request": "true"}, {"endpoint": "https://h"}),
        ({"request_payer": "true"}, {"requester.pays.enabled": "true"}),
        ({"sse_kms_key_id": "k"}, {"encryption.algorithm": "SSE-KMS", "encryption.key": "k"}),
        ({"connect_timeout": "20"}, {"connection.establish.timeout": "20s"}),
        ({"proxy_url": "http://u:p@h:3"}, {"proxy.host": "h", "proxy.port": "3", "proxy.password": "p"}),
    ],
)
def test_connection_is_that_of_our_own_client(options: dict[str, str], expected: dict[str, str]) -> None:
    assert expected.items() <= of_bucket(options).items()


def test_only_keys_are_secret() -> None:
    settings = s3a_settings("s3://lake/wh", {**KEYS, "aws_session_token": "t", "proxy_url": "http://u:p@h:3"})

    found = {name.rpartition("lake.")[2] for name in settings if is_secret(name)}
    assert found == {"access.key", "secret.key", "session.token", "proxy.password"}


def test_other_stores_need_no_settings() -> None:
    assert s3a_settings("/data/wh") == s3a_settings("gs://lake/wh") == {}


def test_settings_are_refused_when_the_url_has_no_bucket_or_an_option_is_unknown() -> None:
    with pytest.raises(InvalidRequestError, match="bucket"):
        s3a_settings("s3:///wh")
    with pytest.raises(InvalidConfigError, match="no such storage option"):
        s3a_settings("s3://lake", {"secret": "hidden"})
