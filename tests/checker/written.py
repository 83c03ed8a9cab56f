"""What a history wrote: records, the transactions that they belong to, and who saw them first.

Values that the index fills in; rules only read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

from tests.checker.evidence import Decision
from tests.checker.operations import CommitOffsets, End, Operation, Outcome, Place, Write

Owner = tuple[int, int]
"""A producer id and an epoch: they name one transaction."""


class Ended(Enum):
    """How a transaction ended, as far as anybody can know."""

    COMMITTED = "committed"
    ABORTED = "aborted, or never decided"
    UNKNOWN = "its commit may have been done, and nothing of it was seen"


@dataclass(slots=True, eq=False)
class Txn:
    """A transaction, by its client's name."""

    name: str
    owner: Owner | None = None
    transactional_id: str | None = None
    ends: list[tuple[Operation, End]] = field(default_factory=list)
    offsets: list[tuple[Operation, CommitOffsets]] = field(default_factory=list)
    writes: list[Written] = field(default_factory=list)
    decision: Decision | None = None
    ended: Ended = Ended.UNKNOWN

    def told(self, commit: bool, *outcomes: Outcome) -> list[Operation]:
        """Return the calls that asked for a commit, or an abort, and were answered so."""
        return [each for each, call in self.ends if call.commit is commit and each.outcome in outcomes]

    @property
    def has_effects(self) -> bool:
        """Whether anything of it was acknowledged before its end."""
        return any(each.acked_append is not None for each in self.writes) or any(
            each.outcome is Outcome.OK for each, _ in self.offsets
        )

    @property
    def position(self) -> int | None:
        """The version of the transaction log that decided it, if anybody told."""
        if self.decision is not None:
            return self.decision.position
        return next((call.position for each, call in self.ends if each.outcome is Outcome.OK), None)

    @property
    def commit_invoked(self) -> float:
        """When its commit was first asked for; infinite: never."""
        return min((each.invoked for each, call in self.ends if call.commit), default=inf)

    @property
    def commit_acked(self) -> float:
        """When its client was first told that it is committed; infinite: never."""
        return min((returned(each) for each in self.told(True, Outcome.OK)), default=inf)


@dataclass(slots=True, eq=False)
class Written:
    """A record that was sent: once, or again with the same value by a call that was tried again."""

    write: Write
    txn: Txn | None
    sends: list[Operation]
    place: Place
    offset: int | None = None
    sighting: Sighting | None = None
    buffered: bool = False

    @property
    def acked_append(self) -> float | None:
        """When its client was first told that it is appended; for what it did not wait for, by the commit."""
        appended = min((returned(each) for each in self.sends if each.outcome is Outcome.OK), default=None)
        if appended is None and self.buffered and self.txn is not None and self.txn.commit_acked < inf:
            return self.txn.commit_acked
        return appended

    @property
    def is_present(self) -> bool:
        """Whether every reader whose bounds reach it must find it."""
        if self.txn is not None and self.txn.ended is not Ended.COMMITTED:
            return False
        return self.is_seen or self.acked_append is not None

    @property
    def is_seen(self) -> bool:
        """Whether a reader of committed records saw it."""
        return self.sighting is not None and self.sighting.committed is not None

    @property
    def acked(self) -> float:
        """When its client was told that everybody can see it; infinite: never."""
        appended = self.acked_append
        if appended is None:
            return inf
        return appended if self.txn is None else self.txn.commit_acked

    @property
    def position(self) -> int | None:
        """From which position on snapshots show it; ``None``: outside of a transaction, or not known."""
        return None if self.txn is None else self.txn.position


@dataclass(slots=True, eq=False)
class Sighting:
    """A value that was read, with the first call that saw it at all, and the first that saw it as committed."""

    value: str
    place: Place
    offset: int
    first: Operation
    committed: Operation | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Clash:
    """Two answers about one value, or about one offset, that do not agree."""

    kind: str
    place: Place
    offset: int
    values: tuple[str, str]
    before: Operation | None
    after: Operation | None


def returned(operation: Operation) -> float:
    """When a call returned; infinite: never."""
    return inf if operation.returned is None else operation.returned
