"""Rules about records as they were written: one offset each, none lost, in order (1-4, 12, 20)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.checker.evidence import Batch
from tests.checker.finding import told
from tests.checker.history_index import Index
from tests.checker.missing import end_of, missing
from tests.checker.operations import Outcome, Place, Read, Send
from tests.checker.written import Clash, Written, returned


def inconsistent_offsets(index: Index) -> Iterator[str]:
    """Two values stand at one offset."""
    return _clashes(index, "offset", "two values at one offset")


def duplicates(index: Index) -> Iterator[str]:
    """One value stands at two offsets."""
    return _clashes(index, "value", "one value at two offsets")


def _clashes(index: Index, kind: str, what: str) -> Iterator[str]:
    found: Iterable[Clash] = (each for each in index.clashes if each.kind == kind)
    return (told(what, place=each.place, offset=each.offset, values=sorted(set(each.values))) for each in found)


def lost_writes(index: Index) -> Iterator[str]:
    """A read went past a record that is there for everybody, and nobody ever saw it."""
    reported: set[str] = set()
    for each in missing(index):
        written = each.written
        if not written.is_seen and written.write.value not in reported:
            reported.add(written.write.value)
            yield told("no reader ever saw it", value=written.write.value, place=written.place, offset=written.offset)


def unseen(index: Index) -> Iterator[str]:
    """The last look does not reach a record that was acknowledged; maybe others will."""
    for _, read in index.done(Read):
        for written in index.writes.values() if read.final else ():
            judged = written.is_present and index.is_judged(written.place) and not index.may_be_compacted(written)
            if judged and _is_beyond(read, written):
                yield told(
                    "the last look does not reach it",
                    value=written.write.value,
                    place=written.place,
                    offset=written.offset,
                )


def _is_beyond(read: Read, written: Written) -> bool:
    bounds = read.bounds.get(written.place)
    if bounds is not None and written.offset is not None:
        return written.offset >= end_of(read, bounds)
    # Where it stands was never told: it was not deleted where nothing was.
    starts = [each.start for place, each in read.bounds.items() if place[0] == written.place[0]]
    return written.offset is None and bool(starts) and not any(starts)


def nonmonotonic_sends(index: Index) -> Iterator[str]:
    """What a producer sent later stands lower in the same partition."""
    last: dict[tuple[str, Place], tuple[float, int]] = {}
    first_sent: set[str] = set()
    for operation, send in index.done(Send):
        for write in send.writes:
            if write.offset is None or write.value in first_sent or not index.is_judged(write.place):
                continue
            first_sent.add(write.value)
            key = send.producer, write.place
            moment, offset = last.get(key, (0.0, -1))
            if write.offset <= offset and moment <= operation.invoked:
                yield told(
                    "sent later, and it stands lower",
                    value=write.value,
                    place=write.place,
                    offset=write.offset,
                    earlier=offset,
                )
            # Within one call what was sent before returned at once, as far as order goes.
            last[key] = operation.invoked, max(offset, write.offset)
        for place in {write.place for write in send.writes}:
            if (send.producer, place) in last:
                last[send.producer, place] = returned(operation), last[send.producer, place][1]


def wrong_sequences(index: Index) -> Iterator[str]:
    """A producer's sequences have a gap or a repetition, or a send that was tried again stands elsewhere."""
    yield from _clashes(index, "resent", "tried again, and answered with another offset")
    expected: dict[tuple[str, Place, int, int], int] = defaultdict(int)
    for batch in sorted(index.evidence.batches, key=lambda each: (each.topic_id, each.place, each.version, each.base)):
        if batch.producer_id is None or batch.epoch is None or batch.first_sequence is None:
            # Of a producer that promises at least once.
            continue
        key = batch.topic_id, batch.place, batch.producer_id, batch.epoch
        if not _follows(index, batch, batch.first_sequence, expected[key]):
            yield told(
                "not the sequence that comes next",
                place=batch.place,
                producer_id=batch.producer_id,
                epoch=batch.epoch,
                sequence=batch.first_sequence,
                expected=expected[key],
                path=batch.path,
            )
        expected[key] = max(expected[key], batch.first_sequence + batch.records)


def _follows(index: Index, batch: Batch, sequence: int, expected: int) -> bool:
    if index.topics.forgetful and not batch.transactional:
        return sequence >= expected
    return sequence == expected


def false_answers(index: Index) -> Iterator[str]:
    """What was said to be refused was done, or what was said to be done is nowhere."""
    for written in index.writes.values():
        refused = all(each.outcome is Outcome.FAIL for each in written.sends)
        if refused and written.txn is None and written.is_seen:
            yield told("refused, and it was read", value=written.write.value, place=written.place)
    for txn in index.txns.values():
        committed = txn.decision is not None and txn.decision.committed
        # Whoever else was told what: each answer counts, a late one after later transactions as well.
        for operation in txn.told(True, Outcome.FAIL) if committed else ():
            yield told("refused, and it is committed", txn=txn.name, position=txn.position, by=operation.process)
        acked = txn.told(True, Outcome.OK)
        if acked and index.evidence.whole and txn.owner is not None and txn.has_effects and txn.decision is None:
            yield told("acknowledged, and nothing decided it", txn=txn.name, owner=f"{txn.owner[0]}:{txn.owner[1]}")
