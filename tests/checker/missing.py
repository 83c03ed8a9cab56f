"""What a read does not show although its bounds and its position say that it must.

Below the last stable offset everything is decided, so a committed read shows all that is present below it, and no time
has to be asked.  A snapshot shows what is decided at or below its position; what has no position, or none that is
known, it must show when that was acknowledged before the read began, or (a record outside of transactions) when it is
below the high watermark that the same table tells.  Compaction by key and the log start excuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tests.checker.history_index import Index
from tests.checker.operations import Bounds, Level, Maintain, Operation, Read
from tests.checker.written import Txn, Written, returned


@dataclass(frozen=True, slots=True)
class Missing:
    """A record that a read must show and does not.

    Attributes
    ----------
    operation, read
        The read.
    written : Written
        The record.
    shown : frozenset of Txn
        The transactions of which the read shows something.
    """

    operation: Operation
    read: Read
    written: Written
    shown: frozenset[Txn]

    @property
    def was_seen_before(self) -> bool:
        """Whether a read of an earlier moment, or of a lower position, has shown it."""
        sighting = self.written.sighting
        if sighting is None or sighting.committed is None:
            return False
        if not self.read.as_of and returned(sighting.committed) < self.operation.invoked:
            return True
        position = self.read.position
        return position is not None and sighting.position is not None and sighting.position <= position

    @property
    def is_torn(self) -> bool:
        """Whether the same read shows something else of its transaction."""
        return self.written.txn is not None and self.written.txn in self.shown

    @property
    def was_acked_before(self) -> bool:
        """Whether its client knew that everybody can see it when the read began."""
        return not self.read.as_of and self.written.acked < self.operation.invoked


def end_of(read: Read, bounds: Bounds) -> int:
    """Return the offset before which a read shows what it shows."""
    return bounds.stable if read.level is Level.COMMITTED else bounds.high


# Several rules ask; it is found once for each history, and goes with it.
_FOUND: WeakKeyDictionary[Index, tuple[Missing, ...]] = WeakKeyDictionary()


def missing(index: Index) -> tuple[Missing, ...]:
    """Return what reads do not show, by their invocation."""
    found = _FOUND.get(index)
    if found is None:
        found = tuple(each for operation, read in index.done(Read) for each in _of_read(index, operation, read))
        _FOUND[index] = found
    return found


def _of_read(index: Index, operation: Operation, read: Read) -> Iterator[Missing]:
    values = {seen.value for seen in read.records}
    lacking = [
        written
        for place, bounds in read.bounds.items()
        for written in index.ladders[place].between(bounds.start, end_of(read, bounds))
        if written.write.value not in values and not index.may_be_compacted(written)
    ]
    if not lacking:
        return
    shown = frozenset(written.txn for value in values if (written := index.writes.get(value)) and written.txn)
    for written in lacking:
        found = Missing(operation, read, written, shown)
        if read.level is not Level.SNAPSHOT or _is_in_snapshot(found):
            yield found


def _is_in_snapshot(found: Missing) -> bool:
    if found.written.txn is None:
        return not found.read.as_of
    position = found.written.position
    if position is not None and found.read.position is not None:
        return position <= found.read.position
    return found.was_acked_before or found.is_torn


class Upkeep:
    """When maintenance was under way.

    Parameters
    ----------
    index : Index
        The history.
    """

    def __init__(self, index: Index) -> None:
        self._spans = [(each.invoked, returned(each)) for each, _ in index.calls(Maintain)]

    def was_between(self, before: Operation | None, after: Operation | None) -> bool:
        """Whether any of it ran between the beginning of one call and the end of a later one."""
        begin = 0.0 if before is None else before.invoked
        end = float("inf") if after is None else returned(after)
        return any(invoked <= end and begin <= ended for invoked, ended in self._spans)
