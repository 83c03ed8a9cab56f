"""Storage options: the usual names, made into what obstore takes; and where S3's keys come from.

Owns which options there are.  Values are secrets: they are never printed, only names are.
Keys that are not given for ``s3://`` come from boto3's chain (environment, profile, single
sign-on, container, instance), asked again before they expire.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from obstore.auth.boto3 import Boto3CredentialProvider

from txntable.errors import InvalidConfigError, StorePermissionError

# botocore renews what has less than 10 minutes left; kept any longer than that, keys expire in our hands
_KEPT = timedelta(minutes=8)

_CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "read_timeout", "root_certificate"}
    | {"timeout", "user_agent"}
)
_S3_OPTIONS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "region", "endpoint", "checksum_algorithm"}
    | {"conditional_put", "container_credentials_relative_uri", "container_credentials_full_uri"}
    | {"container_authorization_token_file", "imdsv1_fallback", "metadata_endpoint", "request_payer", "role_arn"}
    | {"role_session_name", "server_side_encryption", "skip_signature", "sse_bucket_key_enabled"}
    | {"sse_customer_key_base64", "sse_kms_key_id", "sts_endpoint", "unsigned_payload"}
    | {"virtual_hosted_style_request", "web_identity_token_file"}
)
_GCS_OPTIONS = frozenset(
    {"service_account", "service_account_key", "application_credentials", "base_url", "bearer_token", "skip_signature"}
)
_AZURE_OPTIONS = frozenset(
    {"account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host", "sas_key", "token"}
    | {"endpoint", "msi_endpoint", "object_id", "msi_resource_id", "federated_token_file", "use_azure_cli"}
    | {"use_emulator", "skip_signature"}
)
_ALIASES = {
    "s3": {"endpoint_url": "endpoint", "endpoint_url_s3": "endpoint", "token": "session_token"}
    | {"default_region": "region"},
    "gs": {"service_account_path": "service_account"},
    "az": {"access_key": "account_key", "sas_token": "sas_key"},
}
_KNOWN = {"s3": _S3_OPTIONS, "gs": _GCS_OPTIONS, "az": _AZURE_OPTIONS, "memory": frozenset[str]()}
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_"), "memory": ()}
_S3_OTHER_CREDENTIALS = frozenset(
    {"access_key_id", "skip_signature", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Storage options, checked and sorted.

    Attributes
    ----------
    store : Mapping[str, str]
        Region, endpoint, keys: obstore's ``config``.
    client : Mapping[str, str]
        Timeouts, proxies: obstore's ``client_options``.
    max_retries : int
        How often a request that failed is sent again, commits excepted.
    """

    store: Mapping[str, str]
    client: Mapping[str, str]
    max_retries: int = 8

    def __repr__(self) -> str:
        return f"ClientSettings({sorted(self.store)}, {sorted(self.client)}, max_retries={self.max_retries})"


def parse_options(kind: str, options: Mapping[str, str]) -> ClientSettings:
    """Return the settings that the user's storage options mean.

    Parameters
    ----------
    kind : str
        ``"s3"``, ``"gs"``, ``"az"`` or ``"memory"``.
    options : Mapping[str, str]
        In any case, with or without ``aws_``, ``google_``, ``azure_storage_``, ``azure_``.

    Raises
    ------
    InvalidConfigError
        An option is unknown, or given twice; the message names the nearest one.
    """
    store: dict[str, str] = {}
    client: dict[str, str] = {}
    retries = ClientSettings({}, {}).max_retries
    for given, value in options.items():
        name = _canonical(kind, given)
        target = client if name in _CLIENT_OPTIONS else store
        if name in target:
            raise InvalidConfigError("a storage option is given twice; leave one out", option=given, same_as=name)
        if name == "max_retries":
            retries = _whole_number(given, value)
        elif name in _CLIENT_OPTIONS or name in _KNOWN[kind]:
            target[name] = str(value)
        else:
            raise _unknown(kind, given, name)
    return ClientSettings(store, client, retries)


def s3_credentials(settings: ClientSettings) -> Any | None:
    """Return where obstore gets S3's keys from, or ``None`` when the options say it themselves.

    Raises
    ------
    StorePermissionError
        boto3 finds no credentials; the message says how to give some.
    """
    if _S3_OTHER_CREDENTIALS & settings.store.keys():
        return None
    try:
        return Boto3CredentialProvider(ttl=_KEPT)
    except ValueError as error:
        raise StorePermissionError(
            "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, or pass "
            "aws_access_key_id and aws_secret_access_key as storage options"
        ) from error


def _canonical(kind: str, given: str) -> str:
    name = given.lower()
    for prefix in _PREFIXES[kind]:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return _ALIASES.get(kind, {}).get(name, name)


def _whole_number(given: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise InvalidConfigError("a storage option must be a whole number", option=given) from error


def _unknown(kind: str, given: str, name: str) -> InvalidConfigError:
    known = sorted(_KNOWN[kind] | _CLIENT_OPTIONS | {"max_retries"})
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return InvalidConfigError(
        "there is no such storage option; correct its name",
        option=given,
        nearest=",".join(near) or None,
        known=None if near else ",".join(known),
    )
