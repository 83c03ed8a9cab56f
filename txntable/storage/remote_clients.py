"""obstore's clients of one remote store, as its URL and storage options say.

Owns which URLs there are.  A client of S3 signs with keys of AWS's chain unless the options give
some; which is found where is said in ``aws_configuration`` and ``aws_session``.
Must not know what is asked of a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import MemoryStore, from_url

from txntable.errors import InvalidRequestError
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.aws_configuration import (
    certificates,
    configured_endpoint,
    endpoint_with_bucket,
)
from txntable.storage.aws_session import SESSION_OPTIONS, find_credentials, open_botocore_session
from txntable.storage.credentials import S3Keys
from txntable.storage.object_store import SCHEMES, StoreSpec
from txntable.storage.retries import obstore_retries
from txntable.storage.storage_options import ClientSettings, parse_options

_memory_stores: dict[str, MemoryStore] = {}


@dataclass(frozen=True, slots=True)
class Clients:
    """Two clients of one store.

    Attributes
    ----------
    single : object
        Makes each request once.
    parts : object
        Sends a failed request again by itself: for uploads in parts.
    retry_timeout_ms : int
        For how long.
    keys : S3Keys, optional
        What they sign with, unless the options name it.
    """

    single: Any
    parts: Any
    retry_timeout_ms: int
    keys: S3Keys | None = None


def connect(spec: StoreSpec) -> Clients:
    """Return the clients; nothing is asked of the store yet.

    Raises
    ------
    InvalidRequestError
        The URL is none that is known, or obstore cannot use it.
    InvalidConfigError
        A storage option is unknown or unusable.
    StorePermissionError
        There are no credentials at all.
    """
    kind = kind_of(spec.url)
    settings = parse_options(kind, spec.options)
    if kind == "memory":
        memory = _memory_stores.setdefault(spec.url, MemoryStore())
        return Clients(memory, memory, settings.retry_timeout_ms)
    if kind == "s3":
        arguments = _s3_arguments(settings, urlsplit(spec.url).netloc)
    else:
        arguments = {
            "config": dict(settings.store),
            "client_options": _client_options(settings, certificates(settings)),
        }
    try:
        return Clients(
            from_url(spec.url, retry_config=obstore_retries(0), **arguments),  # type: ignore[call-overload]
            from_url(spec.url, retry_config=obstore_retries(settings.retry_timeout_ms), **arguments),  # type: ignore[call-overload]
            settings.retry_timeout_ms,
            arguments.get("credential_provider") if _can_be_renewed(settings) else None,
        )
    except (BaseError, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        for value in spec.options.values():
            reason = reason.replace(str(value) or "\0", "...")
        # obstore quotes values that it cannot read; they may be secrets, so its error is not chained
        raise InvalidRequestError("the store cannot be opened", url=spec.url, reason=reason) from None


def connect_anew(spec: StoreSpec, refused: Clients) -> Clients | None:
    """Return clients whose keys are asked for anew: of the file, the role, or the program that gives them.

    Parameters
    ----------
    spec : StoreSpec
        The store's.
    refused : Clients
        Whose keys the store does not take any more.

    Returns
    -------
    Clients or None
        ``None``: the options name the keys, or there are no others.

    Raises
    ------
    StoreUnavailableError
        What gives the keys does not answer.
    StorePermissionError
        It refused, or there are no keys any more.
    """
    if refused.keys is None:
        return None
    anew = connect(spec)
    return anew if anew.keys is not None and anew.keys.current() != refused.keys.current() else None


def kind_of(url: str) -> str:
    """Return the kind of store: ``"s3"``, ``"gs"``, ``"az"`` or ``"memory"``.

    Raises
    ------
    InvalidRequestError
        The URL is none that is known, or holds keys.
    """
    parts = urlsplit(url)
    kind = SCHEMES.get(parts.scheme)
    if parts.password is not None or parts.query or (kind != "az" and "@" in parts.netloc):
        raise InvalidRequestError("a url of a store holds no keys; give them as storage options")
    if kind is None or not parts.netloc:
        raise InvalidRequestError(
            "this is no url of a store; give a folder, or a url such as s3://bucket/prefix",
            url=url,
            known=",".join(sorted(SCHEMES)),
        )
    return kind


def _s3_arguments(settings: ClientSettings, bucket: str) -> dict[str, Any]:
    session = open_botocore_session(settings)
    config: dict[str, Any] = {name: value for name, value in settings.store.items() if name not in SESSION_OPTIONS}
    config["region"] = session.get_config_variable("region")
    endpoint = configured_endpoint(settings, session)
    virtual = settings.flag("virtual_hosted_style_request")
    config["virtual_hosted_style_request"] = str(virtual).lower()
    if endpoint is not None:
        config["endpoint"] = endpoint_with_bucket(endpoint, bucket) if virtual else endpoint
    encrypted = endpoint is None or endpoint.lower().startswith("https:")
    client_options = _client_options(settings, certificates(settings, session) if encrypted else None)
    if not encrypted:
        client_options["allow_http"] = "true"
    arguments: dict[str, Any] = {"config": config, "client_options": client_options}
    if not settings.flag("skip_signature"):
        arguments["credential_provider"] = S3Keys(find_credentials(session), SystemEnvironment())
    return arguments


def _can_be_renewed(settings: ClientSettings) -> bool:
    return "access_key_id" not in settings.store or "role_arn" in settings.store


def _client_options(settings: ClientSettings, trusted: bytes | None) -> dict[str, Any]:
    options: dict[str, Any] = {name: value for name, value in settings.client.items() if name != "root_certificate"}
    if trusted is not None:
        options["root_certificate"] = trusted
    return options
