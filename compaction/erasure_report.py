"""What an erasure did or would do, what is left, and where it was looked.

Owns the values that travel from the erasure to whoever prints them.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Extent(Enum):
    """How far an erasure goes; each goes further than the one before."""

    LOOK = "look"
    """Say what would be done; write nothing but the object that tells the store's time."""
    REWRITE = "rewrite"
    """Records go from the newest version; older versions keep them until their retention is over."""
    PURGE = "purge"
    """Older versions, files and log history that tell of them go at once, and it is proved."""


@dataclass(frozen=True, slots=True)
class ErasedTopic:
    """What became of a topic's records.

    Attributes
    ----------
    topic : str
        Its name.
    records, segments : int
        Erased from the newest version (a look: to be erased), and the segments that were written anew or removed.
    undecided : int
        Records of transactions that are not decided: left alone.
    uploaded : int
        Records in files that no log names, and whose writer may still append them: left alone.
    files : int
        Files that no log names any more and that hold such records: a purge deletes them, else they are there still.
    """

    topic: str
    records: int = 0
    segments: int = 0
    undecided: int = 0
    uploaded: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class ErasedLog:
    """What became of the history of a log that tells of erased records by its statistics.

    Attributes
    ----------
    log : str
        The table's root.
    telling : int
        Entries and checkpoints that tell of them.
    deleted : int
        Entries and checkpoints that a purge deleted.
    begins_at : int or None
        The version that the log begins with since; ``None``: nothing was deleted.
    """

    log: str
    telling: int = 0
    deleted: int = 0
    begins_at: int | None = None


class Trace(Enum):
    """In what shape a value stands somewhere."""

    RECORD = "record"
    STATISTICS = "statistics"
    BYTES = "bytes"
    VERSION = "object version"
    UNREAD = "unread"
    """It is there, and could not be looked into."""
    OTHER_SOFTWARE = "file of other software"
    """Records in a file of a topic's folder whose name no log of this format has."""
    OTHER_COLUMN = "other column"
    NAME = "name"

    @property
    def is_left(self) -> bool:
        """Whether it was to be erased; else it is told for people to judge."""
        return self not in (Trace.OTHER_COLUMN, Trace.NAME)


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A place where a value stands.

    Attributes
    ----------
    trace : Trace
        In what shape.
    path : str
        The object.
    count : int
        How many records or rows of it.
    column : str or None
        Of an other column, its name.
    """

    trace: Trace
    path: str
    count: int = 1
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """What an independent look at every object found.

    Attributes
    ----------
    objects, bytes, records : int
        What was read.
    traces : tuple of FoundTrace
        Everything that was found.
    unseen : tuple of str
        What cannot be seen from here, a sentence each.
    """

    objects: int = 0
    bytes: int = 0
    records: int = 0
    traces: tuple[FoundTrace, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[FoundTrace, ...]:
        """What was to be erased and is there."""
        return tuple(one for one in self.traces if one.trace.is_left)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure did, or would do.

    Attributes
    ----------
    extent : Extent
        How far it went.
    as_of_ms : int
        The store's time at its end, ms since 1970.
    topics : tuple of ErasedTopic
        Those that have the columns.
    skipped : tuple of str
        Topics that lack a column.
    logs : tuple of ErasedLog
        Whose history tells of the records.
    waiting : tuple of str
        What keeps the erasure from being whole, with what ends it.
    failures : tuple of str
        What could not be done: the same call again does it.
    proof : Proof or None
        Of a purge.
    """

    extent: Extent
    as_of_ms: int
    topics: tuple[ErasedTopic, ...] = ()
    skipped: tuple[str, ...] = ()
    logs: tuple[ErasedLog, ...] = ()
    waiting: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    proof: Proof | None = None

    @property
    def is_proved(self) -> bool:
        """Whether everything was erased, and nothing was found that was to be."""
        return not (self.waiting or self.failures) and self.proof is not None and not self.proof.left
