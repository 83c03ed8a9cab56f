"""What a report knows of a warehouse: values, each as it was when the report was made.

Owns the bounds of a page (:class:`ReportLimits`), and that what was left out is told (:class:`Bounded`).  Pure.  Must
not know how a page looks, nor how anything is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Generic, TypeVar

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.admin.upkeep import Finding
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidConfigError

T = TypeVar("T")
LARGEST_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class ReportLimits:
    """How much of a warehouse a page shows at most, so that it stays small however old the warehouse is.

    Attributes
    ----------
    entries : int
        The newest entries of the transaction log that transactions are drawn from; a GET for each.
    lanes : int
        Transactional ids with a lane, those with an open transaction first, then the latest.
    records : int
        The newest records of each topic; 0: none is read.
    record_topics : int
        Topics whose records are read, the latest ones.
    topics, partitions : int
        Topics, and partitions of each.
    groups, group_partitions : int
        Groups, and partitions of each, those with the largest lag first.
    blocking, findings : int
        Open transactions, and findings.

    Raises
    ------
    InvalidConfigError
        One is not an integer from 0 to 10,000.
    """

    entries: int = 1_000
    lanes: int = 40
    records: int = 8
    record_topics: int = 12
    topics: int = 100
    partitions: int = 12
    groups: int = 50
    group_partitions: int = 12
    blocking: int = 20
    findings: int = 100

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if type(value) is not int or not 0 <= value <= LARGEST_LIMIT:
                raise InvalidConfigError(
                    "a limit of a report must be an integer from 0 to 10,000", limit=each.name, value=shown(value)
                )


@dataclass(frozen=True, slots=True)
class Bounded(Generic[T]):
    """Some of a number of things.

    Attributes
    ----------
    shown : tuple
        Those on the page.
    total : int
        How many there are.
    """

    shown: tuple[T, ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many are not on the page."""
        return self.total - len(self.shown)


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """Where a partition stands.

    Attributes
    ----------
    partition : int
        From 0.
    log_start, last_stable_offset, high_watermark : int
        Offsets.
    segments, records, size : int
        Live segments of any outcome, their records and bytes.
    last_write_ms : int or None
        When the newest of them was appended, ms since 1970.
    """

    partition: int
    log_start: int
    last_stable_offset: int
    high_watermark: int
    segments: int
    records: int
    size: int
    last_write_ms: int | None

    @property
    def held_back(self) -> int:
        """How many offsets an open transaction keeps from ``read_committed`` readers."""
        return self.high_watermark - self.last_stable_offset


@dataclass(frozen=True, slots=True)
class TopicStanding:
    """Where a topic stands.

    Attributes
    ----------
    name : str
        Its name.
    partition_count, segments, records, size, held_back : int
        Of all partitions together.
    last_write_ms : int or None
        Of all partitions.
    config : Mapping of str to str
        What was set.
    partitions : Bounded of PartitionStanding
        Those held back first, else the first ones; by number.
    """

    name: str
    partition_count: int
    segments: int
    records: int
    size: int
    held_back: int
    last_write_ms: int | None
    config: Mapping[str, str]
    partitions: Bounded[PartitionStanding]


