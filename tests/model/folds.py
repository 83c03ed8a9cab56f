"""What the four logs of the model say: their entries, and the states that these fold to (PROTOCOL.md §5 to §8).

Every entry holds what its writer decided on the view that it had, numbers included, as the real ones
do: so a decision on an old view shows in the fold.  Fields that no log has are said to be ghosts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple


class State(Enum):
    """The states of a transactional id (PROTOCOL.md §6.2) that the model has."""

    EMPTY = "EMPTY"
    ONGOING = "ONGOING"
    DECIDED = "PREPARE_*"
    COMPLETE = "COMPLETE_*"


class Decision(NamedTuple):
    """What the row of a transactional id says of its last decision.

    ``enrolled`` are numbers of logs: the topics, and after them the offset log.  ``by`` is a ghost: the
    epoch of who decided.  ``carried`` is the manifest: (topic, sequence) of each segment.
    """

    position: int
    epoch: int
    is_commit: bool
    enrolled: frozenset[int]
    by: int
    carried: tuple[tuple[int, int], ...] = ()


class Row(NamedTuple):
    """The row of a transactional id; its number stands for its producer id, too."""

    state: State
    epoch: int
    enrolled: frozenset[int] = frozenset()
    decision: Decision | None = None


class RowsWritten(NamedTuple):
    """An entry of T.  ``gives_epoch`` is a ghost: the ids of which the row's epoch is given to a process."""

    rows: tuple[tuple[int, Row], ...]
    gives_epoch: tuple[int, ...] = ()


@dataclass(frozen=True)
class Transactions:
    """The state of T.

    Attributes
    ----------
    rows : tuple of Row or None
        By transactional id.
    decisions : tuple of (int, Decision)
        Ghost: all there were.
    given : tuple of (int, int)
        Ghost: each id and epoch that was given to a process.
    """

    rows: tuple[Row | None, ...]
    decisions: tuple[tuple[int, Decision], ...] = ()
    given: tuple[tuple[int, int], ...] = ()

    def owed(self) -> list[tuple[int, Decision]]:
        """Return what is decided, not complete, and not replaced by a later entry of its id."""
        rows = enumerate(self.rows)
        return [(each, row.decision) for each, row in rows if row and row.decision and row.state is State.DECIDED]

    def is_open(self, each: int, epoch: int) -> bool:
        """Return whether this epoch of the id has a transaction under way."""
        row = self.rows[each]
        return row is not None and (row.state, row.epoch) == (State.ONGOING, epoch)


def fold_transactions(before: Transactions, version: int, entry: RowsWritten) -> Transactions:
    """Fold an entry of T."""
    rows, decisions, given = list(before.rows), before.decisions, before.given
    for each, row in entry.rows:
        last = rows[each]
        rows[each] = row
        # An abort where nothing is enrolled is complete at once.
        if row.decision is not None and (last is None or row.decision != last.decision):
            decisions = (*decisions, (each, row.decision))
        if each in entry.gives_epoch:
            given = (*given, (each, row.epoch))
    return Transactions(tuple(rows), decisions, given)


class Upload(NamedTuple):
    """The file of a segment of one record."""

    topic: int
    id: int
    epoch: int
    sequence: int


class Segment(NamedTuple):
    """An appended segment of one record."""

    offset: int
    id: int
    epoch: int
    sequence: int = 0


class Marker(NamedTuple):
    """The marker of one transaction."""

    id: int
    epoch: int
    is_commit: bool
    position: int
    offset: int


class Append(NamedTuple):
    """An entry of S."""

    segment: Segment


class Markers(NamedTuple):
    """An entry of S: what decisions carry, and their markers."""

    through: int
    markers: tuple[Marker, ...]
    next_offset: int
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class Tombstone:
    """An entry of S: no log may name the upload any more.  No tuple: it would be equal to an append's."""

    upload: Upload


class Forget(NamedTuple):
    """An entry of S: a producer expired."""

    id: int


