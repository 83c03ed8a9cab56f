"""Storage options: the usual names and values, made into one form.

Owns which options there are and what their values may be.  Values are secrets: they are never
printed, only names are.  What is left unsaid here may still come from the machine
(``aws_session``: environment, profiles).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from txntable.errors import InvalidConfigError
from txntable.format.near_names import about_nearest
from txntable.storage.retries import DEFAULT_RETRY_TIMEOUT_MS

_CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "read_timeout", "root_certificate"}
    | {"timeout", "user_agent"}
)
_S3_OPTIONS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "region", "endpoint", "checksum_algorithm"}
    | {"conditional_put", "external_id", "profile", "request_payer", "role_arn", "role_session_name"}
    | {"server_side_encryption", "skip_signature", "sse_bucket_key_enabled", "sse_customer_key_base64"}
    | {"sse_kms_key_id", "sts_endpoint", "unsigned_payload", "virtual_hosted_style_request", "web_identity_token_file"}
)
_GCS_OPTIONS = frozenset(
    {"service_account", "service_account_key", "application_credentials", "base_url", "bearer_token", "skip_signature"}
)
_AZURE_OPTIONS = frozenset(
    {"account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host", "sas_key", "token"}
    | {"endpoint", "msi_endpoint", "object_id", "msi_resource_id", "federated_token_file", "use_azure_cli"}
    | {"use_emulator", "skip_signature"}
)
# names of boto3, deltalake and others for the same thing
_ALIASES = {
    "s3": {"endpoint_url": "endpoint", "endpoint_url_s3": "endpoint", "token": "session_token"}
    | {"default_region": "region", "region_name": "region", "profile_name": "profile"}
    | {"endpoint_url_sts": "sts_endpoint", "iam_role_arn": "role_arn", "s3_assume_role_arn": "role_arn"}
    | {"iam_role_session_name": "role_session_name", "s3_role_session_name": "role_session_name"}
    | {"s3_addressing_style": "addressing_style", "s3_force_path_style": "force_path_style"}
    | {"path_style_access": "force_path_style", "ca_bundle": "root_certificate"},
    "gs": {"service_account_path": "service_account"},
    "az": {"access_key": "account_key", "sas_token": "sas_key"},
}
_KNOWN = {"s3": _S3_OPTIONS, "gs": _GCS_OPTIONS, "az": _AZURE_OPTIONS, "memory": frozenset[str]()}
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_"), "memory": ()}

_TRUTHS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_ADDRESSING = {"path": "false", "virtual": "true"}
_FLAGS = frozenset(
    {"allow_http", "allow_invalid_certificates", "request_payer", "skip_signature", "virtual_hosted_style_request"}
)
_DURATIONS = frozenset({"timeout", "connect_timeout", "read_timeout", "retry_timeout"})
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_KMS = frozenset({"aws:kms", "aws:kms:dsse"})
_ENCRYPTIONS = _KMS | {"AES256", "sse-c"}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Storage options, checked and sorted.

    Attributes
    ----------
    store : Mapping[str, str]
        Region, endpoint, keys, by their plain names.
    client : Mapping[str, str]
        Timeouts, proxies: obstore's ``client_options``.  ``timeout`` is one attempt's, from the connection to the last
        byte (``30s`` unless given), ``connect_timeout`` the connection's (``5s``).
    retry_timeout_ms : int
        For how long a call is tried again whose request failed (``120s`` unless given); 0: not at all.
        :mod:`txntable.storage.retries` says after which failures, and how long it waits.  An attempt that is under way
        then still has its ``timeout``.
    """

    store: Mapping[str, str]
    client: Mapping[str, str]
    retry_timeout_ms: int = DEFAULT_RETRY_TIMEOUT_MS

    def __repr__(self) -> str:
        return f"ClientSettings({sorted(self.store)}, {sorted(self.client)}, retry_timeout_ms={self.retry_timeout_ms})"

    def flag(self, name: str) -> bool:
        """Return whether the option `name` is given and true."""
        return _TRUTHS[(self.store.get(name) or self.client.get(name) or "false").lower()]

    def seconds(self, name: str) -> float | None:
        """Return the duration that the option `name` gives, in seconds."""
        return _seconds(self.client.get(name, ""))


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
        An option is unknown, given twice, or has a value it cannot have; the message names the
        option, and of an unknown one the one that may have been meant.
    """
    store: dict[str, str] = {}
    client: dict[str, str] = {}
    retry_timeout_ms = DEFAULT_RETRY_TIMEOUT_MS
    met: set[str] = set()
    for given, text in options.items():
        name, value = _normal(given, _canonical(kind, given), str(text))
        target = client if name in _CLIENT_OPTIONS else store
        if name in met:
            raise InvalidConfigError("a storage option is given twice; leave one out", option=given, same_as=name)
        met.add(name)
        if name == "retry_timeout":
            retry_timeout_ms = round((_seconds(value) or 0) * 1000)
        elif name in _CLIENT_OPTIONS or name in _KNOWN[kind]:
            target[name] = value
        else:
            raise _unknown(kind, given, name)
    if kind == "s3":
        _complete_encryption(store)
    return ClientSettings(store, client, retry_timeout_ms)


def says_encryption(options: Mapping[str, str]) -> bool:
    """Return whether options of S3 say how objects are encrypted: who writes without them must know it, too.

    Raises
    ------
    InvalidConfigError
        See :func:`parse_options`.
    """
    return "server_side_encryption" in parse_options("s3", options).store


def _canonical(kind: str, given: str) -> str:
    name = given.lower()
    for prefix in _PREFIXES[kind]:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return _ALIASES.get(kind, {}).get(name, name)


def _normal(given: str, name: str, value: str) -> tuple[str, str]:
    """Return the option under the name and with the value that the clients know."""
    if name == "addressing_style":
        if value not in _ADDRESSING:
            raise InvalidConfigError("an addressing style is path or virtual", option=given)
        return "virtual_hosted_style_request", _ADDRESSING[value]
    if name == "force_path_style":
        return "virtual_hosted_style_request", str(not _truth(given, value)).lower()
    if name == "request_payer" and value.lower() == "requester":
        return name, "true"
    if name in _FLAGS:
        return name, str(_truth(given, value)).lower()
    if name in _DURATIONS:
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise InvalidConfigError("a duration is a whole number and ms, s, m or h, such as 30s", option=given)
        return name, f"{found[1]}{found[2] or 's'}"
    return name, value


def _seconds(value: str) -> float | None:
    found = _DURATION.fullmatch(value)
    return None if found is None else int(found[1]) * _SECONDS[found[2] or "s"]


def _truth(given: str, value: str) -> bool:
    if value.lower() not in _TRUTHS:
        raise InvalidConfigError("a storage option must be true or false", option=given)
    return _TRUTHS[value.lower()]


def _complete_encryption(store: dict[str, str]) -> None:
    """Let a key mean its kind of encryption, without which it would be left out silently."""
    kind = store.get("server_side_encryption")
    if kind is not None and kind not in _ENCRYPTIONS:
        raise InvalidConfigError(
            "there is no such encryption", option="server_side_encryption", known=",".join(sorted(_ENCRYPTIONS))
        )
    if "sse_customer_key_base64" in store and store.setdefault("server_side_encryption", "sse-c") != "sse-c":
        raise InvalidConfigError(
            "a customer's key goes with sse-c; leave one out", option="sse_customer_key_base64", encryption=kind
        )
    if "sse_kms_key_id" in store and store.setdefault("server_side_encryption", "aws:kms") not in _KMS:
        raise InvalidConfigError("a KMS key goes with aws:kms; leave one out", option="sse_kms_key_id", encryption=kind)


def _unknown(kind: str, given: str, name: str) -> InvalidConfigError:
    known = sorted(_KNOWN[kind] | _CLIENT_OPTIONS | {"retry_timeout"})
    meant = about_nearest(name, known)
    return InvalidConfigError(
        f"there is no such storage option; {meant or 'use one of the known ones'}",
        option=given,
        known=None if meant else ",".join(known),
    )
