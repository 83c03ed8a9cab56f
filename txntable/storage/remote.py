"""Objects in S3, Google Cloud Storage, Azure or (for trying out) memory, through obstore.

There are two clients.  One sends a failed request again (``retries`` says when); the other never
does, and sends the put-if-absents: a hidden second attempt would meet its own object and answer
``EXISTS``.
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
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, BinaryIO, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from txntable.environment import SystemEnvironment
from txntable.errors import (
    IllegalStateError,
    StorePermissionError,
    StoreUnavailableError,
    TxnTableError,
    WarehouseNotFoundError,
)
from txntable.storage.credentials import key_failure_in
from txntable.storage.failure_words import are_ended_keys, misconfiguration, short_reason, without_secrets
from txntable.storage.multipart_upload import PART_BYTES, PARTS_IN_FLIGHT, MultipartUpload
from txntable.storage.object_path import check_folder, check_path
from txntable.storage.object_store import ObjectMeta, ObjectStore, PutOutcome, StoredObject, StoreSpec
from txntable.storage.object_writer import open_writer
from txntable.storage.refusal import is_refusal, missing_s3_action
from txntable.storage.remote_clients import connect, kind_of
from txntable.storage.retries import Attempts
from txntable.storage.unfinished_uploads import abort_uploads, unfinished_uploads

_PARALLEL_GETS = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FAILURES = (BaseError, OSError, ValueError)
_EXISTS = (AlreadyExistsError, PreconditionError)
# what obstore says in words only
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|FilesystemNotFound|The specified bucket does not exist")
_LISTED_IN_ORDER = frozenset({"s3", "gs", "memory"})
# of an object that came in parts: whose upload it is.  Azure allows letters here, and no hyphen
_MARK = "uploadid"

_T = TypeVar("_T")


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
        self._clients = connect(spec)
        self._environment = SystemEnvironment()
        self._process = os.getpid()
        self._is_s3 = kind_of(spec.url) == "s3"
        self._in_order = kind_of(spec.url) in _LISTED_IN_ORDER and "--x-s3" not in spec.url  # S3 Express: any order

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
        attempts = self._attempts()
        try:
            obstore.put(self._clients.single, path, data, mode="create", use_multipart=False)
        except _EXISTS:
            return PutOutcome.EXISTS
        except _FAILURES as error:
            raise self._failure(error, path, attempts) from without_secrets(error)
        return PutOutcome.CREATED

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        folder = check_folder(prefix)
        found = self._list(folder)
        return found if self._in_order else iter(sorted(found, key=lambda meta: meta.path))

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted; one LIST with a delimiter."""
        folder = check_folder(prefix)
        found = self._answered(lambda: obstore.list_with_delimiter(self._retrying(), folder or None), folder)
        return sorted(str(path).rstrip("/").rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects by one request each, so that the order holds; an absent one is no error."""
        for path in paths:
            self._unless_absent(partial(obstore.delete, self._retrying(), path), check_path(path))

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

    def unfinished(self) -> Iterator[ObjectMeta]:
        """Yield S3's uploads in parts that were neither completed nor aborted; of other stores nothing.

        Azure forgets the blocks that no object took up after a week.  Google Cloud Storage keeps them until a
        lifecycle rule of the bucket (``AbortIncompleteMultipartUpload``) does away with them.
        """
        return unfinished_uploads(self.spec) if self._is_s3 else iter(())

    def discard(self, paths: Sequence[str]) -> None:
        """Abort such uploads; a writer that still lives fails when it completes."""
        if paths and not self._is_s3:
            super().discard(paths)
        elif paths:
            abort_uploads(self.spec, paths)

    def _put_whole(self, path: str, data: bytes) -> None:
        self._answered(lambda: obstore.put(self._retrying(), path, data, use_multipart=False), path)

    def _put_parts(self, path: str, parts: Iterator[bytes]) -> None:
        put = partial(obstore.put, chunk_size=PART_BYTES, max_concurrency=PARTS_IN_FLIGHT, use_multipart=True)
        attempts, mark = self._attempts(), {_MARK: self._environment.new_id()}
        try:
            put(self._retrying(), path, parts, attributes=mark)
        except _FAILURES as error:
            # The answer to a completion may be lost; the second one, or the abort, then meets no upload any more.
            if not self._has_mark(path, mark):
                raise self._failure(error, path, attempts) from without_secrets(error)

    def _has_mark(self, path: str, mark: dict[str, str]) -> bool:
        request = partial(obstore.get, self._retrying(), path, options={"head": True})
        try:
            found = self._unless_absent(request, path)
        except TxnTableError:
            return False
        return found is not None and found.attributes.get(_MARK) == mark[_MARK]

    def _list(self, folder: str) -> Iterator[ObjectMeta]:
        attempts, last = self._attempts(), None
        while True:
            try:
                for chunk in obstore.list(self._retrying(), folder or None, offset=last, chunk_size=1000):
                    for meta in map(_meta, chunk):
                        last = meta.path
                        yield meta
                    # The next page is another request, and what the caller did meanwhile is not its time.
                    attempts = self._attempts()
                return
            except _FAILURES as error:
                # Where the order is any, what has not been listed yet has no name to go on from.
                if not ((self._in_order or last is None) and attempts.again(error)):
                    raise self._failure(error, folder, attempts) from without_secrets(error)

    def _unless_absent(self, request: Callable[[], _T], path: str) -> _T | None:
        def ask() -> _T | None:
            try:
                return request()
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None

        return self._answered(ask, path)

    def _answered(self, request: Callable[[], _T], path: str) -> _T:
        attempts = self._attempts()
        while True:
            try:
                return request()
            except _FAILURES as error:
                if not attempts.again(error):
                    raise self._failure(error, path, attempts) from without_secrets(error)

    def _attempts(self) -> Attempts:
        return Attempts(self._clients.max_retries, self._environment)

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
            raise self._no_bucket() from without_secrets(error)

    def _no_bucket(self) -> WarehouseNotFoundError:
        return WarehouseNotFoundError("there is no such bucket; create it or correct the url", url=self.spec.url)

    def _failure(self, error: Exception, path: str, attempts: Attempts) -> TxnTableError:
        text = str(without_secrets(error))
        reason = short_reason(text)
        of_keys = key_failure_in(text)
        if of_keys is not None:
            return of_keys
        # a write is answered "not found" only when what it goes into is not there: the bucket, or the upload
        if (isinstance(error, FileNotFoundError) and "NoSuchUpload" not in text) or _NO_BUCKET.search(text):
            return self._no_bucket()
        misconfigured = misconfiguration(text, self.spec.url)
        if misconfigured is not None:
            return misconfigured
        if are_ended_keys(text):
            return StorePermissionError("the AWS session token is not valid any more; get another", reason=reason)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or is_refusal(text):
            action = missing_s3_action(text) if kind_of(self.spec.url) == "s3" else None
            return StorePermissionError(
                "the store refused these credentials; grant them the action", path=path, action=action, reason=reason
            )
        return StoreUnavailableError(
            "the store gave no usable answer; try again", path=path, reason=reason, tried_for_ms=attempts.tried_for_ms
        )


def _meta(found: Any) -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], _milliseconds(found["last_modified"]))


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
