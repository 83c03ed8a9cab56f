"""Rules about transactions: cycles, torn ones, wrong answers, zombies, epochs, markers (8, 9, 13-15, 18, 19, 23)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, pairwise

from tests.checker.evidence import Decision, Marker
from tests.checker.finding import told
from tests.checker.graph import cycles
from tests.checker.history_index import Index
from tests.checker.ladder import Latest
from tests.checker.operations import CommitOffsets, End, Init, Level, Operation, Outcome, Place, Poll, Read, Send
from tests.checker.written import Ended, Txn, Written, returned


def read_cycles(index: Index) -> Iterator[str]:
    """Committed transactions have read from each other, around in a circle."""
    edges: dict[str, set[str]] = defaultdict(set)
    for _, poll in index.done(Poll):
        reader = None if poll.txn is None else index.txns.get(poll.txn)
        if reader is None or reader.ended is not Ended.COMMITTED:
            continue
        for seen in poll.records:
            written = index.writes.get(seen.value)
            writer = None if written is None else written.txn
            if writer is not None and writer is not reader and writer.ended is Ended.COMMITTED:
                edges[writer.name].add(reader.name)
    return (told("read from each other", txns=each) for each in cycles(edges))


def write_cycles(index: Index) -> Iterator[str]:
    """Committed transactions stand in a different order in different partitions, as Kafka's may."""
    edges: dict[str, set[str]] = defaultdict(set)
    for ladder in index.ladders.values():
        names = [written.txn.name for written in ladder.rungs if written.txn is not None]
        for before, after in pairwise(names):
            if before != after:
                edges[before].add(after)
    return (told("written in different orders", txns=each) for each in cycles(edges))


def torn_transactions(index: Index) -> Iterator[str]:
    """A record of a transaction was seen and another one never will be; or it failed, and something of it was seen."""
    final = [read for _, read in index.done(Read) if read.final and read.level is not Level.UNCOMMITTED]
    for txn in index.txns.values():
        seen = [each for each in txn.writes if each.is_seen]
        if not seen:
            continue
        if txn.ended is Ended.ABORTED:
            yield told("seen of an aborted transaction", txn=txn.name, values=[each.write.value for each in seen])
        else:
            lost = [each.write.value for each in txn.writes if _is_never_seen(index, each, final)]
            if lost:
                yield told("never seen, and others of it are", txn=txn.name, values=lost)


def _is_never_seen(index: Index, written: Written, final: list[Read]) -> bool:
    if written.is_seen or not written.is_present or not index.is_judged(written.place):
        return False
    if index.may_be_compacted(written):
        return False
    told_of = (read.bounds.get(written.place) for read in final)
    # Of what nobody knows the offset of, nothing may have been deleted.
    return any(bounds is not None and (written.offset or 0) >= bounds.start for bounds in told_of)


def crossed_transactions(index: Index) -> Iterator[str]:
    """A record, or a marker, is decided by the end of another transaction than its own."""
    for record in index.evidence.records:
        written = index.writes.get(record.value)
        txn = None if written is None else written.txn
        if txn is None or txn.owner is None or record.producer_id is None:
            continue
        if (record.producer_id, record.epoch) != txn.owner:
            owner = f"{record.producer_id}:{record.epoch}"
            yield told("stored as another's", value=record.value, txn=txn.name, stored=owner, owner=_owner(txn))
    decisions = _decisions(index)
    for marker in index.evidence.markers:
        decision = decisions.get((marker.producer_id, marker.epoch))
        if decision is not None and decision.position != marker.position:
            yield told("its marker is of another decision", **_marker(marker), decided=decision.position)


def _owner(txn: Txn) -> str:
    return "unknown" if txn.owner is None else f"{txn.owner[0]}:{txn.owner[1]}"


def _decisions(index: Index) -> dict[tuple[int, int], Decision]:
    return {(each.producer_id, each.epoch): each for each in index.evidence.decisions}


def _marker(marker: Marker) -> dict[str, object]:
    owner = f"{marker.producer_id}:{marker.epoch}"
    return {"place": marker.place, "owner": owner, "committed": marker.committed, "position": marker.position}


