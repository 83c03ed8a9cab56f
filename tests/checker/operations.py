"""The operation log: what clients asked for, what they were told, and what they saw.

One :class:`Operation` is one call of one client, from its invocation to its return.  It knows nothing of how the
warehouse works: places, offsets, values and names only, so that a history can come from a simulation, from processes
that were killed, or from a test that writes it down.  Values are unique in a history: each is written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Place = tuple[str, int]
"""A topic and a partition."""


class Outcome(Enum):
    """What a client knows of its call."""

    OK = "done"
    FAIL = "not done, and never will be"
    INFO = "not known: it may have been done, or may be done later"


class Level(Enum):
    """How a reader sees transactions."""

    UNCOMMITTED = "read_uncommitted"
    COMMITTED = "read_committed"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Write:
    """A record that was sent.

    Attributes
    ----------
    place : Place
        Where to; of a record whose partition was never told: the topic and -1.
    value : str
        Unique in the history.
    offset : int, optional
        Where it stands, when the client was told.
    source : tuple of (Place, int), optional
        The record that it is a copy of.
    amount : int
        What it adds to the sum of all accounts.
    key : str, optional
        What compaction by key goes by.
    dead : bool
        It says that its key has no value any more: a compaction by key may take it, too.
    """

    place: Place
    value: str
    offset: int | None = None
    source: tuple[Place, int] | None = None
    amount: int = 0
    key: str | None = None
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A record that was read."""

    place: Place
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a reader was told of one partition: where its log starts, the last stable offset, the high watermark."""

    start: int
    stable: int
    high: int


# -- calls ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Init:
    """A producer takes its transactional id over.

    Attributes
    ----------
    transactional_id : str
        Which.
    producer_id, epoch : int, optional
        As whom; known when it is OK.
    kept : bool
        It took a prepared transaction over, and with it the epoch of who prepared it.
    """

    transactional_id: str
    producer_id: int | None = None
    epoch: int | None = None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Records are appended (``send`` and ``flush`` together), in this order.

    Attributes
    ----------
    producer : str
        The client; unique in the history.
    txn : str, optional
        The client's own name of its transaction, unique in the history; ``None``: without one.
    writes : tuple of Write
        The records.
    producer_id, epoch : int, optional
        As whom, when the client knows.
    buffered : bool
        Nothing was waited for: the records are appended for certain when their transaction is committed.
    """

    producer: str
    txn: str | None
    writes: tuple[Write, ...]
    producer_id: int | None = None
    epoch: int | None = None
    buffered: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """A transaction is committed or aborted.

    Attributes
    ----------
    txn : str
        As in :class:`Send`.
    commit : bool
        What was asked for.  OK: that is how it ended.  FAIL: it is not committed (of an abort: nothing is known).
    position : int, optional
        The decision's version of the transaction log, when the client was told.
    transactional_id, producer_id, epoch : optional
        Whose it is.
    """

    txn: str
    commit: bool
    position: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """A consumer gets the next records of what it is assigned.

    Attributes
    ----------
    consumer : str
        Unique in the history.
    assignment : int
        Rises whenever the consumer's position may have moved otherwise: a new assignment, a seek, a rewind.
    records : tuple of Seen
        In the order in which they were handed over.
    bounds : mapping of Place to Bounds
        Under what they were served; may be empty where the client is not told.
    txn : str, optional
        The transaction in which it is processed.
    level : Level
        How transactions are seen.
    """

    consumer: str
    assignment: int
    records: tuple[Seen, ...] = ()
    bounds: Mapping[Place, Bounds] = field(default_factory=dict)
    txn: str | None = None
    level: Level = Level.COMMITTED


@dataclass(frozen=True, slots=True)
class Read:
    """A scan of whole topics, from their starts.

    Attributes
    ----------
    level : Level
        How transactions are seen.
    records : tuple of Seen
        All that it returned.
    bounds : mapping of Place to Bounds
        Of each partition that was read.
    position : int, optional
        Of a snapshot: the version of the transaction log.
    offsets : mapping of (group, Place) to int
        What the same snapshot says of consumer groups.
    groups : frozenset of str
        The groups whose offsets it asked for.
    final : bool
        The last look, after everything was healed and every producer fenced.
    as_of : bool
        The reader asked for this position, or may not write and took the published one: it misses nothing newer.
    """

    level: Level
    records: tuple[Seen, ...] = ()
    bounds: Mapping[Place, Bounds] = field(default_factory=dict)
    position: int | None = None
    offsets: Mapping[tuple[str, Place], int] = field(default_factory=dict)
    groups: frozenset[str] = frozenset()
    final: bool = False
    as_of: bool = False


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """A group's offsets are committed, plainly or as a part of a transaction.

    Attributes
    ----------
    reset : bool
        An admin sets or removes them: they may go back.
    member, generation : optional
        Who, as a member.
    """

    group: str
    offsets: Mapping[Place, int]
    txn: str | None = None
    member: str | None = None
    generation: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """A group's committed offsets are asked for.

    Attributes
    ----------
    group : str
        Whose.
    offsets : mapping of Place to int
        What it has.
    asked : frozenset of Place
        What was asked for: of these, what is not in `offsets` has none.  Empty: nothing is told by absence.
    """

    group: str
    offsets: Mapping[Place, int] = field(default_factory=dict)
    asked: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Rewind:
    """A consumer goes back to what its group has committed (after an abort)."""

    consumer: str
    group: str


@dataclass(frozen=True, slots=True)
class Join:
    """A consumer becomes, or finds itself, a member of a generation."""

    group: str
    member: str
    generation: int | None = None
    owned: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    """A client has folded a log up to a version, and knows the chained hash of its entries there."""

    log: str
    version: int
    chain: str


@dataclass(frozen=True, slots=True)
class Maintain:
    """Upkeep.

    Attributes
    ----------
    kind : str
        ``compact``, ``retention``, ``delete_records``, ``vacuum``, ``checkpoint``, ``cleanup``, ``coordinate``.
    topic : str, optional
        Of one topic only.
    """

    kind: str
    topic: str | None = None


Call = Init | Send | End | Poll | Read | CommitOffsets | FetchOffsets | Rewind | Join | Look | Maintain


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of one client.

    Attributes
    ----------
    process : str
        Who; one process does one thing after the other.
    invoked, returned : int
        Moments of one clock for all processes; `returned` is ``None`` when it never did (it was killed).
    outcome : Outcome
        What the client was told.  Without a return: ``INFO``.
    call : Call
        What was asked, completed with what was answered.
    error : str, optional
        The error's code, of FAIL and INFO.
    """

    process: str
    invoked: int
    returned: int | None
    outcome: Outcome
    call: Call
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Topics:
    """What a checker must know of the topics.

    Attributes
    ----------
    accounts : frozenset of str
        Topics whose amounts always sum up to nothing, taken together, in every snapshot.
    compacted : frozenset of str
        Topics with compaction by key: older records of a key may go.
    copies : mapping of str to tuple of (str, str)
        Of a topic that is an exact copy: its source, and the group that counts how far.
    scratch : frozenset of str
        Topics that are deleted and made again.
    forgetful : bool
        Idle producers may be forgotten (one without transactions may then go on at any higher sequence), and the
        offsets of idle groups may expire.
    """

    accounts: frozenset[str] = frozenset()
    compacted: frozenset[str] = frozenset()
    copies: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    scratch: frozenset[str] = frozenset()
    forgetful: bool = False
