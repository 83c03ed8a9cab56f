"""One world of the model of transactions: four kinds of logs, and where each process stands in its program.

A view is the number of the log as it was read; ``NONE`` where a process has none.  Any process may
rest for ever at any place, which is a crash: whoever comes after finds the logs and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeVar

from tests.model.folds import (
    Append,
    Forget,
    Markers,
    Offsets,
    Partition,
    Pending,
    Projection,
    Public,
    Row,
    RowsWritten,
    Settled,
    Tombstone,
    Transactions,
    Upload,
    fold_offsets,
    fold_partition,
    fold_public,
    fold_transactions,
)
from tests.model.log_tree import LogTree

NONE = -1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Size:
    """How large a model is.

    Attributes
    ----------
    name : str
        For people.
    ids : tuple of int
        The transactional id of each producer: two with the same one fence each other.
    topics, completers, readers : int
        How many; each topic has one partition.
    transactions : int
        Of each producer.
    segments : int
        Of each transaction in each topic.
    carries, shares, has_vacuum, has_late_appends, has_late_commits : bool
        Whether producers upload first, and decisions carry what is not appended by then; the first two producers are of
        one process, whose requests may share an entry; uploads are vacuumed; a put of an append, or of a commit, lands
        after its producer has given it up.
    has_group, has_clock, has_expiry, has_follower, has_crashes, has_lazy_completers : bool
        Whether transactions have offsets of a group; are timed out; producers expire; somebody reads
        committed records as they come; producers stop for ever; completers may write no COMPLETE.
    """

    name: str
    ids: tuple[int, ...] = (0,)
    topics: int = 1
    completers: int = 1
    readers: int = 0
    transactions: int = 1
    segments: int = 1
    carries: bool = False
    shares: bool = False
    has_vacuum: bool = False
    has_late_appends: bool = False
    has_late_commits: bool = False
    has_group: bool = False
    has_clock: bool = False
    has_expiry: bool = False
    has_follower: bool = False
    has_crashes: bool = False
    has_lazy_completers: bool = False

    @property
    def logs(self) -> int:
        """How many logs a transaction writes to."""
        return self.topics + self.has_group

    @property
    def order(self) -> tuple[int, ...]:
        """The log of each thing that a transaction writes: where decisions carry, the offsets come first."""
        segments = tuple(topic for topic in range(self.topics) for _ in range(self.segments))
        offsets = (self.topics,) * self.has_group
        return (*offsets, *segments) if self.carries else (*segments, *offsets)

    @property
    def places(self) -> int:
        """How much a transaction writes."""
        return self.topics * self.segments + self.has_group

    @property
    def first_upload(self) -> int:
        """The place of the first segment, where decisions carry."""
        return int(self.has_group)

    def log_of(self, place: int) -> int:
        """Return the log of a place."""
        return self.order[place]

    def sequence_of(self, place: int) -> int:
        """Return the sequence that a segment has in its topic."""
        return (place - self.first_upload * self.carries) % self.segments


class Stage(IntEnum):
    """Where a producer stands."""

    NEW = 0
    OPEN = 1
    DONE = 2
    FENCED = 3


class Doubt(IntEnum):
    """What a producer has given up, though it may land."""

    NOTHING = 0
    AN_APPEND = 1
    A_COMMIT = 2


class Producer(NamedTuple):
    """A producer: its epoch, what it enrolled, uploaded and wrote (in this order of logs), and its views.

    ``known`` is the position of the decision of its id that it last saw to be complete; 0: of none.
    """

    stage: Stage = Stage.NEW
    epoch: int = NONE
    enrolled: int = 0
    written: int = 0
    uploaded: int = 0
    doubt: Doubt = Doubt.NOTHING
    left: int = 1
    known: int = 0
    t: int = NONE
    log: int = NONE


class Completer(NamedTuple):
    """A completer: the step of its program, T as it looked at it, the log of the step, and S as it last knew it."""

    step: int = 0
    t: int = NONE
    view: int = NONE
    segments: int = NONE


class Reader(NamedTuple):
    """A reader of one snapshot: its position, the public tables that it has opened, and T while that owes it any."""

    position: int = NONE
    opened: tuple[int, ...] = ()
    t: int = NONE


class Flight(NamedTuple):
    """A put of an append that nobody waits for: the log that it is decided on, and what it appends."""

    log: int
    upload: Upload


class LateCommit(NamedTuple):
    """A put of a decision that nobody waits for: T that it is decided on, and the row."""

    t: int
    row: Row


class Vacuum(NamedTuple):
    """The vacuum: T as it read it, and the upload that it has tombstoned."""

    t: int = NONE
    going: Upload | None = None


class World(NamedTuple):
    """All logs and processes, the uploads that are there, and puts under way of each producer.

    ``aborted`` is a ghost: what a producer was told to be aborted.
    """

    t: int
    logs: tuple[int, ...]
    public: tuple[int, ...]
    producers: tuple[Producer, ...]
    completers: tuple[Completer, ...]
    readers: tuple[Reader, ...]
    positions: tuple[int, ...]
    uploads: frozenset[Upload] = frozenset()
    flights: tuple[Flight | None, ...] = ()
    commits: tuple[LateCommit | None, ...] = ()
    vacuum: Vacuum = Vacuum()
    aborted: frozenset[tuple[int, int]] = frozenset()

    def with_producer(self, number: int, producer: Producer) -> World:
        """Return the world with another state of one producer."""
        return self._replace(producers=changed(self.producers, number, producer))

    def with_completer(self, number: int, completer: Completer) -> World:
        """Return the world with another state of one completer."""
        return self._replace(completers=changed(self.completers, number, completer))


def changed(items: tuple[T, ...], number: int, item: T) -> tuple[T, ...]:
    """Return the tuple with another item."""
    return (*items[:number], item, *items[number + 1 :])


class Logs:
    """The trees of all logs of a model of one size."""

    def __init__(self, size: Size) -> None:
        self.size = size
        ids = max(size.ids) + 1
        rows: tuple[Row | None, ...] = (None,) * ids
        self.transactions: LogTree[RowsWritten, Transactions] = LogTree(Transactions(rows), fold_transactions)
        self.segments: LogTree[Append | Markers | Forget | Tombstone, Partition] = LogTree(
            Partition((None,) * ids), fold_partition
        )
        self.public: LogTree[Projection, Public] = LogTree(Public(), fold_public)
        self.offsets: LogTree[Pending | Settled, Offsets] = LogTree(Offsets(), fold_offsets)

    def initial(self) -> World:
        """Return the world in which nothing has happened."""
        size = self.size
        return World(
            0,
            (0,) * size.logs,
            (0,) * size.topics,
            tuple(Producer(left=size.transactions) for _ in size.ids),
            (Completer(),) * size.completers,
            (Reader(),) * size.readers,
            (0,) * size.topics if size.has_follower else (),
            flights=(None,) * len(size.ids),
            commits=(None,) * len(size.ids),
        )
