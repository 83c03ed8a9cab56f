"""Objects in S3, Google Cloud Storage, Azure or (for trying out) memory, through obstore.

There are two clients.  One sends a failed request again; the other never does, and sends the
put-if-absents: a hidden second attempt would meet its own object and answer ``EXISTS``.
S3's 409 (another conditional write is under way) arrives here as ``EXISTS`` too; the log reads
the slot before it believes either.

A store is opened anew in each process (:class:`StoreSpec` travels, and so may the store: it is
pickled as its spec).  After a fork obstore would hang; this store raises instead.
Must not know what objects mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import MemoryStore, from_url

from txntable.errors import (
    IllegalStateError,
    InvalidRequestError,
    StorePermissionError,
    StoreUnavailableError,
    TxnTableError,
    WarehouseNotFoundError,
)
from txntable.storage.credentials import parse_options, s3_credentials
from txntable.storage.multipart_upload import PART_BYTES, PARTS_IN_FLIGHT, MultipartUpload
from txntable.storage.object_path import check_folder, check_path
from txntable.storage.object_store import ObjectMeta, ObjectStore, PutOutcome, StoredObject, StoreSpec
from txntable.storage.object_writer import open_writer

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az", "memory": "memory"}

_PARALLEL_GETS = 8
_RETRIED_FOR = timedelta(minutes=2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FAILURES = (BaseError, OSError, ValueError)
_EXISTS = (AlreadyExistsError, PreconditionError)
# what obstore says in words only: of a refused LIST, and of a bucket that is not there
_REFUSED = re.compile(r"non-2xx status code: 40[13]\b")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|FilesystemNotFound|The specified bucket does not exist")
_LISTED_IN_ORDER = frozenset({"s3", "gs", "memory"})
_REASON_CHARACTERS = 300

_memory_stores: dict[str, MemoryStore] = {}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Clients:
    retrying: Any
    single: Any


class RemoteStore(ObjectStore):
    """A store in a bucket, or under a prefix of one.

    Parameters
    ----------
    spec : StoreSpec
        URL and storage options.

    Raises
    ------
    InvalidRequestError
        The URL is none that this store knows.
    InvalidConfigError
        A storage option is unknown or unusable.
    StorePermissionError
        There are no credentials at all.
    """

    parallel_writes = 16

    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        self._clients = _connect(spec)
        self._process = os.getpid()
        self._in_order = _kind(spec.url) in _LISTED_IN_ORDER and "--x-s3" not in spec.url  # S3 Express: any order

    def __repr__(self) -> str:
        return f"RemoteStore({self.spec.url!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (RemoteStore, (self.spec,))

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""

        def request() -> StoredObject | None:
            result = obstore.get(self._retrying(), path)
            return StoredObject(result.bytes().to_bytes(), _milliseconds(result.meta["last_modified"]))

        return self._unless_absent(request, check_path(path))

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`, asking for eight at a time."""
        if len(paths) < 2:
            return [self.get(path) for path in paths]
        with ThreadPoolExecutor(min(_PARALLEL_GETS, len(paths))) as pool:
            return list(pool.map(self.get, paths))

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        try:
            return self._unless_absent(
                lambda: obstore.get_range(self._retrying(), path, start=start, length=length).to_bytes(),
                check_path(path),
            )
        except StoreUnavailableError:
            # What begins after the end is an error to these stores, each in its own words.
            found = self.head(path)
            if found is None or found.size > start:
                raise
            return b""

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        return self._unless_absent(lambda: _meta(obstore.head(self._retrying(), path)), check_path(path))

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object by one request."""
        self._put_whole(check_path(path), data)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one; never sent again."""
        check_path(path)
        self._check_process()
        try:
            obstore.put(self._clients.single, path, data, mode="create", use_multipart=False)
        except _EXISTS:
            return PutOutcome.EXISTS
        except _FAILURES as error:
            raise self._failure(error, path) from error
        return PutOutcome.CREATED

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        folder = check_folder(prefix)
        found = self._list(folder)
        return found if self._in_order else iter(sorted(found, key=lambda meta: meta.path))

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted; one LIST with a delimiter."""
        folder = check_folder(prefix)
        try:
            found = obstore.list_with_delimiter(self._retrying(), folder or None)
        except _FAILURES as error:
            raise self._failure(error, folder) from error
        return sorted(str(path).rstrip("/").rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects by one request each, so that the order holds; an absent one is no error."""
        for path in paths:
            check_path(path)
            try:
                obstore.delete(self._retrying(), path)
            except FileNotFoundError as error:
                self._check_bucket(error)
            except _FAILURES as error:
                raise self._failure(error, path) from error

    def delete_unordered(self, paths: Sequence[str]) -> None:
        """Delete objects by as few requests as the store allows; an absent one is no error."""
        checked = [check_path(path) for path in paths]
        try:
            obstore.delete(self._retrying(), checked)
        except _FAILURES:
            # Some stores call an absent one an error, some know no bulk request; whatever else it was shows again.
            self.delete(checked)

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into, in parts of 8 MiB."""
        check_path(path)
        self._check_process()
        return open_writer(
            MultipartUpload(lambda data: self._put_whole(path, data), lambda parts: self._put_parts(path, parts))
        )

    def _put_whole(self, path: str, data: bytes) -> None:
        try:
            obstore.put(self._retrying(), path, data, use_multipart=False)
        except _FAILURES as error:
            raise self._failure(error, path) from error

    def _put_parts(self, path: str, parts: Iterator[bytes]) -> None:
        client = self._retrying()
        try:
            obstore.put(client, path, parts, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=PARTS_IN_FLIGHT)
        except _FAILURES as error:
            raise self._failure(error, path) from error

    def _list(self, folder: str) -> Iterator[ObjectMeta]:
        try:
            for chunk in obstore.list(self._retrying(), folder or None, chunk_size=1000):
                yield from map(_meta, chunk)
        except _FAILURES as error:
            raise self._failure(error, folder) from error

    def _unless_absent(self, request: Callable[[], _T], path: str) -> _T | None:
        try:
            return request()
        except FileNotFoundError as error:
            self._check_bucket(error)
            return None
        except _FAILURES as error:
            raise self._failure(error, path) from error

    def _retrying(self) -> Any:
        self._check_process()
        return self._clients.retrying

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise IllegalStateError(
                "a store does not survive a fork; open it in the new process, or start that by spawn", url=self.spec.url
            )

    def _check_bucket(self, error: Exception) -> None:
        if _NO_BUCKET.search(str(error)):
            raise self._no_bucket() from error

    def _no_bucket(self) -> WarehouseNotFoundError:
        return WarehouseNotFoundError("there is no such bucket; create it or correct the url", url=self.spec.url)

    def _failure(self, error: Exception, path: str) -> TxnTableError:
        text = str(error)
        reason = text.partition("\n")[0][:_REASON_CHARACTERS]
        # a write is answered "not found" only when what it goes into is not there
        if isinstance(error, FileNotFoundError) or _NO_BUCKET.search(text):
            return self._no_bucket()
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or _REFUSED.search(text):
            return StorePermissionError(
                "the store refused these credentials; grant the access", path=path, reason=reason
            )
        return StoreUnavailableError("the store gave no usable answer; try again", path=path, reason=reason)


def _connect(spec: StoreSpec) -> _Clients:
    kind = _kind(spec.url)
    settings = parse_options(kind, spec.options)
    if kind == "memory":
        memory = _memory_stores.setdefault(spec.url, MemoryStore())
        return _Clients(memory, memory)
    arguments: dict[str, Any] = {"config": dict(settings.store), "client_options": dict(settings.client)}
    credentials = s3_credentials(settings) if kind == "s3" else None
    if credentials is not None:
        arguments["credential_provider"] = credentials
    retries = {"max_retries": settings.max_retries, "retry_timeout": _RETRIED_FOR}
    try:
        return _Clients(
            from_url(spec.url, retry_config=retries, **arguments),  # type: ignore[call-overload]
            from_url(spec.url, retry_config={"max_retries": 0}, **arguments),
        )
    except _FAILURES as error:
        reason = str(error).partition("\n")[0]
        raise InvalidRequestError("the store can not be opened", url=spec.url, reason=reason) from error


def _kind(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme not in SCHEMES or not urlsplit(url).netloc:
        raise InvalidRequestError(
            "this is no url of a store; give a folder, or a url such as s3://bucket/prefix",
            url=url,
            known=",".join(sorted(SCHEMES)),
        )
    return SCHEMES[scheme]


def _meta(found: Any) -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], _milliseconds(found["last_modified"]))


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
