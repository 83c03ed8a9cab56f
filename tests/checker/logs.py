"""Rules about what the store shows in the end: liveness, versions, commits, files (22, 25-27, 29)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.checker.evidence import Entry
from tests.checker.finding import told
from tests.checker.history_index import Index
from tests.checker.operations import Look, Outcome, Read

SMALLEST_RETENTION_MS = 86_400_000
"""How long every log keeps its entries, PROTOCOL §4.5."""


def hanging_transactions(index: Index) -> Iterator[str]:
    """After everything was healed and fenced, a transaction is still open."""
    for place, producer_id, epoch in sorted(index.evidence.undecided):
        yield told("still open", place=place, owner=f"{producer_id}:{epoch}")
    final = [call.bounds for _, call in index.done(Read) if call.final]
    for bounds_of in (index.evidence.bounds, *final):
        for place, bounds in bounds_of.items():
            if bounds.stable < bounds.high:
                yield told("held back", place=place, stable=bounds.stable, high=bounds.high)


def _logs(index: Index) -> dict[str, list[Entry]]:
    logs: dict[str, list[Entry]] = defaultdict(list)
    for entry in index.evidence.entries:
        logs[entry.log].append(entry)
    return {log: sorted(entries, key=lambda each: each.version) for log, entries in logs.items()}


def divergent_versions(index: Index) -> Iterator[str]:
    """One version has two contents, or there is none."""
    # Of each version what the next entry's writer should have seen, by the bytes that are there.
    stored = {(each.log, each.version - 1): each.computed for each in index.evidence.entries if each.computed}
    chains: dict[tuple[str, int], str] = {}
    for operation, look in index.done(Look):
        version = look.log, look.version
        if not look.chain == chains.setdefault(version, look.chain) == stored.get(version, look.chain):
            yield told("two contents of one version", log=look.log, version=look.version, by=operation.process)
    for log, entries in _logs(index).items():
        for below, entry in pairwise(entries):
            if entry.version == below.version and entry.commit_id != below.commit_id:
                yield told("two entries of one version", log=log, version=entry.version)
            elif entry.version > below.version + 1:
                yield told("a version is missing", log=log, version=below.version + 1)
        for entry in entries:
            if entry.chain is not None and entry.computed is not None and entry.chain != entry.computed:
                yield told("the entry below is not what its writer saw", log=log, version=entry.version)


def _believed_recreations(index: Index) -> Iterator[str]:
    """What landed in a freed slot may lie there, as long as nobody could take it for the log (PROTOCOL §4.2 rule 3)."""
    built_on = {(each.log, each.previous) for each in index.evidence.entries}
    built_on |= {(each.log, each.previous) for each in index.evidence.recreated}
    for each in index.evidence.recreated:
        if each.after_ms < SMALLEST_RETENTION_MS:
            yield told("its slot was freed too early", log=each.log, version=each.version, after_ms=each.after_ms)
        if (each.log, each.commit_id) in built_on:
            yield told("built on in a slot that was used before", log=each.log, version=each.version)


def lost_commits(index: Index) -> Iterator[str]:
    """A commit is not an ancestor of the head: it took a slot that was freed too early, or it is gone."""
    yield from _believed_recreations(index)
    for log, entries in _logs(index).items():
        ids = {entry.version: entry.commit_id for entry in entries}
        for entry in entries:
            below = ids.get(entry.version - 1)
            if below is not None and entry.previous != below:
                yield told(
                    "made on another entry", log=log, version=entry.version, previous=entry.previous, below=below
                )
    for txn in index.txns.values():
        for operation, end in txn.ends:
            told_of = end.position if operation.outcome is Outcome.OK and end.commit else None
            decided = None if txn.decision is None else txn.decision.position
            gone = decided is None and index.evidence.whole and txn.has_effects
            if told_of is not None and (gone or (decided is not None and decided != told_of)):
                yield told("acknowledged at another version", txn=txn.name, position=told_of, decided=decided)


def double_commits(index: Index) -> Iterator[str]:
    """One commit has two versions, or one segment is registered twice."""
    for log, entries in _logs(index).items():
        versions: dict[str, int] = {}
        for entry in entries:
            if versions.setdefault(entry.commit_id, entry.version) != entry.version:
                first = versions[entry.commit_id]
                yield told("committed twice", log=log, commit_id=entry.commit_id, versions=[first, entry.version])
    paths: dict[tuple[str, str], int] = {}
    for batch in index.evidence.batches:
        key = batch.topic_id, batch.path
        if key in paths:
            yield told("registered twice", path=batch.path, versions=[paths[key], batch.version])
        paths[key] = batch.version


def dangling_files(index: Index) -> Iterator[str]:
    """A live version names what is not there, or not whole; or what nobody names stays for ever."""
    for each in index.evidence.references:
        if each.found_size != each.named_size:
            yield told("not as it is named", path=each.path, named=each.named_size, found=each.found_size)
    limit = index.evidence.orphan_age_ms
    for path, age in index.evidence.orphans.items():
        if limit and age > limit:
            yield told("named by nobody, and still there", path=path, age_ms=age, limit_ms=limit)
