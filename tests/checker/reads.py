"""Rules about whole reads: what they show too early, too late, in part, or no more (5-7, 21, 24, 30, 31, 34)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from tests.checker.finding import told
from tests.checker.history_index import Index
from tests.checker.ladder import Latest
from tests.checker.missing import Missing, Upkeep, missing
from tests.checker.operations import Bounds, Level, Outcome, Place, Poll, Read
from tests.checker.written import Ended, Txn, Written, returned


def aborted_reads(index: Index) -> Iterator[str]:
    """A reader of committed records saw one of an aborted transaction, or one that nobody wrote."""
    for value, sighting in index.sightings.items():
        written = index.writes.get(value)
        if written is None:
            yield told("nobody wrote it", value=value, place=sighting.place, offset=sighting.offset)
        elif written.txn is not None and written.is_seen and written.txn.ended is Ended.ABORTED:
            yield told(
                "its transaction was aborted",
                value=value,
                place=sighting.place,
                offset=sighting.offset,
                txn=written.txn.name,
            )


def early_reads(index: Index) -> Iterator[str]:
    """A record was seen before its commit was asked for, or by its own transaction."""
    for value, sighting in index.sightings.items():
        written = index.writes.get(value)
        if written is None:
            continue
        if returned(sighting.first) < min(each.invoked for each in written.sends):
            yield told("seen before it was sent", value=value, by=sighting.first.process)
        committed, txn = sighting.committed, written.txn
        if committed is None or txn is None or txn.ended is Ended.ABORTED:
            continue
        if returned(committed) < txn.commit_invoked < inf:
            yield told("seen before its commit was asked for", value=value, txn=txn.name)
    for _, poll in index.done(Poll):
        if poll.txn is not None and poll.level is not Level.UNCOMMITTED:
            for seen in poll.records:
                own = index.writes.get(seen.value)
                if own is not None and own.txn is not None and own.txn.name == poll.txn:
                    yield told("seen by its own transaction", value=seen.value, txn=poll.txn)


def partial_visibility(index: Index) -> Iterator[str]:
    """A read shows a part of a transaction, or a snapshot what was decided above it."""
    for each in missing(index):
        # Of a snapshot all of it: its position says that the transaction is in it, whatever else is shown.
        if each.is_torn or (each.read.level is Level.SNAPSHOT and each.written.txn is not None):
            yield _lacks("the read shows its transaction in part", each)
    for operation, read in index.done(Read):
        if read.level is not Level.SNAPSHOT or read.position is None:
            continue
        for seen in read.records:
            written = index.writes.get(seen.value)
            position = None if written is None else written.position
            if position is not None and position > read.position:
                yield told(
                    "decided above the snapshot",
                    value=seen.value,
                    decided=position,
                    position=read.position,
                    by=operation.process,
                )


def _lacks(what: str, each: Missing) -> str:
    txn = each.written.txn
    return told(
        what,
        value=each.written.write.value,
        place=each.written.place,
        offset=each.written.offset,
        txn=None if txn is None else txn.name,
        by=each.operation.process,
        invoked=each.operation.invoked,
        position=each.read.position,
    )


def unsafe_bounds(index: Index) -> Iterator[str]:
    """A last stable offset above an open transaction, above the high watermark, or lower than before."""
    for operation, _, place, bounds in index.bounds:
        facts = {"place": place, "start": bounds.start, "stable": bounds.stable, "high": bounds.high}
        if not bounds.start <= bounds.stable <= bounds.high:
            yield told("bounds out of order", **facts)
        last = index.ladders[place].last_commit_below(bounds.stable)
        if last is not None and returned(operation) < last[0] < inf:
            yield told("the last stable offset is above an open transaction", **facts, value=last[1].write.value)
    yield from _out_of_bounds(index)
    yield from _falling_bounds(index)
    for each in missing(index):
        # Of a transaction a snapshot shows what its position says, not what its bounds say.
        by_position = each.read.level is Level.SNAPSHOT and each.written.txn is not None
        otherwise_found = by_position or each.was_seen_before or each.is_torn or each.was_acked_before
        if each.written.is_seen and not otherwise_found:
            yield _lacks("the bounds pass what the read does not show", each)


def _out_of_bounds(index: Index) -> Iterator[str]:
    for _, call in index.looks():
        for seen in call.records:
            bounds = call.bounds.get(seen.place)
            if bounds is None or not index.is_judged(seen.place):
                continue
            # What a consumer had fetched may be below the log start by now.
            start = bounds.start if isinstance(call, Read) else 0
            end = bounds.stable if call.level is Level.COMMITTED else bounds.high
            if not start <= seen.offset < end:
                yield told(
                    "shown outside of its bounds", value=seen.value, place=seen.place, offset=seen.offset, end=end
                )


def _falling_bounds(index: Index) -> Iterator[str]:
    """Reads are fresh: each is at least as far as all before it; a consumer is as far as it was itself."""
    known: dict[tuple[Place, bool], list[tuple[float, float, object]]] = defaultdict(list)
    consumers: dict[tuple[str, Place, int], Bounds] = {}
    for operation, call, place, bounds in index.bounds:
        if isinstance(call, Read) and call.as_of:
            continue
        known[place, call.level is Level.UNCOMMITTED].append((returned(operation), bounds.stable, operation))
        if isinstance(call, Poll):
            before = consumers.get((call.consumer, place, call.assignment), bounds)
            if bounds.stable < before.stable or bounds.high < before.high:
                yield told("bounds fell for a consumer", consumer=call.consumer, place=place, stable=bounds.stable)
            consumers[call.consumer, place, call.assignment] = bounds
    latest = {key: Latest(each) for key, each in known.items()}
    for operation, call, place, bounds in index.bounds:
        if isinstance(call, Read) and not call.as_of:
            highest = latest[place, call.level is Level.UNCOMMITTED].before(operation.invoked)
            if highest is not None and highest[0] > bounds.stable:
                yield told("the last stable offset fell", place=place, stable=bounds.stable, before=highest[0])


def uncommitted_again(index: Index) -> Iterator[str]:
    """What an earlier read showed, a later one does not."""
    for each in missing(index):
        if each.was_seen_before:
            yield _lacks("it was shown before", each)


def stale_reads(index: Index) -> Iterator[str]:
    """A read that began after a commit had been acknowledged does not reach it, and nothing open holds it back."""
    for each in missing(index):
        if each.was_acked_before:
            yield _lacks("acknowledged before the read began", each)
    yield from _stale_bounds(index)
    committed: Iterable[Txn] = (each for each in index.txns.values() if each.ended is Ended.COMMITTED)
    known = [(each.commit_acked, each.position, each) for each in committed if each.position is not None]
    positions = Latest(each for each in known if each[0] < inf)
    for operation, read in index.done(Read):
        decided = positions.before(operation.invoked)
        if read.position is None or read.as_of or decided is None:
            continue
        if decided[0] > read.position:
            yield told("a snapshot below a commit", position=read.position, decided=decided[0], txn=decided[1].name)


def _stale_bounds(index: Index) -> Iterator[str]:
    offsets = {
        place: Latest((each.acked, each.offset or 0, each) for each in ladder.rungs if each.acked < inf)
        for place, ladder in index.ladders.items()
    }
    for operation, call, place, bounds in index.bounds:
        if not isinstance(call, Read) or call.as_of:
            continue
        last = offsets[place].before(operation.invoked) if place in offsets else None
        if last is not None and last[0] >= bounds.high:
            yield told(
                "the high watermark is below what was acknowledged", place=place, high=bounds.high, **_of(last[1])
            )
        # A last stable offset is never below the log start, whatever stands there.
        if bounds.start < bounds.stable < bounds.high:
            holding = index.value_at(place, bounds.stable)
            if holding is not None and _was_over(holding, operation.invoked):
                yield told("nothing open holds it back", place=place, stable=bounds.stable, **_of(holding))


def _of(written: Written) -> dict[str, object]:
    return {"value": written.write.value, "offset": written.offset}


def _was_over(written: Written, moment: float) -> bool:
    if written.txn is None:
        return written.acked < moment
    return any(returned(each) < moment and each.outcome is Outcome.OK for each, _ in written.txn.ends)


def wrong_sums(index: Index) -> Iterator[str]:
    """The sum of all accounts is not nothing in a snapshot that has all of them."""
    accounts = index.topics.accounts - index.topics.compacted - index.topics.scratch
    places = {each.place for each in index.writes.values() if each.place[0] in accounts and each.offset is not None}
    for operation, read in index.done(Read):
        whole = all(place in read.bounds and not read.bounds[place].start for place in places)
        if not whole or not (read.level is Level.SNAPSHOT or (read.final and read.level is Level.COMMITTED)):
            continue
        shown = (index.writes.get(seen.value) for seen in read.records if seen.place[0] in accounts)
        total = sum(each.write.amount for each in shown if each is not None)
        if total != 0:
            yield told("the accounts do not sum up", total=total, position=read.position, by=operation.process)


def changed_by_upkeep(index: Index) -> Iterator[str]:
    """Maintenance ran between two reads, and they show different records where both show any."""
    upkeep = Upkeep(index)
    for each in missing(index):
        sighting = each.written.sighting
        if each.was_seen_before and sighting is not None and upkeep.was_between(sighting.first, each.operation):
            yield _lacks("shown before maintenance, and not after", each)
    for clash in index.clashes:
        if clash.kind != "resent" and upkeep.was_between(clash.before, clash.after):
            yield told("moved by maintenance", place=clash.place, offset=clash.offset, values=sorted(set(clash.values)))