def wrong_decisions(index: Index) -> Iterator[str]:
    """A client was told how its transaction ended, and it ended otherwise."""
    final = [read for _, read in index.done(Read) if read.final and read.level is not Level.UNCOMMITTED]
    shown = [{seen.value for seen in read.records} for read in final]
    for txn in index.txns.values():
        commits, aborts = txn.told(True, Outcome.OK), txn.told(False, Outcome.OK)
        committed = txn.decision is not None and txn.decision.committed
        aborted = txn.decision is not None and not txn.decision.committed
        if aborts and (committed or any(each.is_seen for each in txn.writes)):
            yield told("told that it is aborted", txn=txn.name, owner=_owner(txn), committed=committed)
        if commits and (aborted or aborts):
            yield told("told that it is committed, and it is aborted", txn=txn.name, owner=_owner(txn))
        for read, values in zip(final, shown, strict=True) if commits else ():
            reached = [each for each in txn.writes if _is_reached(index, each, read)]
            if reached and not any(each.write.value in values for each in reached):
                yield told("told that it is committed, and nothing of it is there", txn=txn.name, owner=_owner(txn))


def _is_reached(index: Index, written: Written, read: Read) -> bool:
    bounds = read.bounds.get(written.place)
    if bounds is None or written.acked_append is None or not index.is_judged(written.place):
        return False
    gone = bounds.start > 0 if written.offset is None else written.offset < bounds.start
    return not gone and not index.may_be_compacted(written)


def zombies(index: Index) -> Iterator[str]:
    """An older epoch got something done after a newer one was given out."""
    inits: dict[str, list[tuple[float, float, object]]] = defaultdict(list)
    names: dict[int, str] = {}
    newest: dict[str, Latest] = {}
    for operation, init in index.done(Init):
        if init.producer_id is not None and init.epoch is not None:
            names[init.producer_id] = init.transactional_id
            inits[init.transactional_id].append((returned(operation), _rank(init.producer_id, init.epoch), init))
    newest = {name: Latest(known) for name, known in inits.items()}
    for operation, what, producer_id, epoch in _fenced_calls(index):
        latest = newest[names[producer_id]].before(operation.invoked) if producer_id in names else None
        if latest is not None and latest[0] > _rank(producer_id, epoch):
            yield told("done by a fenced producer", call=what, owner=f"{producer_id}:{epoch}", by=operation.process)
    yield from _late_epochs(index)


def _rank(producer_id: int, epoch: int) -> float:
    # Producer ids of a transactional id only rise, and have 64 bits: an exact order, though Latest says float.
    return producer_id * 2**64 + epoch


def _fenced_calls(index: Index) -> Iterator[tuple[Operation, str, int, int]]:
    for operation, send in index.done(Send):
        if send.writes and send.txn is not None and send.producer_id is not None and send.epoch is not None:
            yield operation, "send", send.producer_id, send.epoch
    for operation, end in index.done(End):
        owner = index.txns[end.txn].owner
        # A second answer about what was committed before is no new commit.
        again = min(index.txns[end.txn].told(True, *Outcome), key=lambda each: each.invoked, default=operation)
        if end.commit and owner is not None and again is operation:
            yield operation, "commit", *owner
    for operation, offsets in index.done(CommitOffsets):
        owner = None if offsets.txn is None else index.txns[offsets.txn].owner
        if owner is not None:
            yield operation, "offsets", *owner


def _late_epochs(index: Index) -> Iterator[str]:
    """Return decisions and records that stand above the end of their epoch."""
    given: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for each in index.evidence.epochs:
        given[each.producer_id].append((-each.epoch, each.version))
    # Of each epoch: the first version that gave it or a higher one.
    since = {
        producer_id: (sorted(epochs), list(accumulate((version for _, version in sorted(epochs)), min)))
        for producer_id, epochs in given.items()
    }
    for decision in index.evidence.decisions:
        epochs, versions = since.get(decision.producer_id, ([], []))
        newer = bisect_left(epochs, (-decision.epoch, -1))
        if newer and versions[newer - 1] < decision.position:
            owner = f"{decision.producer_id}:{decision.epoch}"
            yield told(
                "decided after a newer epoch", owner=owner, position=decision.position, since=versions[newer - 1]
            )
    ends = {(each.topic_id, each.place, each.producer_id, each.epoch): each for each in index.evidence.markers}
    for batch in index.evidence.batches:
        if batch.producer_id is None or batch.epoch is None:
            continue
        marker = ends.get((batch.topic_id, batch.place, batch.producer_id, batch.epoch))
        if marker is not None and batch.base > marker.offset:
            yield told("a record above the end of its epoch", **_marker(marker), offset=batch.base, path=batch.path)


