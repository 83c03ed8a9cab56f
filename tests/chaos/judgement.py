"""The end of a chaos run: heal, let the copy come to its end, fence everybody, look for the last time, and judge.

Owns the order: whoever still works could make a last look out of date.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.chaos.arena import PATIENCE_MS, Arena
from tests.chaos.exchange import disagreements
from tests.chaos.exchange import settle as settle_orders
from tests.chaos.life import Life
from tests.chaos.maintenance import Compacting, vacuumed
from tests.chaos.premises import MERCHANTS, PARTITIONS, Site
from tests.chaos.reading import read
from tests.chaos.worker import living
from tests.checker.check import check
from tests.checker.evidence import Evidence
from tests.checker.finding import Finding
from tests.checker.gathering import Stored, gather
from tests.checker.history_file import read_histories
from tests.checker.operations import End, Init, Level, Maintain, Operation, Outcome, Poll, Read, Send, Topics
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

_BATCH = re.compile(r"\S+ (.+)")
_JUDGES = ("judge", "judge-last")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run came to.

    Attributes
    ----------
    history : sequence of Operation
        Of all processes.
    evidence : Evidence
        What the store shows in the end.
    findings : sequence of Finding
        Of the checker.
    repeated_batches : dict of str to int
        Batches that were committed more than once, and how often.
    disagreements : set of str
        Transactions that an external database has ended otherwise.
    """

    history: Sequence[Operation]
    evidence: Evidence
    findings: Sequence[Finding]
    repeated_batches: dict[str, int]
    disagreements: set[str] = field(default_factory=set)

    @property
    def violations(self) -> list[Finding]:
        """What must not be."""
        return [finding for finding in self.findings if finding.violation]


def end(arena: Arena) -> Judgement:
    """End a run, and judge it."""
    site, scenario = arena.site, arena.scenario
    with living(site, _JUDGES[0]) as life:
        arena.stop(but=("copier", "static", "coordinator"))
        for source, group in scenario.checked.copies.values():
            arena.wait_until(f"copied {source} to the end", partial(is_copied, life.warehouse, source, group))
        arena.stop()
        settle(life)
        fence_all(life)
        look_twice(site, life)
    judgement = judge(sorted(Path(site.folder).glob("*.jsonl")), arena.stored, scenario.checked)
    if tuple(scenario.ids) == MERCHANTS:
        return replace(judgement, disagreements=disagreements(site, judgement.history))
    return judgement


def is_copied(warehouse: Warehouse, topic: str, group: str) -> bool:
    """Return whether a group of copiers has committed everything that there is."""
    committed = warehouse.admin().list_consumer_group_offsets(group)
    offsets = {partition: committed.get(TopicPartition(topic, partition)) for partition in range(PARTITIONS)}
    starts = {partition: found.offset for partition, found in offsets.items() if found is not None}
    if len(starts) < PARTITIONS:
        return False
    rest = warehouse.read_arrow(
        topic, isolation_level="read_committed", columns=["_partition"], starting_offsets=starts
    )
    return rest.read_all().num_rows == 0


def settle(life: Life) -> None:
    """Let a coordinator end and complete all that killed processes have left."""
    began = life.environment.instant()
    if tuple(life.scenario.ids) == MERCHANTS:
        life.insist(partial(settle_orders, life))
    while True:
        with life.recorder.calling(Maintain("coordinate")):
            life.warehouse.coordinator().run_once()
        left = life.warehouse.admin().list_transactions()
        under_way = [row for row in left if row.state.is_open or row.state.is_decided]
        if not under_way:
            return
        assert life.environment.since_ms(began) < PATIENCE_MS, f"never decided and complete: {under_way}"
        life.rest(500)


def fence_all(life: Life) -> None:
    """Take every id from whoever may still think that it has it."""
    for transactional_id in life.scenario.ids:
        with life.recorder.calling(Init(transactional_id)) as call:
            (identity,) = life.warehouse.admin().fence_producers([transactional_id]).values()
            call.saw(producer_id=identity[0], epoch=identity[1])


def look_twice(site: Site, life: Life) -> None:
    """Read everything at every level; then once more, when all is merged, by a process that has seen nothing yet."""
    for level in Level:
        read(life, level)
    life.environment.sleep_ms(life.scenario.settings["snapshot_retention_ms"] + 500)
    Compacting(life).compact()
    with living(site, _JUDGES[1]) as last:
        for level in Level:
            read(last, level, final=True)


def judge(histories: Sequence[Path], stored: Callable[[], Stored], topics: Topics) -> Judgement:
    """Judge what processes have recorded by what the store shows."""
    history = read_histories(histories)
    evidence = gather(stored())
    return Judgement(history, evidence, check(history, evidence, topics), repeated_batches(history))


def repeated_batches(history: Sequence[Operation]) -> dict[str, int]:
    """Return the batches of which more than one transaction is visible in the end."""
    calls = [operation.call for operation in history]
    (final,) = (call for call in calls if isinstance(call, Read) and call.final and call.level is Level.SNAPSHOT)
    visible = {record.value for record in final.records}
    runs: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if isinstance(call, Send) and call.txn is not None and visible.intersection(each.value for each in call.writes):
            batch = _BATCH.fullmatch(call.txn)
            if batch is not None:
                runs[batch[1]].add(call.txn)
    return {batch: len(committed) for batch, committed in runs.items() if len(committed) > 1}


def figures(arena: Arena, judgement: Judgement) -> dict[str, int]:
    """Return what a report says of a run: counts, and the longest pause in rounded seconds.

    What the judge itself read is not among the snapshots and polls.
    """
    stored = arena.stored()
    ends = Counter((one.call.commit, one.outcome) for one in judgement.history if isinstance(one.call, End))
    done = [one.call for one in judgement.history if one.outcome is Outcome.OK and one.process not in _JUDGES]
    return {
        **arena.counts,
        "longest_pause_s": round(arena.longest_pause_ms / 1000),
        "committed": ends[True, Outcome.OK],
        "aborted": ends[False, Outcome.OK],
        "refused": ends[True, Outcome.FAIL],
        "unknown": ends[True, Outcome.INFO] + ends[False, Outcome.INFO],
        "records": sum(len(one.call.writes) for one in judgement.history if isinstance(one.call, Send)),
        "cleaned": len(stored.entries.keys() - stored.objects.keys()),
        "operations": len(judgement.history),
        "snapshots": sum(isinstance(call, Read) and call.level is Level.SNAPSHOT for call in done),
        "polled": sum(isinstance(call, Poll) and call.level is Level.COMMITTED and bool(call.records) for call in done),
        "vacuumed": vacuumed(arena.site),
        "merged": sum(entry.operation == "COMPACT" for entry in judgement.evidence.entries),
        "findings": len(judgement.findings) - len(judgement.violations),
        "violations": len(judgement.violations) + len(judgement.repeated_batches) + len(judgement.disagreements),
    }
