"""Nobody notices a compaction: random histories, with everything read before and after each.

Every history is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.simulation.ageing import ACCOUNTS, EVENTS, KEPT, SNAPSHOT_RETENTION_MS, Ageing, Consuming
from tests.simulation.picture import CleanedTopic, Picture, Place, Places, Row, living, picture, retained_positions
from txntable.compaction.compactor import CompactionOptions, compact
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.partition.partition_log import PartitionLogs
from txntable.warehouse.warehouse import Warehouse

COMPACTED = (ACCOUNTS, KEPT)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few records are large already: so some stay where they are, and several are written at once."""
    key = replace(TOPIC_CONFIG["segment.bytes"], lowest=1)
    monkeypatch.setattr(
        "txntable.format.topic_config.TOPIC_CONFIG", MappingProxyType({**TOPIC_CONFIG, "segment.bytes": key})
    )


def age(seed: int) -> None:
    ageing = Ageing(seed)
    models = {topic: CleanedTopic(ageing.config[topic]) for topic in COMPACTED}
    for _ in range(ageing.random.randint(2, 5)):
        ageing.live(ageing.random.randint(4, 16))
        check_compaction(ageing, models)
    ageing.end()
    check_compaction(ageing, models)
    check_end(ageing)


def check_compaction(ageing: Ageing, models: dict[str, CleanedTopic]) -> None:
    warehouse = ageing.fresh()
    warehouse.complete()
    for topic in ageing.partitions:
        warehouse.topic_log(topic).catch_up()
    places, retained = where_to_look(ageing, warehouse)
    before = {topic: picture(warehouse, topic, places) for topic in ageing.partitions}
    expected = {
        topic: model.after(ageing, topic, before[topic].files, SNAPSHOT_RETENTION_MS) for topic, model in models.items()
    }

    options = CompactionOptions(memory_bytes=ageing.random.choice([1, 4000, 1 << 28]), commit_bytes=4000)
    for report in compact(ageing.fresh(), options=options):
        assert (report.failures, report.lost) == ((), 0)

    reader = ageing.random.choice([ageing.fresh(), warehouse])
    for topic in ageing.partitions:
        after = picture(reader, topic, places)
        check_same_facts(before[topic], after)
        assert before[topic].merged_through <= after.merged_through <= min(retained)
        if topic == EVENTS:
            check_same(before[topic], after, retained)
        else:
            check_compacted(before[topic], after, retained)
            if ageing.config[topic]["min.cleanable.dirty.ratio"] == "0":
                assert after.files == expected[topic]
        check_fold(ageing, topic)


def where_to_look(ageing: Ageing, warehouse: Warehouse) -> tuple[Places, frozenset[int]]:
    """Places to look at, and which of the positions are retained: of many, some."""
    now_ms = ageing.site.time.instant().wall_ms
    positions = range(warehouse.transactions.refresh() + 1)
    retained = list(retained_positions(warehouse, now_ms, SNAPSHOT_RETENTION_MS))
    some = {*some_of(ageing, retained, 4), retained[0], retained[-1]}
    versions = {
        topic: frozenset(some_of(ageing, range(warehouse.topic_log(topic).public.table.next_version), 3))
        for topic in ageing.partitions
    }
    times_ms = tuple(ageing.random.randint(now_ms - 600 * 60_000, now_ms) for _ in range(3))
    return Places(frozenset(some | some_of(ageing, positions, 4)), versions, times_ms), frozenset(retained)


def some_of(ageing: Ageing, many: Sequence[int], count: int) -> set[int]:
    return set(ageing.random.sample(many, min(count, len(many))))


def check_same_facts(before: Picture, after: Picture) -> None:
    """What holds of every topic."""
    assert {name: fact for name, fact in before.facts.items() if name != "times"} == {
        name: fact for name, fact in after.facts.items() if name != "times"
    }
    for version, rows in before.versions.items():
        assert after.versions[version] == rows, f"version {version} of the public table"
    for place, row in after.uncommitted.items():
        assert before.uncommitted[place] == row
    stable = {p.partition: found.offset for p, found in after.facts["latest read_committed"].items() if found}
    assert after.committed == {place: row for place, row in after.files.items() if place[1] < stable[place[0]]}
    assert after.files.items() <= after.uncommitted.items()


