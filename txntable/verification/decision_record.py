"""What the entries of T decided, kept while the other logs are held against it (PROTOCOL.md §6).

Owns a record for each decision that T's entries show: all of them, not only the last of each id.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from txntable.coordinator.decision import Outcome
from txntable.coordinator.enrolment import Topics
from txntable.coordinator.manifest import Segments
from txntable.coordinator.transaction import TransactionMetadata


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision as the entry said it that took it.

    Attributes
    ----------
    transactional_id : str
        Whose.
    producer_id, epoch : int
        They name the transaction.
    outcome : Outcome
        How it ended.
    position : int
        Where.
    topics, groups
        What it had enrolled.
    segments : Segments
        What it carries.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    outcome: Outcome
    position: int
    topics: Topics
    groups: tuple[str, ...]
    segments: Segments

    @classmethod
    def of(cls, row: TransactionMetadata) -> RecordedDecision | None:
        """Return what a row decides at its own position; ``None``: nothing."""
        decision = row.decision
        if decision is None or decision.position != row.position:
            return None
        return cls(
            row.transactional_id,
            row.producer_id,
            decision.epoch,
            decision.outcome,
            decision.position,
            row.topics,
            row.groups,
            row.manifest,
        )


@dataclass(slots=True)
class DecisionRecord:
    """All decisions that T's entries show.

    Attributes
    ----------
    began_at : int or None
        What was decided at or below this version is not known in full: entries begin above it.
    by_position : dict
        Position -> its decisions.
    """

    began_at: int | None = None
    by_position: dict[int, list[RecordedDecision]] = field(default_factory=dict)
    _by_epoch: dict[tuple[int, int], RecordedDecision] = field(default_factory=dict)

    def add(self, one: RecordedDecision) -> None:
        """Take one more decision."""
        self.by_position.setdefault(one.position, []).append(one)
        self._by_epoch[one.producer_id, one.epoch] = one

    def of_epoch(self, producer_id: int, epoch: int) -> RecordedDecision | None:
        """Return the decision of a transaction, if it is known."""
        return self._by_epoch.get((producer_id, epoch))

    def knows(self, position: int, head: int | None) -> bool:
        """Return whether all that was decided at a position is recorded, T having been read to `head`."""
        return (self.began_at is None or position > self.began_at) and head is not None and position <= head

    def __iter__(self) -> Iterator[RecordedDecision]:
        return (one for position in sorted(self.by_position) for one in self.by_position[position])