@dataclass(frozen=True)
class Partition:
    """The state of S: a topic with one partition.

    Attributes
    ----------
    segments, markers : tuple
        All there were.
    next_offset, through : int
        The named numbers.
    epochs : tuple of (int or None)
        By producer; ``None``: not known.
    is_dense, has_late_data, is_in_sequence : bool
        Ghosts: each offset was given once and without a gap; data came above the marker of its epoch; the
        sequences of each epoch are 0, 1, and so on.
    """

    epochs: tuple[int | None, ...]
    segments: tuple[Segment, ...] = ()
    markers: tuple[Marker, ...] = ()
    next_offset: int = 0
    through: int = 0
    is_dense: bool = True
    has_late_data: bool = False
    is_in_sequence: bool = True

    @cached_property
    def visible(self) -> frozenset[tuple[Segment, int]]:
        """What is committed, with its decision position (PROTOCOL.md §5.6)."""
        commits = {(m.id, m.epoch): m.position for m in self.markers if m.is_commit}
        return frozenset((s, commits[s.id, s.epoch]) for s in self.segments if (s.id, s.epoch) in commits)

    @cached_property
    def open(self) -> tuple[Segment, ...]:
        """What no marker ends."""
        ended = {(marker.id, marker.epoch) for marker in self.markers}
        return tuple(s for s in self.segments if (s.id, s.epoch) not in ended)

    @cached_property
    def last_stable_offset(self) -> int:
        """PROTOCOL.md §5.6."""
        return min((segment.offset for segment in self.open), default=self.next_offset)


def _with_epoch(epochs: tuple[int | None, ...], each: int, epoch: int | None) -> tuple[int | None, ...]:
    return (*epochs[:each], epoch, *epochs[each + 1 :])


def _with_segment(before: Partition, new: Segment) -> Partition:
    late = any(marker.id == new.id and marker.epoch >= new.epoch for marker in before.markers)
    earlier = sum((each.id, each.epoch) == (new.id, new.epoch) for each in before.segments)
    return replace(
        before,
        segments=(*before.segments, new),
        epochs=_with_epoch(before.epochs, new.id, new.epoch),
        has_late_data=before.has_late_data or late,
        is_in_sequence=before.is_in_sequence and new.sequence == earlier,
    )


def fold_partition(before: Partition, version: int, entry: Append | Markers | Forget | Tombstone) -> Partition:
    """Fold an entry of S."""
    if isinstance(entry, Tombstone):
        return before
    if isinstance(entry, Forget):
        return replace(before, epochs=_with_epoch(before.epochs, entry.id, None))
    if isinstance(entry, Append):
        offset = entry.segment.offset
        is_dense = before.is_dense and offset == before.next_offset
        return replace(_with_segment(before, entry.segment), next_offset=offset + 1, is_dense=is_dense)
    for segment in entry.segments:
        before = _with_segment(before, segment)
    given = sorted([*(each.offset for each in entry.segments), *(each.offset for each in entry.markers)])
    epochs = before.epochs
    for marker in entry.markers:
        epochs = _with_epoch(epochs, marker.id, marker.epoch + 1)
    return replace(
        before,
        markers=(*before.markers, *entry.markers),
        epochs=epochs,
        through=entry.through,
        next_offset=entry.next_offset,
        is_dense=before.is_dense and given == list(range(before.next_offset, entry.next_offset)),
    )


class Projection(NamedTuple):
    """An entry of P."""

    reflects: int
    added: frozenset[tuple[Segment, int]]
    removed: frozenset[tuple[Segment, int]]
    last_stable_offset: int
    high_watermark: int
    through: int


@dataclass(frozen=True)
class Public:
    """The state of P; ``through`` is S's number, as P has taken it over."""

    reflects: int = 0
    content: frozenset[tuple[Segment, int]] = frozenset()
    last_stable_offset: int = 0
    high_watermark: int = 0
    through: int = 0


def fold_public(before: Public, version: int, entry: Projection) -> Public:
    """Fold an entry of P."""
    content = (before.content - entry.removed) | entry.added
    return Public(entry.reflects, content, entry.last_stable_offset, entry.high_watermark, entry.through)


class Pending(NamedTuple):
    """An offset of a transaction: pending, or committed by it; ``request`` is the version of O that asked."""

    id: int
    epoch: int
    request: int


class Settled(NamedTuple):
    """An entry of O: what is left of the row."""

    through: int
    committed: Pending | None
    pending: tuple[Pending, ...]


@dataclass(frozen=True)
class Offsets:
    """The state of O: one row.

    Attributes
    ----------
    committed, pending, through
        PROTOCOL.md §8.1.
    offered : tuple of Pending
        Ghost: all there were.
    """

    committed: Pending | None = None
    pending: tuple[Pending, ...] = ()
    through: int = 0
    offered: tuple[Pending, ...] = ()


def fold_offsets(before: Offsets, version: int, entry: Pending | Settled) -> Offsets:
    """Fold an entry of O."""
    if isinstance(entry, Settled):
        return replace(before, committed=entry.committed, pending=entry.pending, through=entry.through)
    others = tuple(each for each in before.pending if (each.id, each.epoch) != (entry.id, entry.epoch))
    return replace(before, pending=(*others, entry), offered=(*before.offered, entry))