def check_same(before: Picture, after: Picture, retained: frozenset[int]) -> None:
    """A topic that is not compacted: only aborted records are gone, and positions that are too long ago."""
    assert after.files == before.files
    assert after.facts["times"] == before.facts["times"]
    for position, rows in before.snapshots.items():
        if position in retained or after.snapshots[position] is not None:
            assert after.snapshots[position] == rows, f"snapshot at {position}"
        if position >= after.merged_through:
            assert after.at(position) == before.at(position), f"snapshot at {position} in SQL"


def check_compacted(before: Picture, after: Picture, retained: frozenset[int]) -> None:
    """Each key has the value that it had, in every snapshot too; the records that stay are what they were."""
    assert after.files.items() <= before.files.items()
    assert living(after.files) == living(before.files)
    for position, rows in before.snapshots.items():
        if position >= after.merged_through:
            assert living(after.at(position)) == living(before.at(position)), f"snapshot at {position} in SQL"
        now = after.snapshots[position]
        if position in retained or now is not None:
            assert rows is not None, f"snapshot at {position} came back"
            assert now is not None, f"snapshot at {position} is gone"
            assert now.items() <= rows.items()
            assert living(now) == living(rows), f"snapshot at {position}"


def check_fold(ageing: Ageing, topic: str) -> None:
    """Who followed the log, who opens it, and who starts from a checkpoint of it, know the same."""
    followed, opened = (each.topic_log(topic).segments for each in (ageing.reader, ageing.fresh()))
    followed.refresh()
    opened.refresh()
    restored = PartitionLogs(topic)
    restored.restore(opened.table)
    assert state(followed.fold) == state(opened.fold) == state(restored)


def state(logs: PartitionLogs) -> tuple:
    opened = {key: (dict(t.first_offsets), set(t.batches)) for key, t in logs.open.items()}
    return (logs.settings, logs.producers, logs.markers, opened, logs.cleanings)


def check_end(ageing: Ageing) -> None:
    """Everything promised is there once; consumers saw it in order, wherever they stood when it was compacted."""
    warehouse = ageing.fresh()
    events = picture(warehouse, EVENTS, Places()).files
    assert sorted(row["value"].rstrip(b".").decode() for row in events.values()) == sorted(
        ageing.promised[EVENTS].elements()
    )
    for topic, consumers in ageing.consuming.items():
        rows = picture(warehouse, topic, Places()).files
        tags = {row.get("tag") or row.get("value", b"").rstrip(b".").decode() for row in rows.values()}
        assert tags - {""} <= set(ageing.promised[topic])
        for consuming in consumers:
            check_seen(consuming, topic, rows)


def check_seen(consuming: Consuming, topic: str, rows: Mapping[Place, Row]) -> None:
    assigned = {partition.partition for partition in consuming.consumer.assignment()}
    for partition in assigned:
        offsets = [offset for offset, *_ in consuming.seen[partition]]
        assert offsets == sorted(set(offsets))
        there = {offset: row for (p, offset), row in rows.items() if p == partition}
        assert set(there) <= set(offsets)
        if topic == EVENTS and consuming.level == "read_committed":
            assert offsets == sorted(there)


def seeds() -> list[int]:
    if "TXNTABLE_SEED" in os.environ:
        return [int(os.environ["TXNTABLE_SEED"])]
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-4").partition("-")
    return list(range(int(first), int(last) + 1))


def run_seeds(run: Callable[[int], None], part: int) -> None:
    """Run half of the seeds; a failure names its own."""
    for seed in seeds()[part::2]:
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"TXNTABLE_SEED={seed}")
            raise


@pytest.mark.parametrize("part", range(2))
def test_nobody_notices_a_compaction_in_any_history(part: int) -> None:
    run_seeds(age, part)
