"""The interface of storage: what an object store must do for this project, and nothing more.

Guarantees that every implementation gives, and on which everything above rests:

1. **Atomic objects.** An object appears whole or not at all, and never changes except by
   :meth:`ObjectStore.put` of the same path.  A reader never sees a part of it.  What is streamed is new, too.
   Of what :meth:`ObjectStore.create_all` makes a part may be there before it has returned: nobody knows its path.
2. **Put-if-absent.** Of any number of racing :meth:`ObjectStore.put_if_absent` of one path,
   in any number of processes, exactly one creates the object.
3. **Read your writes.** What was created is seen by every later get, head and list, of anyone.
4. **Durable.** When a write returned, the object survives the death of the process and, where
   the store is opened with full durability, a power cut.
   What can be read may be another's, linked and not yet synced: before an answer stands on what was read
   :meth:`ObjectStore.sync_read` is called.  Where a sync failed, :class:`KafkaStorageError` is raised, by that write
   and by every later one of the process.
5. **Honest answers.** ``CREATED`` and ``EXISTS`` are facts about this request only: a lost
   answer that was tried again inside a client may say ``EXISTS`` of one's own object.  When it
   is not known whether a write happened, :class:`StoreUnavailableError` is raised.

Paths are relative to the store's root, with ``/`` between segments, never beginning with one.
Implementations: ``local_folder``, ``remote`` (obstore), ``txntable.testing`` (memory, faults).
Must not know Delta, topics or transactions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import BinaryIO

from txntable.errors import (
    DamagedDataError,
    InvalidRequestError,
    KafkaStorageError,
    StoreUnavailableError,
    TxnTableError,
    WarehouseReplacedError,
)
from txntable.runtime.counters import Counters
from txntable.storage.side_by_side import side_by_side

BEGINNING_BYTES = 1024
"""What is read of an object that is looked at beside another request: who it is stands in its first line."""

LARGEST_WHOLE_BYTES = 256 * 1024 * 1024
"""What :meth:`ObjectStore.get` returns at most.  What is larger is read by ranges."""


def check_whole_size(path: str, size: int) -> None:
    """Refuse to read an object whole, before its bytes are read.

    Raises
    ------
    DamagedDataError
        It is larger than any that is read whole.
    """
    if size > LARGEST_WHOLE_BYTES:
        raise DamagedDataError(
            "an object is larger than any of its kind can be; restore it from a backup",
            path=path,
            bytes=size,
            most=LARGEST_WHOLE_BYTES,
        )


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One object, without its bytes.

    Attributes
    ----------
    path : str
        Relative to the store's root.
    size : int
        Bytes.
    last_modified_ms : int
        When the store created this content, by the store's clock, in ms since 1970.
    """

    path: str
    size: int
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's bytes, and when the store created them (ms since 1970, the store's clock)."""

    data: bytes
    last_modified_ms: int


class PutOutcome(Enum):
    """The answer to a put-if-absent."""

    CREATED = "created"
    EXISTS = "exists"


SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az", "memory": "memory"}
"""The kind of store by a URL's scheme; a URL without one is a local folder."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """All that another process needs to open the same store (it travels to Spark executors).

    Attributes
    ----------
    url : str
        ``s3://bucket/prefix``, ``gs://…``, ``az://…``, or an absolute local path.
    options : Mapping[str, str]
        Storage options as the user gave them; never printed.
    durability : str
        ``"full"`` or ``"page-cache"`` (local folders only).
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    durability: str = "full"


