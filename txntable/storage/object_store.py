"""The door to storage: what an object store must do for this project, and nothing more.

Guarantees that every implementation gives, and on which everything above rests:

1. **Atomic objects.** An object appears whole or not at all, and never changes except by
   :meth:`ObjectStore.put` of the same path.  A reader never sees a part of it.
2. **Put-if-absent.** Of any number of racing :meth:`ObjectStore.put_if_absent` of one path,
   in any number of processes, exactly one creates the object.
3. **Read your writes.** What was created is seen by every later get, head and list, of anyone.
4. **Durable.** When a write returned, the object survives the death of the process and, where
   the store is opened with full durability, a power cut.
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
from dataclasses import dataclass, field
from enum import Enum
from typing import BinaryIO

from txntable.errors import InvalidRequestError


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
    parallel_writes : int
        How many new objects a client may stream at once, by as many threads, to its gain.
    """

    spec: StoreSpec
    parallel_writes: int = 1

    @abstractmethod
    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none.

        Raises
        ------
        StoreUnavailableError
            No answer; try again.
        StorePermissionError
            These credentials may not.
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
        """

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
        exception inside discards it instead.
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

    def discard(self, paths: Sequence[str]) -> None:
        """Do away with what :meth:`unfinished` has yielded; a writer that still lives fails.

        Raises
        ------
        InvalidRequestError
            A path is none of those.
        """
        if paths:
            raise InvalidRequestError("this store shows no unfinished files; delete objects", path=paths[0])