class SpanOutcome(Enum):
    """What became of a transaction; the value is the word for it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    PREPARED = "prepared"


class EndedBy(Enum):
    """Who ended a transaction; the value is the word for it."""

    PRODUCER = "its producer"
    NEWER_PRODUCER = "a newer producer, which fenced it"
    TIMEOUT = "its timeout"
    ADMIN = "an admin"


@dataclass(frozen=True, slots=True)
class Span:
    """One transaction of an id.

    Attributes
    ----------
    epoch : int
        Of the transaction.
    outcome : SpanOutcome
        What became of it.
    started_ms : int or None
        Of its first enrolment; ``None``: before what was read.
    ended_ms : int or None
        Of its decision; ``None``: there is none.
    ended_by : EndedBy or None
        Who decided.
    position : int or None
        Of the decision.
    topics : tuple of str
        What it enrolled, by name.
    """

    epoch: int
    outcome: SpanOutcome
    started_ms: int | None
    ended_ms: int | None = None
    ended_by: EndedBy | None = None
    position: int | None = None
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Takeover:
    """A producer took an id: from then on every earlier epoch is fenced.

    Attributes
    ----------
    at_ms : int
        When.
    epoch : int
        The new producer's.
    """

    at_ms: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A transactional id over time.

    Attributes
    ----------
    transactional_id : str
        The id.
    producer_id, producer_epoch : int
        Who may act now.
    state : TransactionState
        Where it stands.
    spans : tuple of Span
        Its transactions, the oldest first.
    takeovers : tuple of Takeover
        When producers took it.
    holds_back : tuple of str
        Partitions whose last stable offset its open transaction keeps.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    spans: tuple[Span, ...]
    takeovers: tuple[Takeover, ...] = ()
    holds_back: tuple[str, ...] = ()

    def count(self, outcome: SpanOutcome) -> int:
        """Return how many of its transactions ended so."""
        return sum(span.outcome is outcome for span in self.spans)


@dataclass(frozen=True, slots=True)
class TransactionHistory:
    """Transactions over time.

    Attributes
    ----------
    since_ms, until_ms : int
        The time that lanes cover, ms since 1970.
    entries_read, entries : int
        How many entries of the transaction log these are from, and how many it has had.
    lanes : Bounded of Lane
        Those with an open transaction first, then the latest.
    ids_by_state : Mapping of str to int
        Of all transactional ids, those in each state.
    """

    since_ms: int
    until_ms: int
    entries_read: int
    entries: int
    lanes: Bounded[Lane]
    ids_by_state: Mapping[str, int]

    @property
    def ids(self) -> int:
        """How many transactional ids there are."""
        return sum(self.ids_by_state.values())


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """Where a group stands in a partition.

    Attributes
    ----------
    topic : str
        The topic's name.
    partition : int
        From 0.
    offset : int
        The next record to read.
    last_stable_offset : int
        Where reading ends.
    is_held_back : bool
        Whether an open transaction keeps records behind that.
    """

    topic: str
    partition: int
    offset: int
    last_stable_offset: int
    is_held_back: bool

    @property
    def lag(self) -> int:
        """How many offsets it can go on."""
        return max(0, self.last_stable_offset - self.offset)


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """Where a consumer group stands.

    Attributes
    ----------
    name : str
        Its name.
    state : GroupState
        Its state.
    members : int
        How many.
    lag : int, optional
        In all partitions; ``None``: nothing is committed yet.
    partitions : Bounded of GroupPartition
        The largest lag first.
    """

    name: str
    state: GroupState
    members: int
    lag: int | None
    partitions: Bounded[GroupPartition]


class RecordOutcome(Enum):
    """What became of a record's transaction; the value is the word for it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record.

    Attributes
    ----------
    partition, offset : int
        Where it is.
    timestamp_ms : int
        Its own, ms since 1970.
    outcome : RecordOutcome
        Whether readers see it.
    commit : int or None
        The position of its decision, 0 without a transaction; ``None``: it is not committed.
    key, value : str or None
        As text, shortened; ``None``: null.  Of a topic with its own schema the value is a JSON object.
    """

    partition: int
    offset: int
    timestamp_ms: int
    outcome: RecordOutcome
    commit: int | None
    key: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class NewestRecords:
    """The newest records of a topic.

    Attributes
    ----------
    topic : str
        Its name.
    records : tuple of ShownRecord
        The newest first.
    problem : str
        Why there are no more; empty: nothing went wrong.
    """

    topic: str
    records: tuple[ShownRecord, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StorageLayer:
    """What a layer of the warehouse stores.

    Attributes
    ----------
    name : str
        For people.
    objects, size : int
        How many, and their bytes.
    note : str
        What it is for.
    """

    name: str
    objects: int
    size: int
    note: str


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """A topic of which nothing is known.

    Attributes
    ----------
    name : str
        Its name.
    finding : Finding
        Why, and what to do.
    """

    name: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class WarehouseReport:
    """A warehouse, as a page shows it.

    Attributes
    ----------
    url : str
        Where it is.
    made_at_ms : int
        When it was looked at, by the store's time, ms since 1970.
    version : str
        Of this program.
    head, published_position : int
        Of the transaction log; and up to which every topic shows all that was decided.
    blocking : Bounded of BlockingTransaction
        What holds readers back, the oldest first.
    blocking_summary : str
        The same in a sentence, of all of them.
    findings : Bounded of Finding
        What nobody does any more, and what cannot be read.
    unreadable : Bounded of Finding
        Those of them that cannot be read.
    topics : Bounded of TopicStanding
        By name; those held back and the latest ones where there are too many.
    unreadable_topics : Bounded of UnreadableTopic
        The topics that are not among these, since they cannot be read.
    history : TransactionHistory
        Transactions over time.
    groups : Bounded of GroupStanding
        The largest lag first.
    records : Bounded of NewestRecords
        By topic, the latest first.
    layers : tuple of StorageLayer
        What is stored.
    """

    url: str
    made_at_ms: int
    version: str
    head: int
    published_position: int
    blocking: Bounded[BlockingTransaction]
    blocking_summary: str
    findings: Bounded[Finding]
    unreadable: Bounded[Finding]
    topics: Bounded[TopicStanding]
    unreadable_topics: Bounded[UnreadableTopic]
    history: TransactionHistory
    groups: Bounded[GroupStanding]
    records: Bounded[NewestRecords]
    layers: tuple[StorageLayer, ...]

    @property
    def late(self) -> int:
        """How many findings there are of what can be read."""
        return self.findings.total - self.unreadable.total

    @property
    def unread(self) -> tuple[NewestRecords, ...]:
        """The topics whose newest records could not be read."""
        return tuple(one for one in self.records.shown if one.problem)
