"""What AWS's own tools would use here: region, endpoint, certificates, profile.

Owns the order: an option, then the environment, then the profile.  boto3 and obstore are both
given what was found, so that they agree.  Must not know credentials.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from botocore.config import Config  # noqa: TID251
from botocore.exceptions import BotoCoreError  # noqa: TID251
from botocore.session import Session  # noqa: TID251

from txntable.errors import InvalidConfigError
from txntable.storage.storage_options import ClientSettings

_FALLBACK_REGION = "us-east-1"
_PEM = "-----BEGIN CERTIFICATE-----"


def configured_session(settings: ClientSettings) -> Session:
    """Return a botocore session whose clients go by the options; it has no keys of its own yet.

    Raises
    ------
    InvalidConfigError
        There is no such profile, or AWS's configuration file cannot be read: correct it.
    """
    session = Session(profile=settings.store.get("profile"))
    try:
        # A profile that is not there shows here, whatever else says the region.
        session.get_scoped_config()
        region = settings.store.get("region") or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    except BotoCoreError as error:
        raise InvalidConfigError("the AWS configuration cannot be used; correct it", reason=str(error)) from error
    session.set_config_variable("region", region or _FALLBACK_REGION)
    given = settings.client.get("root_certificate")
    if settings.flag("allow_invalid_certificates"):
        session.set_config_variable("ca_bundle", False)
    elif given is not None:
        if _PEM in given:
            raise InvalidConfigError("give the path of the certificates' file", option="root_certificate")
        session.set_config_variable("ca_bundle", given)
    session.set_default_client_config(Config(**_client_config(settings)))
    return session


def configured_endpoint(settings: ClientSettings, session: Session) -> str | None:
    """Return S3's endpoint, or ``None`` where it is AWS's own.

    Raises
    ------
    InvalidConfigError
        It is not encrypted, and the options do not allow that.
    """
    return checked_endpoint(settings, settings.store.get("endpoint") or _endpoint_of_machine(session))


def checked_endpoint(settings: ClientSettings, endpoint: str | None) -> str | None:
    """Return the endpoint of a service.

    Raises
    ------
    InvalidConfigError
        It is not encrypted, and the options do not allow that.
    """
    allowed = settings.flag("allow_http") or os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"true", "1"}
    if endpoint is not None and endpoint.lower().startswith("http://") and not allowed:
        raise InvalidConfigError(
            "the endpoint is not encrypted; take https, or say allow_http=true where that is meant", option="endpoint"
        )
    return endpoint


def endpoint_with_bucket(endpoint: str, bucket: str) -> str:
    """Return the endpoint as virtual-hosted requests need it, the bucket in its host."""
    scheme, _, host = endpoint.partition("://")
    return endpoint if host.startswith(f"{bucket}.") else f"{scheme}://{bucket}.{host}"


def endpoint_without_bucket(endpoint: str, bucket: str) -> str:
    """Return the endpoint as boto3 takes it: it puts the bucket before the host itself."""
    return endpoint.replace(f"://{bucket}.", "://", 1)


def certificates(settings: ClientSettings, session: Session | None = None) -> bytes | None:
    """Return the certificates to trust beside the system's, or ``None`` when none are named.

    Raises
    ------
    InvalidConfigError
        The file cannot be read.
    """
    named = settings.client.get("root_certificate") or (session and session.get_config_variable("ca_bundle"))
    if not named:
        return None
    if _PEM in named:
        return str(named).encode()
    try:
        return Path(named).read_bytes()
    except OSError as error:
        raise InvalidConfigError(
            "the certificates cannot be read; correct root_certificate or AWS_CA_BUNDLE", reason=error.strerror
        ) from error


def _endpoint_of_machine(session: Session) -> str | None:
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    profile = session.get_scoped_config()
    services = session.full_config.get("services", {}).get(profile.get("services"), {})
    found: str | None = (
        os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or services.get("s3", {}).get("endpoint_url")
        or profile.get("endpoint_url")
    )
    return found


def _client_config(settings: ClientSettings) -> dict[str, Any]:
    config: dict[str, Any] = {}
    connect, read = settings.seconds("connect_timeout"), settings.seconds("read_timeout") or settings.seconds("timeout")
    if connect is not None:
        config["connect_timeout"] = connect
    if read is not None:
        config["read_timeout"] = read
    if "proxy_url" in settings.client:
        config["proxies"] = dict.fromkeys(("http", "https"), settings.client["proxy_url"])
    return config
