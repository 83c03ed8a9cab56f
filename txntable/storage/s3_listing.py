"""What S3 lists, and obstore has no call for: how botocore is asked, and what its answers and refusals are here.

Owns where a store is in S3, and that what botocore raises is an error of a store.  Must not know what is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError  # noqa: TID251

from txntable.errors import StorePermissionError, StoreUnavailableError
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import StoreSpec
from txntable.storage.store_errors import meaning_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_REFUSED = frozenset({"AccessDenied", "403"})


def place(spec: StoreSpec) -> tuple[Any, str, str]:
    """Return a client of S3, the bucket, and the prefix of the store's keys."""
    url = urlsplit(spec.url)
    folder = unquote(url.path).strip("/")
    return s3_client(spec), url.netloc, f"{folder}/" if folder else ""


def changed_ms(time: datetime) -> int:
    """Return a time that S3 says, in ms since 1970."""
    return (time - _EPOCH) // _MILLISECOND


@contextmanager
def told(spec: StoreSpec, action: str) -> Iterator[None]:
    """Let what botocore says in a block be an error of a store; `action` is what is asked for."""
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _REFUSED:
            raise StorePermissionError(
                "the store refused these credentials; grant them the action", url=spec.url, action=action
            ) from error
        known = meaning_of(code)
        if known is not None:
            raise known[0](known[1], url=spec.url, code=code) from error
        raise StoreUnavailableError("the store gave no usable answer; try again", url=spec.url, reason=code) from error
    except BotoCoreError as error:
        raise StoreUnavailableError(
            "the store gave no usable answer; try again", url=spec.url, reason=type(error).__name__
        ) from error
