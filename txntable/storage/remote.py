"""Objects in S3, Google Cloud Storage, Azure or (for trying out) memory, through obstore.

Each request is made again here (``retries`` says when and for how long) but the put-if-absents: a hidden second attempt
would meet its own object and answer ``EXISTS``.  obstore itself sends nothing twice but the parts of an upload.
S3's 409 (another conditional write is under way) arrives here as ``EXISTS`` too; the log reads
the slot before it believes either.

A store is opened anew in each process (:class:`StoreSpec` travels, and so may the store: it is
pickled as its spec).  After a fork obstore would hang; this store raises instead.
Must not know what objects mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, BinaryIO, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from txntable.errors import StoreUnavailableError, TxnTableError, WarehouseNotFoundError
from txntable.format.object_path import check_folder, check_path
from txntable.runtime.background_thread import threads_may_begin
from txntable.runtime.counters import Counters
from txntable.runtime.environment import SystemEnvironment
from txntable.runtime.one_process import check_own
from txntable.storage.failure_words import without_secrets
from txntable.storage.multipart_upload import PART_BYTES, PARTS_IN_FLIGHT, MultipartUpload
from txntable.storage.object_store import (
    BEGINNING_BYTES,
    ObjectMeta,
    ObjectStore,
    PutOutcome,
    StoredObject,
    StoreSpec,
    check_whole_size,
    name_is_taken,
)
from txntable.storage.object_versions import kept_versions
from txntable.storage.object_writer import open_writer
from txntable.storage.remote_clients import Clients, connect, connect_anew, kind_of
from txntable.storage.request_counts import (
    DELETES,
    FAILED,
    GETS,
    HEADS,
    LISTS,
    PUTS,
    READ_BYTES,
    UPLOADS,
    WRITTEN_BYTES,
)
from txntable.storage.request_failure import no_bucket, request_failure, tells_no_bucket
from txntable.storage.request_rate import RequestRate
from txntable.storage.retries import Attempts, asks_for_less, ending_within, passes
from txntable.storage.side_by_side import threads
from txntable.storage.store_errors import RENEWED, keys_may_be_outdated
from txntable.storage.unfinished_uploads import abort_uploads, unfinished_uploads

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FAILURES = (BaseError, OSError, ValueError)
_EXISTS = (AlreadyExistsError, PreconditionError)
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
    # With those asked for ahead, all that can stand between two checkpoints of a small table.
    parallel_reads = 96

    counters: Counters

    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        self._clients = connect(spec)
        self._proved: Clients | None = None
        self.retry_timeout_ms = self._clients.retry_timeout_ms
        self._environment = SystemEnvironment()
        self._renewing = self._environment.lock()
        self._rate = RequestRate(self._environment)
        self.counters = Counters(self._environment.ticks_ns)
        self._process = os.getpid()
        self._is_s3 = kind_of(spec.url) == "s3"
        self.is_remote = kind_of(spec.url) != "memory"
        self._in_order = kind_of(spec.url) in _LISTED_IN_ORDER and "--x-s3" not in spec.url  # S3 Express: any order

    def __repr__(self) -> str:
        return f"RemoteStore({self.spec.url!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (RemoteStore, (self.spec,))

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        return self._answered(partial(self._get, check_path(path)), path)

    def _get(self, path: str) -> StoredObject | None:
        def request() -> StoredObject:
            result = obstore.get(self._client(), path)
            # Of the answer's head: the body is not asked for unless somebody wants it.
            check_whole_size(path, result.meta["size"])
            data = result.bytes().to_bytes()
            self.counters.add(READ_BYTES, len(data))
            return StoredObject(data, _milliseconds(result.meta["last_modified"]))

        self.counters.add(GETS)

        return self._present(request)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`, asking for many at a time."""
        if len(paths) < 2:
            return [self.get(path) for path in paths]
        found: dict[str, StoredObject | None] = {}
        missing = [check_path(path) for path in dict.fromkeys(paths)]
        attempts = self._attempts()
        # Tried again and waited for in the calling thread: an interrupt ends it.
        while missing:
            with threads(min(self.parallel_reads, len(missing))) as pool:
                answers = dict(zip(missing, pool.map(self._tried_get, missing), strict=True))
            failures = {path: answer for path, answer in answers.items() if isinstance(answer, Exception)}
            found |= {path: answer for path, answer in answers.items() if not isinstance(answer, Exception)}
            self._wait_after(failures, attempts)
            missing = list(failures)
        return [found[path] for path in paths]

    def _tried_get(self, path: str) -> StoredObject | Exception | None:
        try:
            return self._once(partial(self._get, path))
        except _FAILURES as error:
            return error

    def _wait_after(self, failures: dict[str, Exception], attempts: Attempts) -> None:
        lasting = next((path for path, error in failures.items() if not passes(str(error))), None)
        if failures and (lasting is not None or not attempts.wait()):
            path = lasting or next(iter(failures))
            raise self._failure(failures[path], path, attempts) from without_secrets(failures[path])

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        self.counters.add(GETS)
        try:
            found_bytes = self._unless_absent(
                lambda: obstore.get_range(self._client(), path, start=start, length=length).to_bytes(),
                check_path(path),
            )
            self.counters.add(READ_BYTES, len(found_bytes or b""))
            return found_bytes
        except StoreUnavailableError:
            # What begins after the end is an error to these stores, each in its own words.
            found = self.head(path)
            if found is None or found.size > start:
                raise
            return b""

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        self.counters.add(HEADS)
        return self._unless_absent(lambda: _meta(obstore.head(self._client(), path)), check_path(path))

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object by one request."""
        check_path(path)
        self._count_put(len(data))
        self._answered(lambda: obstore.put(self._client(), path, data, use_multipart=False), path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one; never sent again."""
        check_path(path)
        self._count_put(len(data))
        attempts = self._attempts()
        try:
            self._once(lambda: obstore.put(self._client(), path, data, mode="create", use_multipart=False))
        except _EXISTS:
            return PutOutcome.EXISTS
        except _FAILURES as error:
            raise self._failure(error, path, attempts) from without_secrets(error)
        return PutOutcome.CREATED

    def put_next(self, path: str, data: bytes, below: str) -> tuple[PutOutcome, bytes | None]:
        """Put if absent, never sent again, and look at another object at the same time."""
        if not threads_may_begin():
            return super().put_next(path, data, below)
        with threads(1) as pool:
            beside = pool.submit(self._tried_beginning, check_path(below))
            outcome, found = self.put_if_absent(path, data), beside.result()
        return outcome, self._beginning_beside(below) if isinstance(found, Exception) else found

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return the objects in the order of `paths`, and the beginning of another, asked for at the same time."""
        if not threads_may_begin():
            return super().get_above(paths, below)
        with threads(1) as pool:
            beside = pool.submit(self._tried_beginning, check_path(below))
            entries, found = self.get_many(paths), beside.result()
        return entries, self.get_range(below, 0, BEGINNING_BYTES) if isinstance(found, Exception) else found

    def _tried_beginning(self, path: str) -> bytes | Exception | None:
        self.counters.add(GETS)

        def request() -> bytes:
            return obstore.get_range(self._client(), path, start=0, length=BEGINNING_BYTES).to_bytes()

        try:
            return self._once(partial(self._present, request))
        except (*_FAILURES, TxnTableError) as error:
            return error

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        folder = check_folder(prefix)
        self.counters.add(LISTS)
        found = self._list(folder)
        return found if self._in_order else iter(sorted(found, key=lambda meta: meta.path))

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted; one LIST with a delimiter."""
        folder = check_folder(prefix)
        self.counters.add(LISTS)
        found = self._answered(lambda: obstore.list_with_delimiter(self._client(), folder or None), folder)
        return sorted(str(path).rstrip("/").rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects by one request each, so that the order holds; an absent one is no error."""
        self.counters.add(DELETES, len(paths))
        for path in paths:
            self._unless_absent(partial(self._delete, path), check_path(path))

    def delete_unordered(self, paths: Sequence[str]) -> None:
        """Delete objects by as few requests as the store allows; an absent one is no error."""
        checked = [check_path(path) for path in paths]
        self.counters.add(DELETES, len(paths))
        try:
            self._answered(partial(self._delete, checked), checked[0] if checked else "")
        except TxnTableError as error:
            # What was tried for its whole time is not begun anew, object by object.
            if passes(str(error.__cause__)):
                raise
            # Some stores call an absent one an error, some know no bulk request; whatever else it was shows again.
            self.delete(checked)

    def _delete(self, paths: str | Sequence[str]) -> None:
        obstore.delete(self._client(), paths)

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into, in parts of 8 MiB."""
        check_path(path)
        self._check_process()
        return open_writer(
            MultipartUpload(lambda data: self._create_whole(path, data), lambda parts: self._put_parts(path, parts))
        )

    def unfinished(self) -> Iterator[ObjectMeta]:
        """Yield S3's uploads in parts that were neither completed nor aborted; of other stores nothing.

        Azure forgets the blocks that no object took up after a week.  Google Cloud Storage keeps them until a
        lifecycle rule of the bucket (``AbortIncompleteMultipartUpload``) does away with them.
        """
        return unfinished_uploads(self.spec) if self._is_s3 else iter(())

    def kept_versions(self) -> Iterator[ObjectMeta]:
        """Yield the versions that a versioned bucket of S3 keeps; of other stores nothing is asked."""
        return kept_versions(self.spec) if self._is_s3 else iter(())

    def discard(self, paths: Sequence[str]) -> None:
        """Abort such uploads; a writer that still lives fails when it completes."""
        if paths and not self._is_s3:
            super().discard(paths)
        elif paths:
            abort_uploads(self.spec, paths)

    def _create_whole(self, path: str, data: bytes) -> None:
        """Put an object that is not there yet; what an attempt before this one has put is."""

        def request() -> None:
            try:
                obstore.put(self._client(), path, data, mode="create", use_multipart=False)
            except _EXISTS:
                found = self.get(path)
                if found is None:
                    raise  # another attempt of ours is under way
                if found.data != data:
                    raise name_is_taken(path) from None

        self._count_put(len(data))
        with ending_within(self._environment, self.retry_timeout_ms):
            self._answered(request, path)

    def _put_parts(self, path: str, parts: Iterator[bytes]) -> None:
        put = partial(obstore.put, chunk_size=PART_BYTES, max_concurrency=PARTS_IN_FLIGHT, use_multipart=True)
        clients, attempts, mark = self._clients, self._attempts(), {_MARK: self._environment.new_id()}
        self.counters.add(UPLOADS)
        try:
            self._check_process()
            put(clients.parts, path, parts, attributes=mark)
        except _FAILURES as error:
            told = self._told(error, clients)
            # The answer to a completion may be lost; the second one, or the abort, then meets no upload any more.
            if not self._has_mark(path, mark):
                raise self._failure(told, path, attempts) from without_secrets(error)
        self._proved = clients

    def _has_mark(self, path: str, mark: dict[str, str]) -> bool:
        try:
            found = self._unless_absent(lambda: obstore.get(self._client(), path, options={"head": True}), path)
        except TxnTableError:
            return False
        return found is not None and found.attributes.get(_MARK) == mark[_MARK]

    def _list(self, folder: str) -> Iterator[ObjectMeta]:
        attempts, last = self._attempts(), None
        while True:
            clients = self._clients
            try:
                self._rate.wait()
                for chunk in obstore.list(self._client(), folder or None, offset=last, chunk_size=1000):
                    for meta in map(_meta, chunk):
                        last = meta.path
                        yield meta
                    self._proved = clients
                    # The next page is another request, and what the caller did meanwhile is not its time.
                    attempts = self._attempts()
                return
            except _FAILURES as error:
                # Where the order is any, what has not been listed yet has no name to go on from.
                self._heed(error)
                told = self._told(error, clients)
                if not ((self._in_order or last is None) and passes(str(told)) and attempts.wait()):
                    raise self._failure(told, folder, attempts) from without_secrets(error)

    def _unless_absent(self, request: Callable[[], _T], path: str) -> _T | None:
        return self._answered(lambda: self._present(request), path)

    def _present(self, request: Callable[[], _T]) -> _T | None:
        try:
            return request()
        except FileNotFoundError as error:
            self._check_bucket(error)
            return None

    def _answered(self, request: Callable[[], _T], path: str) -> _T:
        attempts = self._attempts()
        while True:
            try:
                return self._once(request)
            except _FAILURES as error:
                if not (passes(str(error)) and attempts.wait()):
                    raise self._failure(error, path, attempts) from without_secrets(error)

    def _once(self, request: Callable[[], _T]) -> _T:
        self._rate.wait()
        clients = self._clients
        try:
            answer = request()
        except (FileNotFoundError, *_EXISTS):
            # Absent and taken are answers.
            self._proved = clients
            raise
        except _FAILURES as error:
            self._heed(error)
            self.counters.add(FAILED)
            told = self._told(error, clients)
            if told is error:
                raise
            raise told from without_secrets(error)
        self._proved = clients
        self._rate.went_well()
        return answer

    def _told(self, error: Exception, clients: Clients) -> Exception:
        """Return an error of a request; one that passes where its keys are refused for their end, and others are there.

        Keys that never worked are no outdated ones: whoever gives others each time would be asked for ever.
        """
        if clients.keys is None or not keys_may_be_outdated(str(error)):
            return error
        with self._renewing:
            # Another thread may have done it.
            if self._clients is clients:
                anew = connect_anew(self.spec, clients) if self._proved is clients else None
                self._clients = anew or clients
            return error if self._clients is clients else OSError(RENEWED)

    def _count_put(self, size: int) -> None:
        self.counters.add(PUTS)
        self.counters.add(WRITTEN_BYTES, size)

    def _heed(self, error: Exception) -> None:
        if asks_for_less(str(error)):
            self._rate.halve()

    def _attempts(self) -> Attempts:
        return Attempts(self.retry_timeout_ms, self._environment)

    def _client(self) -> Any:
        self._check_process()
        return self._clients.single

    def _check_process(self) -> None:
        check_own(f"the store {self.spec.url}", self._process)

    def _check_bucket(self, error: Exception) -> None:
        if tells_no_bucket(str(error)):
            raise self._no_bucket() from without_secrets(error)

    def _no_bucket(self) -> WarehouseNotFoundError:
        return no_bucket(self.spec.url)

    def _failure(self, error: Exception, path: str, attempts: Attempts) -> TxnTableError:
        return request_failure(error, path, self.spec.url, attempts.tried_for_ms)


def _meta(found: Any) -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], _milliseconds(found["last_modified"]))


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