def reused_epochs(index: Index) -> Iterator[str]:
    """An epoch is given out twice, or one is lower than one that was given before."""
    given: dict[tuple[int, int], Init] = {}
    known: dict[str, list[tuple[float, float, object]]] = defaultdict(list)
    fresh = [(operation, init) for operation, init in index.done(Init) if not init.kept]
    for operation, init in fresh:
        if init.producer_id is None or init.epoch is None:
            continue
        owner = init.producer_id, init.epoch
        if owner in given:
            yield told("given out twice", owner=f"{owner[0]}:{owner[1]}", transactional_id=init.transactional_id)
        given[owner] = init
        known[init.transactional_id].append((returned(operation), _rank(*owner), init))
    latest = {name: Latest(each) for name, each in known.items()}
    for operation, init in fresh:
        before = latest[init.transactional_id].before(operation.invoked) if init.transactional_id in latest else None
        if before is not None and init.epoch is not None and before[0] > _rank(init.producer_id or 0, init.epoch):
            yield told("lower than before", transactional_id=init.transactional_id, epoch=init.epoch)
    yield from _shared_epochs(index)


def _shared_epochs(index: Index) -> Iterator[str]:
    users: dict[tuple[int, int], Txn] = {}
    for txn in index.txns.values():
        if txn.owner is not None and txn.has_effects:
            other = users.setdefault(txn.owner, txn)
            if other is not txn:
                yield told("two transactions of one epoch", owner=_owner(txn), txns=[other.name, txn.name])
    owners: dict[int, str] = {}
    highest: dict[int, int] = {}
    for each in sorted(index.evidence.epochs, key=lambda one: one.version):
        if owners.setdefault(each.producer_id, each.transactional_id) != each.transactional_id:
            yield told("one producer id for two", producer_id=each.producer_id, transactional_id=each.transactional_id)
        if each.epoch < highest.get(each.producer_id, 0):
            yield told("an epoch fell", producer_id=each.producer_id, epoch=each.epoch, version=each.version)
        highest[each.producer_id] = max(each.epoch, highest.get(each.producer_id, 0))


def decision_conflicts(index: Index) -> Iterator[str]:
    """A transaction is decided twice, not alike or not at all in what it enrolled, or where it enrolled nothing."""
    decisions: dict[tuple[int, int], Decision] = {}
    for decision in index.evidence.decisions:
        first = decisions.setdefault((decision.producer_id, decision.epoch), decision)
        if first is not decision:
            owner = f"{decision.producer_id}:{decision.epoch}"
            yield told("decided twice", owner=owner, positions=[first.position, decision.position])
    marked: dict[tuple[str, Place, int, int], Marker] = {}
    outcomes: dict[tuple[int, int], Marker] = {}
    for marker in index.evidence.markers:
        owner_key = marker.producer_id, marker.epoch
        if marked.setdefault((marker.topic_id, marker.place, *owner_key), marker) is not marker:
            yield told("two markers in one partition", **_marker(marker), offset=marker.offset)
        if outcomes.setdefault(owner_key, marker).committed is not marker.committed:
            yield told("markers that do not agree", **_marker(marker))
        yield from _against(index, decisions.get(owner_key), marker)
    if index.evidence.whole:
        yield from _unmarked(index, decisions, marked)


def _against(index: Index, decision: Decision | None, marker: Marker) -> Iterator[str]:
    if decision is None:
        # What hangs is aborted by a marker of its own, without a decision.
        if marker.committed and index.evidence.whole:
            yield told("a marker of no decision", **_marker(marker))
    elif decision.committed is not marker.committed:
        yield told("a marker against its decision", **_marker(marker))
    elif (marker.topic_id, marker.place) not in decision.enrolled:
        yield told("a marker where nothing was enrolled", **_marker(marker))


def _unmarked(
    index: Index,
    decisions: dict[tuple[int, int], Decision],
    marked: dict[tuple[str, Place, int, int], Marker],
) -> Iterator[str]:
    for owner, decision in decisions.items():
        for topic_id, place in sorted(decision.enrolled):
            if index.is_judged(place) and (topic_id, place, *owner) not in marked:
                yield told("no marker where it was enrolled", place=place, owner=f"{owner[0]}:{owner[1]}")
