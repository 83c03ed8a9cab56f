"""Rules about consumer groups: offsets and data together, exactly once, never back (16, 17, 33)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.checker.finding import told
from tests.checker.group_offsets import GroupOffsets, GroupPlace
from tests.checker.history_index import Index
from tests.checker.operations import CommitOffsets, Join, Level, Outcome, Place, Read, Seen
from tests.checker.written import Txn, Written, returned


def torn_offsets(index: Index) -> Iterator[str]:
    """A snapshot shows a transaction's records without its offsets, or its offsets without its records."""
    claims, resets = _claims(index)
    for _, read in index.done(Read):
        if not read.groups or not (read.level is Level.SNAPSHOT or read.final):
            continue
        values = {seen.value for seen in read.records}
        for (group, place), offset in read.offsets.items():
            claiming = claims.get((group, place, offset), set())
            # Where two commits say the same, either may be the one.
            txn = next(iter(claiming)) if len(claiming) == 1 else None
            for written in () if txn is None else _lacking(index, read, txn, values):
                facts = {"group": group, "place": place, "offset": offset, "value": written.write.value}
                yield told("its offset without its record", position=read.position, **facts)
        for txn in _shown(index, values):
            for at, offset in _offsets_of(txn, read):
                has = read.offsets.get(at, None if index.topics.forgetful else -1)
                if index.is_judged(at[1]) and at not in resets and has is not None and has < offset:
                    facts = {"group": at[0], "place": at[1], "offset": offset, "has": has, "txn": txn.name}
                    yield told("its record without its offset", position=read.position, **facts)


def _claims(index: Index) -> tuple[dict[tuple[str, Place, int], set[Txn | None]], set[GroupPlace]]:
    """Return which transactions may have set an offset, and what an admin may have set."""
    claims: dict[tuple[str, Place, int], set[Txn | None]] = defaultdict(set)
    resets: set[GroupPlace] = set()
    for operation, call in index.calls(CommitOffsets):
        if operation.outcome is Outcome.FAIL:
            continue
        for place, offset in call.offsets.items():
            claims[call.group, place, offset].add(None if call.txn is None else index.txns[call.txn])
            if call.reset:
                resets.add((call.group, place))
    return claims, resets


def _lacking(index: Index, read: Read, txn: Txn, values: set[str]) -> Iterator[Written]:
    for written in txn.writes:
        bounds = read.bounds.get(written.place)
        if written.write.value in values or bounds is None or written.acked_append is None:
            continue
        below = written.offset is None or written.offset < bounds.start
        if not below and index.is_judged(written.place) and not index.may_be_compacted(written):
            yield written


def _shown(index: Index, values: set[str]) -> list[Txn]:
    found = (index.writes.get(value) for value in values)
    shown = {each.txn.name: each.txn for each in found if each is not None and each.txn is not None}
    return [shown[name] for name in sorted(shown)]


def _offsets_of(txn: Txn, read: Read) -> Iterator[tuple[GroupPlace, int]]:
    for operation, call in txn.offsets:
        if operation.outcome is Outcome.OK and call.group in read.groups:
            yield from (((call.group, place), offset) for place, offset in call.offsets.items())


@dataclass(frozen=True, slots=True)
class _Copy:
    """What one read shows of a topic, of its copy, and of the group between them."""

    name: str
    read: Read
    records: list[Seen]
    sources: list[Seen]
    group: str

    def is_read(self, place: Place, offset: int) -> bool:
        return offset < self.read.offsets.get((self.group, place), 0)


def wrong_copies(index: Index) -> Iterator[str]:
    """Of what a group has read, a copy has a record twice or not at all; or it has one of what was not read."""
    for _, read in index.done(Read):
        if not read.groups or not (read.level is Level.SNAPSHOT or read.final):
            continue
        by_topic: dict[str, list[Seen]] = defaultdict(list)
        for seen in read.records:
            by_topic[seen.place[0]].append(seen)
        topics = {place[0] for place in read.bounds} - index.topics.scratch
        for name, (source, group) in index.topics.copies.items():
            if group in read.groups and {name, source} <= topics:
                copy = _Copy(name, read, by_topic[name], by_topic[source], group)
                yield from _wrong_outputs(index, copy)
                yield from _uncopied(index, copy)