class ObjectStore(ABC):
    """See the module's docstring for the contract.

    Attributes
    ----------
    spec : StoreSpec
        How another process opens it.
    retry_timeout_ms : int
        For how long a call is tried again while the store does not answer; short where it is this machine that fails.
    parallel_writes : int
        How many new objects a client may stream at once, by as many threads, to its gain.
    parallel_reads : int
        How many objects :meth:`get_many` asks for at once, and as many threads may gain by; 1: one after the other.
    is_remote : bool
        Whether an endpoint answers, behind which another software may stand than when the warehouse was created.
    counters : Counters or None
        Requests and bytes of this process; ``None``: the store does not count.
    """

    spec: StoreSpec
    counters: Counters | None = None
    retry_timeout_ms: int = 3_000
    parallel_writes: int = 1
    parallel_reads: int = 1
    is_remote: bool = False

    @abstractmethod
    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none.

        Raises
        ------
        StoreUnavailableError
            No answer; try again.
        StorePermissionError
            These credentials may not.
        DamagedDataError
            It is larger than :data:`LARGEST_WHOLE_BYTES`; no byte of it was read, and no further request made.
        """

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`; remote stores ask in parallel."""
        return [self.get(path) for path in paths]

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object.

        Parameters
        ----------
        path : str
            The object.
        start : int
            From 0.
        length : int
            At least 1; fewer bytes are returned where the object ends before.
        """
        found = self.get(path)
        return None if found is None else found.data[start : start + length]

    @abstractmethod
    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object (hints, heartbeats, constant files: never a commit)."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one; one request, never tried again inside.

        Raises
        ------
        StoreUnavailableError
            It is not known whether the object was created: read it (PROTOCOL.md, log rule 1).
        StorePermissionError
            These credentials may not write; nothing was written.
        KafkaStorageError
            A sync failed: the object may be there, and is not known to be durable.
        """

    def series(self) -> AbstractContextManager[None]:
        """Let what this thread puts if absent in a block be durable in its order, and all of it when the block ends.

        Each object is durable before the next one is there, so a power cut leaves the first ones; that may be later
        than its own put has returned.  For entries of which one is decided on the other, and of which nothing is told
        before the end.

        Raises
        ------
        KafkaStorageError
            At the end: a sync failed, and what was put last is not known to be durable.
        """
        return nullcontext()

    def sync_read(self) -> None:  # noqa: B027  most stores show nothing that is not durable
        """Let all that this store has read survive a power cut, before an answer stands on it.

        Raises
        ------
        StoreUnavailableError
            It is not known to be durable; try again.
        KafkaStorageError
            A sync failed in this process: nothing that it reads counts as written.
        """

    def turn(self, folder: str) -> AbstractContextManager[bool] | None:
        """Ask for the turn of writing to a folder, so that work is not lost to others who write there at once.

        A courtesy and no lock: it excludes nobody, and nothing may depend on it.

        Returns
        -------
        context manager or None
            Of whether there are turns here at all; to be left soon.  ``None``: another one has it now.
        """
        return nullcontext(False)

    def put_next(self, path: str, data: bytes, below: str) -> tuple[PutOutcome, bytes | None]:
        """Put if absent, and look at another object beside it: remote stores ask both at once.

        Parameters
        ----------
        path, data
            As for :meth:`put_if_absent`.
        below : str
            The other object.

        Returns
        -------
        tuple
            The put's answer, and the first :data:`BEGINNING_BYTES` of the other object, ``None`` when there is none.

        Raises
        ------
        StoreUnavailableError
            One of the two has no answer: it is not known whether the object was created.
        StorePermissionError
            These credentials may not write; nothing was written.
        """
        outcome = self.put_if_absent(path, data)
        return outcome, self._beginning_beside(below)

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return :meth:`get_many`'s objects, and the beginning of another; remote stores ask for all at once."""
        return self.get_many(paths), self.get_range(below, 0, BEGINNING_BYTES)

    def _beginning_beside(self, path: str) -> bytes | None:
        try:
            return self.get_range(path, 0, BEGINNING_BYTES)
        except (KafkaStorageError, StoreUnavailableError, WarehouseReplacedError):
            raise
        except TxnTableError as error:
            # Of the put beside it that would be a definite no.
            raise StoreUnavailableError("the object beside a put cannot be read; try again", path=path) from error

    @abstractmethod
    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield all objects whose path begins with the folder `prefix`, sorted by path."""

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted.

        One LIST with a delimiter where the store has one; not for the steady state.
        """
        start = len(prefix.rstrip("/")) + 1
        below = (meta.path[start:] for meta in self.list(prefix))
        return sorted({rest.split("/", 1)[0] for rest in below if "/" in rest})

    @abstractmethod
    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, in the order given where it matters; an absent one is no error."""

    def delete_unordered(self, paths: Sequence[str]) -> None:
        """Delete objects in whatever order is fastest; an absent one is no error."""
        self.delete(paths)

    @abstractmethod
    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into, in bounded memory.

        The object appears, durable, when ``close()`` returns.  As a context manager an
        exception inside discards it instead.  Its path must be one that nothing else ever gets: an object that is
        there already is damage, and is not replaced.  (A remote store does not see it of an object that goes in
        parts, from 8 MiB on: obstore completes such an upload without a condition.)
        """

    def create_all(self, objects: Sequence[tuple[str, bytes]]) -> None:
        """Create objects whose bytes are at hand, under paths as of :meth:`writer`'s; they are durable on return.

        Nobody looks for such a path before a log names it: until then, and after an error, some of them may be there,
        whole or in part.

        Parameters
        ----------
        objects : sequence of tuple
            Path and bytes of each.

        Raises
        ------
        StoreUnavailableError
            It is not known which of them are there.
        DamagedDataError
            Something has one of the names already; it was not replaced.
        """
        side_by_side(self, [partial(_create, self, *one) for one in objects])

    def sync_written(self, folder: str, paths: Sequence[str] = ()) -> None:  # noqa: B027  most stores have it durable
        """Let new objects that other software has written into a folder survive a power cut, before a log names them.

        Parameters
        ----------
        folder : str
            Theirs; made if it is not there, so that it is called before as well.
        paths : sequence of str
            Of the objects; nobody writes to them any more.

        Raises
        ------
        StoreUnavailableError
            They are not known to be durable: write others.
        KafkaStorageError
            The sync of a folder failed.
        """

    def unfinished(self) -> Iterator[ObjectMeta]:
        """Yield what writers have begun and not finished, the living and the killed ones; of some stores nothing.

        None of it is an object.

        Raises
        ------
        StorePermissionError
            These credentials may not ask.
        """
        return iter(())

    def kept_versions(self) -> Iterator[ObjectMeta]:
        """Yield the versions of objects that the store keeps beside the newest ones; of some stores nothing.

        Raises
        ------
        StorePermissionError
            These credentials may not ask.
        """
        return iter(())

    def discard(self, paths: Sequence[str]) -> None:
        """Do away with what :meth:`unfinished` has yielded; a writer that still lives fails.

        Raises
        ------
        InvalidRequestError
            A path is none of those.
        """
        if paths:
            raise InvalidRequestError("this store shows no unfinished files; delete objects", path=paths[0])


def _create(store: ObjectStore, path: str, data: bytes) -> None:
    with store.writer(path) as file:
        file.write(data)


def name_is_taken(path: str) -> DamagedDataError:
    """Return what is raised where something has the name of an object that is written once."""
    return DamagedDataError(
        "something has the name of a new file, which nothing else is given; it was not replaced: write again", path=path
    )
