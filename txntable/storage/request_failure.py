"""What a failed request to a remote store means to its caller.

Owns the order in which an error of obstore is looked at: keys, bucket, settings, the store's code, a refusal.  Pure.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from txntable.errors import StorePermissionError, StoreUnavailableError, TxnTableError, WarehouseNotFoundError
from txntable.storage.failure_words import misconfiguration, short_reason, unreached_endpoint, without_secrets
from txntable.storage.refusal import is_refusal, missing_s3_action
from txntable.storage.remote_clients import kind_of
from txntable.storage.store_errors import error_code, key_failure_in, meaning_of

# what obstore says in words only
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|FilesystemNotFound|The specified bucket does not exist")


def tells_no_bucket(text: str) -> bool:
    """Return whether the text of an error says that there is no such bucket."""
    return _NO_BUCKET.search(text) is not None


def no_bucket(url: str) -> WarehouseNotFoundError:
    """Return the error of a bucket that is not there."""
    return WarehouseNotFoundError(
        "there is no such bucket; create it or correct the url", url=url, bucket=urlsplit(url).netloc
    )


def request_failure(error: Exception, path: str, url: str, tried_for_ms: int) -> TxnTableError:
    """Return what a caller can act on.

    Parameters
    ----------
    error : Exception
        Of the last attempt.
    path : str
        The object's.
    url : str
        The store's.
    tried_for_ms : int
        For how long it was tried.
    """
    text = str(without_secrets(error))
    reason = short_reason(text)
    of_keys = key_failure_in(text)
    if of_keys is not None:
        return of_keys
    # a write is answered "not found" only when what it goes into is not there: the bucket, or the upload
    if (isinstance(error, FileNotFoundError) and "NoSuchUpload" not in text) or tells_no_bucket(text):
        return no_bucket(url)
    misconfigured = misconfiguration(text, url)
    if misconfigured is not None:
        return misconfigured
    code = error_code(text)
    known = meaning_of(code)
    if known is not None and not issubclass(known[0], StoreUnavailableError):
        return known[0](known[1], path=path, code=code, reason=reason)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or is_refusal(text):
        action = missing_s3_action(text) if kind_of(url) == "s3" else None
        return StorePermissionError(
            "the store refused these credentials; grant them the action", path=path, action=action, reason=reason
        )
    kind, says = (StoreUnavailableError, "the store gave no usable answer; try again") if known is None else known
    endpoint = unreached_endpoint(text)
    if endpoint is not None:
        says = (
            "the store cannot be reached; check the network, and endpoint and proxy where they are set, then try again"
        )
    return kind(says, path=path, endpoint=endpoint, reason=reason, tried_for_ms=tried_for_ms)
