"""One pass over a history: what was written, how its transactions ended, who saw it first, and where it stands.

Owns the verdicts that all rules share.  A transaction whose commit has an unknown outcome counts as committed only when
the evidence says so, or when something of it was seen.  A record is *present* when every reader must find it: its
append was acknowledged or it was seen, and its transaction, if any, is committed.  Of topics that are made again
nothing is known by offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

from tests.checker.evidence import Evidence
from tests.checker.ladder import Ladder
from tests.checker.operations import (
    Bounds,
    CommitOffsets,
    End,
    Level,
    Operation,
    Outcome,
    Place,
    Poll,
    Read,
    Seen,
    Send,
    Topics,
    Write,
)
from tests.checker.written import Clash, Ended, Owner, Sighting, Txn, Written, returned

C = TypeVar("C")


class Index:
    """A history, by what the rules ask for.

    Parameters
    ----------
    history : sequence of Operation
        In any order.
    evidence : Evidence
        What the store shows in the end.
    topics : Topics
        What is special about which.
    """

    def __init__(self, history: Sequence[Operation], evidence: Evidence, topics: Topics) -> None:
        self.evidence = evidence
        self.topics = topics
        self.writes: dict[str, Written] = {}
        self.txns: dict[str, Txn] = {}
        self.sightings: dict[str, Sighting] = {}
        self.clashes: list[Clash] = []
        self._by_kind: dict[type, list[tuple[Operation, Any]]] = defaultdict(list)
        self._at: dict[tuple[Place, int], tuple[str, Operation | None]] = {}
        for operation in sorted(history, key=lambda each: each.invoked):
            self._by_kind[type(operation.call)].append((operation, operation.call))
        self._take_writes()
        self._take_sightings()
        self._take_ends()

    # -- what was called

    def calls(self, kind: type[C]) -> list[tuple[Operation, C]]:
        """Return all calls of a kind, by invocation."""
        return cast("list[tuple[Operation, C]]", self._by_kind[kind])

    def done(self, kind: type[C]) -> Iterator[tuple[Operation, C]]:
        """Return the calls of a kind that were answered, by invocation."""
        return (each for each in self.calls(kind) if each[0].outcome is Outcome.OK)

    def looks(self) -> Iterator[tuple[Operation, Poll | Read]]:
        """Return all polls and reads that were answered: polls first, each by invocation."""
        yield from self.done(Poll)
        yield from self.done(Read)

    def is_judged(self, place: Place) -> bool:
        """Whether offsets of a place mean the same throughout: its topic is never made again."""
        return place[0] not in self.topics.scratch

    # -- what it comes to

    def _txn(self, name: str) -> Txn:
        return self.txns.setdefault(name, Txn(name))

    def _take_writes(self) -> None:
        for operation, send in self.calls(Send):
            txn = None if send.txn is None else self._txn(send.txn)
            if txn is not None and send.producer_id is not None and send.epoch is not None:
                txn.owner = send.producer_id, send.epoch
            for write in send.writes:
                self._take_write(operation, write, txn)
                self.writes[write.value].buffered |= send.buffered
        for operation, end in self.calls(End):
            txn = self._txn(end.txn)
            txn.ends.append((operation, end))
            txn.transactional_id = end.transactional_id or txn.transactional_id
            if end.producer_id is not None and end.epoch is not None:
                txn.owner = end.producer_id, end.epoch
        for operation, offsets in self.calls(CommitOffsets):
            if offsets.txn is not None:
                self._txn(offsets.txn).offsets.append((operation, offsets))

    def _take_write(self, operation: Operation, write: Write, txn: Txn | None) -> None:
        written = self.writes.get(write.value)
        if written is None:
            written = self.writes[write.value] = Written(write, txn, [], write.place)
            if txn is not None:
                txn.writes.append(written)
        written.sends.append(operation)
        if operation.outcome is not Outcome.OK or write.offset is None or not self.is_judged(write.place):
            return
        if written.offset is not None and written.offset != write.offset:
            values = (write.value, write.value)
            self.clashes.append(Clash("resent", write.place, write.offset, values, written.sends[0], operation))
        written.place, written.offset = write.place, write.offset
        self._place(write.value, write.place, write.offset, operation)

    def _place(self, value: str, place: Place, offset: int, operation: Operation | None) -> None:
        other, before = self._at.setdefault((place, offset), (value, operation))
        if other != value:
            self.clashes.append(Clash("offset", place, offset, (other, value), before, operation))

    def _take_sightings(self) -> None:
        for operation, call in self.looks():
            position = call.position if isinstance(call, Read) and call.level is Level.SNAPSHOT else None
            committed = call.level is not Level.UNCOMMITTED
            for seen in call.records:
                sighting = self._sighting(seen, operation)
                if not committed:
                    continue
                if sighting.committed is None or returned(operation) < returned(sighting.committed):
                    sighting.committed = operation
                if position is not None and (sighting.position is None or position < sighting.position):
                    sighting.position = position
        for record in self.evidence.records:
            if self.is_judged(record.place):
                self._check_place(record.value, record.place, record.offset, None)

    def _sighting(self, seen: Seen, operation: Operation) -> Sighting:
        sighting = self.sightings.get(seen.value)
        if sighting is None:
            sighting = Sighting(seen.value, seen.place, seen.offset, operation)
            self.sightings[seen.value] = sighting
            written = self.writes.get(seen.value)
            if written is not None:
                written.sighting = sighting
            if self.is_judged(seen.place):
                self._check_place(seen.value, seen.place, seen.offset, operation)
        elif (sighting.offset != seen.offset or sighting.place != seen.place) and self.is_judged(seen.place):
            values = (seen.value, seen.value)
            self.clashes.append(Clash("value", seen.place, seen.offset, values, sighting.first, operation))
            self._place(seen.value, seen.place, seen.offset, operation)
        return sighting

    def _check_place(self, value: str, place: Place, offset: int, operation: Operation | None) -> None:
        written = self.writes.get(value)
        if written is not None and written.offset is None:
            written.place, written.offset = place, offset
        elif written is not None and (written.place, written.offset) != (place, offset):
            before = written.sends[0]
            self.clashes.append(Clash("value", place, offset, (value, value), before, operation))
        self._place(value, place, offset, operation)

    def _take_ends(self) -> None:
        decisions = {(each.producer_id, each.epoch): each for each in self.evidence.decisions}
        owners: dict[Owner, list[Txn]] = defaultdict(list)
        for txn in self.txns.values():
            if txn.owner is not None:
                owners[txn.owner].append(txn)
        for owner, sharing in owners.items():
            # An epoch under which nothing was appended is used again by the producer's next transaction.
            claiming = [each for each in sharing if each.has_effects] or sharing
            if len(claiming) == 1:
                claiming[0].decision = decisions.get(owner)
        for txn in self.txns.values():
            txn.ended = self._ended(txn)

    def _ended(self, txn: Txn) -> Ended:
        if txn.decision is not None:
            return Ended.COMMITTED if txn.decision.committed else Ended.ABORTED
        if txn.told(True, Outcome.OK):
            return Ended.COMMITTED
        if txn.told(False, Outcome.OK) or not txn.told(True, Outcome.INFO):
            return Ended.ABORTED
        if self.evidence.whole and txn.owner is not None and txn.has_effects:
            return Ended.ABORTED
        return Ended.COMMITTED if any(each.is_seen for each in txn.writes) else Ended.UNKNOWN

    # -- what rules ask for

    def value_at(self, place: Place, offset: int) -> Written | None:
        """Return what stands at an offset, if anybody told."""
        found = self._at.get((place, offset))
        return None if found is None else self.writes.get(found[0])

    @cached_property
    def ladders(self) -> Mapping[Place, Ladder]:
        """What is present, by place, in offset order."""
        rungs: dict[Place, list[Written]] = defaultdict(list)
        for written in self.writes.values():
            if written.offset is not None and self.is_judged(written.place) and written.is_present:
                rungs[written.place].append(written)
        return defaultdict(Ladder, {place: Ladder(each) for place, each in rungs.items()})

    @cached_property
    def bounds(self) -> list[tuple[Operation, Poll | Read, Place, Bounds]]:
        """What was told of every partition, by invocation."""
        everything = sorted(self.looks(), key=lambda each: each[0].invoked)
        return [
            (operation, call, place, bounds)
            for operation, call in everything
            for place, bounds in call.bounds.items()
            if self.is_judged(place)
        ]

    @cached_property
    def highest_starts(self) -> Mapping[Place, int]:
        """The highest offset that a partition was ever said to begin at: below it, records may have gone."""
        starts: dict[Place, int] = defaultdict(int)
        everywhere = [(place, bounds) for _, _, place, bounds in self.bounds]
        for place, bounds in (*everywhere, *self.evidence.bounds.items()):
            starts[place] = max(starts[place], bounds.start)
        return starts

    @cached_property
    def _newest_of_keys(self) -> Mapping[tuple[Place, str], int]:
        newest: dict[tuple[Place, str], int] = defaultdict(int)
        for written in self.writes.values():
            aborted = written.txn is not None and written.txn.ended is Ended.ABORTED
            if written.write.key is not None and written.offset is not None and not aborted:
                key = written.place, written.write.key
                newest[key] = max(newest[key], written.offset)
        return newest

    def may_be_compacted(self, written: Written) -> bool:
        """Whether compaction by key may have taken a record: a newer one has its key, or it has none, or is dead."""
        if written.place[0] not in self.topics.compacted:
            return False
        if written.write.key is None or written.write.dead or written.offset is None:
            return True
        return self._newest_of_keys[written.place, written.write.key] > written.offset


Rule = Callable[[Index], Iterator[str]]
"""Yields the facts of each anomaly of its kind."""
