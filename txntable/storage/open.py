"""Opening a store by its URL: the one function that knows all kinds of stores."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import SCHEMES, ObjectStore, StoreSpec

if TYPE_CHECKING:
    from txntable.storage.remote import RemoteStore


def open_store(spec: StoreSpec) -> ObjectStore:
    """Open the store that `spec` describes; nothing is created, and nothing is asked of it yet.

    Parameters
    ----------
    spec : StoreSpec
        ``s3://``, ``s3a://``, ``gs://``, ``az://``, ``abfs://``, ``abfss://``, ``memory://`` (kept
        by this process only), ``file:///`` or a local path; a relative one is made absolute.

    Raises
    ------
    InvalidRequestError
        The URL is of no known kind, or holds credentials.
    InvalidConfigError
        A storage option is unknown, or given for a local folder.
    StorePermissionError
        There are no credentials at all.
    """
    if not isinstance(spec.url, str) or not spec.url or "\0" in spec.url:
        raise InvalidRequestError("a warehouse is at a url or in a folder; give one", url=shown(spec.url))
    url = spec.url.rstrip("/") or "/"
    parts = urlsplit(url)
    if parts.scheme not in {"", "file"}:
        _require_no_secret(parts)
        if spec.durability != "full":
            raise InvalidRequestError("durability can be chosen for local folders only", durability=spec.durability)
        # Imported here: a local folder needs none of the clients, which take longer to load than all the rest.
        opened: type[RemoteStore] = import_module("txntable.storage.remote").RemoteStore
        return opened(StoreSpec(url, dict(spec.options)))
    if parts.scheme == "file" and parts.netloc not in {"", "localhost"}:
        raise InvalidRequestError("a file url has no host: file:///folder", url=url, known=",".join(sorted(SCHEMES)))
    if spec.options:
        raise InvalidRequestError("a local folder takes no storage options", options=",".join(sorted(spec.options)))
    folder = unquote(parts.path) if parts.scheme == "file" else url
    return LocalFolder(StoreSpec(os.path.abspath(folder), {}, spec.durability))


def _require_no_secret(parts: SplitResult) -> None:
    """Refuse a URL that holds credentials: URLs are shown in errors, plans and logs."""
    # Azure's containers stand before an @; no bucket's or container's name has a colon.
    account = parts.scheme in {"abfs", "abfss"}
    if parts.query or parts.fragment or ":" in parts.netloc or ("@" in parts.netloc and not account):
        raise InvalidRequestError(
            "a url has no user, password or query; give credentials as storage options", scheme=parts.scheme
        )