def _wrong_outputs(index: Index, copy: _Copy) -> Iterator[str]:
    copied: dict[tuple[Place, int], str] = {}
    last: dict[tuple[Place, Place], int] = {}
    for seen in sorted(copy.records, key=lambda each: (each.place, each.offset)):
        written = index.writes.get(seen.value)
        if written is None or written.write.source is None:
            continue
        place, offset = source = written.write.source
        facts = {"value": seen.value, "source": place, "offset": offset, "position": copy.read.position}
        if source in copied:
            yield told("copied twice", **facts, other=copied[source])
        if not copy.is_read(place, offset):
            yield told("copied, and the group has not read it", **facts)
        if offset < last.get((place, seen.place), 0):
            yield told("copied out of order", **facts)
        copied[source] = seen.value
        last[place, seen.place] = offset


def _uncopied(index: Index, copy: _Copy) -> Iterator[str]:
    starts = [bounds.start for place, bounds in copy.read.bounds.items() if place[0] == copy.name]
    if copy.name in index.topics.compacted or any(starts):
        # Where records of a copy may be gone, nothing is missing.
        return
    outputs = (index.writes.get(seen.value) for seen in copy.records)
    copied = {each.write.source for each in outputs if each is not None}
    for seen in copy.sources:
        if copy.is_read(seen.place, seen.offset) and (seen.place, seen.offset) not in copied:
            yield told("read by the group, and not copied", value=seen.value, place=seen.place, offset=seen.offset)


def regressing_offsets(index: Index) -> Iterator[str]:
    """A group's offset falls without a reset, or a member commits what is another's since."""
    groups = GroupOffsets(index)
    for operation, group, offsets, asked in groups.observations():
        for place in {*offsets, *(() if index.topics.forgetful else asked)}:
            least = groups.certain(group, place, operation.invoked, returned(operation))
            if least is not None and offsets.get(place, -1) < least:
                yield told("went back", group=group, place=place, committed=least, offset=offsets.get(place))
    owners = _owners(index)
    for operation, call in index.done(CommitOffsets):
        for place in call.offsets if call.member is not None and call.generation is not None else ():
            known = owners.get((call.group, place))
            owner = None if known is None else known.other_than(call.member, operation.invoked)
            if owner is not None and owner[0] > (call.generation or 0):
                facts = {"group": call.group, "place": place, "member": call.member, "generation": call.generation}
                yield told("committed what is another's since", **facts, owner=owner[1], since=owner[0])


class _Owners:
    """Who had a partition, as members told: at each moment the two latest generations of different members.

    Generations begin again with a group that was deleted or has expired: a member that nobody has heard of before and
    whose generation is below those that were known is of a new one.
    """

    def __init__(self, joins: list[tuple[float, int, str]]) -> None:
        ordered = sorted(joins)
        self._moments = [moment for moment, _, _ in ordered]
        self._latest: list[dict[str, int]] = []
        latest: dict[str, int] = {}
        heard_of: set[str] = set()
        for _, generation, member in ordered:
            if member not in heard_of and generation < max(latest.values(), default=0):
                latest = {}
            heard_of.add(member)
            merged = {**latest, member: max(generation, latest.get(member, 0))}
            latest = dict(sorted(merged.items(), key=lambda each: -each[1])[:2])
            self._latest.append(latest)

    def other_than(self, member: str | None, moment: float) -> tuple[int, str] | None:
        """Return the latest generation since which another member was known to have it, and the member."""
        at = bisect_left(self._moments, moment)
        others = {} if at == 0 else self._latest[at - 1]
        return max(((generation, other) for other, generation in others.items() if other != member), default=None)


def _owners(index: Index) -> dict[tuple[str, Place], _Owners]:
    found: dict[tuple[str, Place], list[tuple[float, int, str]]] = defaultdict(list)
    for operation, join in index.done(Join):
        for place in join.owned if join.generation is not None else ():
            found[join.group, place].append((returned(operation), join.generation or 0, join.member))
    return {key: _Owners(each) for key, each in found.items()}
