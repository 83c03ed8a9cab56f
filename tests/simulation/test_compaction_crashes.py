"""A compaction killed at every storage call, and raced at every storage call: whoever comes next finishes it.

The storage calls are found by running it, so that a new one cannot be forgotten.  PROTOCOL.md §11 says what is true
at each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import WRITES, Fault, Operation, Step, at, on
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.picture import Place, Row, living, records_in
from tests.simulation.site import TWO_COLUMNS, Site
from tests.simulation.test_crashes import (
    abort,
    append_plain,
    committed_transfers,
    prepared,
    recover,
    send,
    transfer,
)
from txntable.compaction.compactor import compact
from txntable.compaction.spec import TopicReport
from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.log.cleanup import clean_up
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LATEST, LONE, PLAIN = "latest", "lone", ("debit", "credit", "lone")
BY_KEY = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}


def site_to_compact(*, open_transaction: bool = False) -> Site:
    """Segments to merge, one to settle, aborted ones with their markers, old values and an old tombstone."""
    site = prepared()
    warehouse = site.open()
    warehouse.admin().create_topic(LATEST, partitions=1, schema=TWO_COLUMNS, key=["account"], config=BY_KEY)
    transfer(warehouse)
    abort(warehouse)
    append_plain(warehouse)
    warehouse.admin().create_topic(LONE, schema=TWO_COLUMNS)
    producer = warehouse.producer("keys")
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.send(LONE, row={"account": "lone", "amount": 0})
    set_values(producer, ann=1, bob=2, cid=None)
    site.advance_ms(2 * HOUR_MS)
    # The first of two cleanings, after which the tombstone may go.
    assert not any(report.failures for report in compact(site.open(), [LATEST]))
    set_values(producer, ann=3, dan=4)
    set_values(producer, dan=None)
    if open_transaction:
        going_on = warehouse.producer("going on", transaction_timeout_ms=900_000)
        going_on.init_transactions()
        going_on.begin_transaction()
        send(going_on, "open")
        going_on.flush()
    site.advance_ms(2 * HOUR_MS)
    return site


def set_values(producer, **amounts: int | None) -> None:
    with producer.transaction() as transaction:
        for account, amount in amounts.items():
            transaction.send(LATEST, row={"account": account, "amount": amount})


def compact_all(warehouse: Warehouse) -> list[TopicReport]:
    reports = compact(warehouse)
    assert not any(report.failures for report in reports)
    return reports


def records_of(warehouse: Warehouse, topic: str) -> dict[Place, Row]:
    """What the public table shows, from its rows and files alone."""
    return records_in(warehouse, topic, warehouse.topic_log(topic).public.refresh().next_version - 1)


def everything(site: Site) -> dict[str, dict[Place, Row]]:
    warehouse = site.open()
    return {topic: records_of(warehouse, topic) for topic in (*PLAIN, LATEST)}


def shape(site: Site, topics: Sequence[str] = (*PLAIN, LATEST)) -> dict[str, list]:
    """The rows of the partition logs, up to the names of merged segments; each offset is in one of them at most."""
    warehouse = site.open()
    found = {}
    for topic in topics:
        rows = []
        for add in warehouse.topic_log(topic).segments.refresh().files:
            values, tag = add.partition_values, json.loads(add.tag or "{}")
            name = add.path if values["_control"] else None
            rows.append(
                (name, *(values[c] for c in ("_partition", "_base_offset", "_last_offset")), tag.get("decided"))
            )
        data = sorted((int(row[1]), int(row[2]), int(row[3])) for row in rows if row[0] is None)
        assert all(a[0] != b[0] or a[2] < b[1] for a, b in pairwise(data)), topic
        found[topic] = sorted(rows, key=str)
    return found


def check_kept(before: dict[str, dict[Place, Row]], site: Site, where: str) -> None:
    """No record is lost, doubled or changed; of a compacted topic each key has its value."""
    after = everything(site)
    # Also what readers of everything appended see in between: no segment overlaps another, an aborted one neither.
    shape(site)
    for topic in PLAIN:
        assert after[topic] == before[topic], where
    assert after[LATEST].items() <= before[LATEST].items(), where
    assert living(after[LATEST]) == living(before[LATEST]), where


def deaths(site: Site, operation: Callable[[Warehouse], object]) -> Iterator[tuple[Site, str]]:
    """Every (site, description) in which a process died after one write of an operation.

    A death at any other of its storage calls leaves what one of these left, or what was there.
    """
    trial = site.copy().open()
    assert isinstance(trial.store, SteppingStore)
    operation(trial)
    for step in [step for step in trial.store.steps if step.operation in WRITES]:
        crashed = site.copy()
        with pytest.raises(ProcessKilled):
            operation(crashed.open(at(step.number, Fault.KILL_AFTER)))
        yield crashed, f"{step.number} {step.operation.value} {step.path}"


# -- kills --------------------------------------------------------------------------------------


def test_compaction_killed_anywhere_loses_nothing_and_the_next_one_leaves_what_one_would_have() -> None:
    site = site_to_compact()
    before = everything(site)
    whole = site.copy()
    reports = compact_all(whole.open())
    assert sum(report.merged_segments for report in reports) >= 4
    assert all(sum(getattr(r, f"{kind}_segments") for r in reports) for kind in ("written", "aborted", "settled"))
    assert sum(report.dropped_records or 0 for report in reports) >= 2

    for crashed, where in deaths(site, compact_all):
        check_kept(before, crashed, where)
        recover(crashed)
        compact_all(crashed.open())
        assert shape(crashed) == shape(whole), where
        assert everything(crashed) == everything(whole), where


def test_open_transaction_commits_after_a_compaction_that_was_killed_anywhere() -> None:
    site = site_to_compact(open_transaction=True)
    for crashed, where in deaths(site, lambda warehouse: compact(warehouse, ["debit"])):
        compact_all(crashed.open())
        resumed = crashed.open().producer("going on")
        resumed.init_transactions()
        with resumed.transaction() as transaction:
            transaction.send("credit", row={"account": "later", "amount": 1})
        assert [row["account"] for row in records_of(crashed.open(), "credit").values()].count("later") == 1, where
        assert committed_transfers_but(crashed, "later") == 1, where


def committed_transfers_but(site: Site, tag: str) -> int:
    """How many transfers are visible, beside a single record."""
    rows = list(records_of(site.open(), "credit").values())
    return sum(row["account"] == "done" for row in rows if row["account"] != tag)


def test_compaction_whose_commits_are_answered_late_or_not_at_all_is_done_once() -> None:
    """Each commit of the partition logs in turn: applied, and the answer lost."""
    site = site_to_compact()
    before, whole = everything(site), site.copy()
    compact_all(whole.open())
    number = 0
    while True:
        number += 1
        one = site.copy()
        rule = on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.LOST_ANSWER, occurrence=number)
        warehouse = one.open(rule)
        compact_all(warehouse)
        assert isinstance(warehouse.store, SteppingStore)
        check_kept(before, one, f"commit {number}")
        assert shape(one) == shape(whole), number
        if (
            sum(
                step.operation is Operation.PUT_IF_ABSENT and "_segments/" in step.path
                for step in warehouse.store.steps
            )
            < number
        ):
            break
    assert number > 4


# -- races --------------------------------------------------------------------------------------


def steps_of(site: Site) -> list[Step]:
    """The storage calls of a compaction at which another process may come by: the writes, and looks at a log."""
    warehouse = site.copy().open()
    assert isinstance(warehouse.store, SteppingStore)
    opened = len(warehouse.store.steps)
    compact_all(warehouse)
    own = warehouse.store.steps[opened:]
    steps = [step for step in own if step.operation in WRITES or "_delta_log" in step.path]
    assert len(steps) > 20
    return steps


def raced(site: Site, step: Step, other: Callable[[Warehouse], object]) -> tuple[Site, list[TopicReport]]:
    """A compaction, while which another process does something at one of its storage calls."""
    shared = site.copy()
    warehouse = shared.open()
    assert isinstance(warehouse.store, SteppingStore)

    def interrupt(now: Step) -> None:
        if now.number == step.number:
            other(shared.open())

    warehouse.store.on_step = interrupt
    return shared, compact_all(warehouse)


def report_to(reports: list[TopicReport], warehouse: Warehouse) -> None:
    reports.extend(compact_all(warehouse))


def test_of_two_compactions_one_wins_each_segment_wherever_the_second_comes_by() -> None:
    """A regression of other table formats: both commit, and the records are there twice."""
    site = site_to_compact()
    before, whole = everything(site), site.copy()
    alone = compact_all(whole.open())
    for step in steps_of(site)[::3]:
        others: list[TopicReport] = []
        shared, mine = raced(site, step, partial(report_to, others))

        where = f"{step.number} {step.operation.value} {step.path}"
        check_kept(before, shared, where)
        assert shape(shared) == shape(whole), where
        for kind in ("merged_segments", "written_segments"):
            both = sum(getattr(report, kind) for report in [*mine, *others])
            assert both == sum(getattr(report, kind) for report in alone), (kind, where)


def add_column(warehouse: Warehouse) -> None:
    warehouse.admin().add_columns("debit", [pa.field("note", pa.string())])
    producer = warehouse.producer()
    producer.send("debit", row={"account": "noted", "amount": 0, "note": "kept"}, partition=0)
    producer.flush()


def grow(warehouse: Warehouse) -> None:
    warehouse.admin().create_partitions({"debit": 3})


def clean_logs(warehouse: Warehouse) -> None:
    for topic in ("debit", LATEST):
        for log in (warehouse.topic_log(topic).segments, warehouse.topic_log(topic).public):
            log.refresh()
            log.write_checkpoint()
            clean_up(warehouse.context, log.root, DAY_MS)


def forget_producers(warehouse: Warehouse) -> None:
    warehouse.topic_log("debit").expire_producers(0)


def transfer_again(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction():
        send(producer, "done")
        send(producer, "more")


OTHERS: dict[str, Callable[[Warehouse], object]] = {
    "commits": transfer_again,
    "aborts": abort,
    "appends": append_plain,
    "adds a column": add_column,
    "adds a partition": grow,
    "cleans up logs": clean_logs,
    "forgets producers": forget_producers,
}


@pytest.mark.parametrize("other", OTHERS)
def test_compaction_keeps_what_another_process_writes_meanwhile(other: str) -> None:
    site = site_to_compact()
    before, without = everything(site), site.copy()
    OTHERS[other](without.open())
    new = added(before, everything(without))

    # Each of the others comes by at other steps.
    for step in steps_of(site)[list(OTHERS).index(other) :: 2 * len(OTHERS)]:
        shared, _ = raced(site, step, OTHERS[other])

        where = f"{step.number} {step.operation.value} {step.path}"
        after = everything(shared)
        assert added(before, after) == new, where
        assert all(before[topic].items() <= after[topic].items() for topic in PLAIN), where
        assert living(after[LATEST]) == living(before[LATEST]), where
        compact_all(shared.open())
        shape(shared)


def added(before: dict[str, dict[Place, Row]], after: dict[str, dict[Place, Row]]) -> list[Row]:
    """The records that came to any topic, without their offsets and times."""
    new = [row for topic in PLAIN for place, row in after[topic].items() if place not in before[topic]]
    return sorted(({name: row[name] for name in row if name != "_timestamp"} for row in new), key=str)


def test_compaction_of_a_topic_that_is_deleted_and_created_again_meanwhile_leaves_the_new_one_alone() -> None:
    site = site_to_compact()

    def create_again(warehouse: Warehouse) -> None:
        warehouse.admin().delete_topic("debit")
        warehouse.admin().create_topic("debit", partitions=2, schema=TWO_COLUMNS, key=["account"])
        append_plain(warehouse)

    for step in steps_of(site)[::6]:
        shared, _ = raced(site, step, create_again)

        where = f"{step.number} {step.operation.value} {step.path}"
        assert [row["account"] for row in records_of(shared.open(), "debit").values()] == ["plain"], where
        assert len(shape(shared, ["debit"])["debit"]) == 1, where


def test_compaction_of_a_topic_that_is_deleted_meanwhile_fails_nobody() -> None:
    site = site_to_compact()
    for step in steps_of(site)[::6]:
        shared, _ = raced(site, step, lambda warehouse: warehouse.admin().delete_topic("debit"))

        with pytest.raises(UnknownTopicOrPartitionError):
            shared.open().topic_log("debit").settings()
        assert not list(shared.open().topic_log("debit").segments.refresh().files)


def test_records_deleted_while_their_segments_are_merged_stay_deleted() -> None:
    site = site_to_compact()
    place = TopicPartition("debit", 0)
    kept = {at: row for at, row in everything(site)["debit"].items() if at[0] != 0 or at[1] >= 2}
    for step in steps_of(site)[::6]:
        shared, _ = raced(site, step, lambda warehouse: warehouse.admin().delete_records({place: 2}))

        where = f"{step.number} {step.operation.value} {step.path}"
        compact_all(shared.open())
        warehouse = shared.open()
        assert records_of(warehouse, "debit") == kept, where
        with suppress(OffsetOutOfRangeError):
            warehouse.read_arrow("debit", starting_offsets={0: 1}).read_all()
            pytest.fail(f"a deleted record can be asked for: {where}")
        shape(shared)


def test_snapshot_that_is_pinned_reads_the_same_while_everything_is_merged() -> None:
    """Read topic by topic, before and after a compaction is done: within the retention of snapshots."""
    site = site_to_compact()
    before = {topic: site.open().snapshot().read_arrow(topic).read_all().num_rows for topic in ("debit", "credit")}
    for step in steps_of(site)[::6]:
        seen: dict[str, int] = {}
        shared, _ = raced(site, step, partial(look, seen))

        snapshot = seen.pop("position")
        seen["credit"] = shared.open().snapshot(snapshot).read_arrow("credit").read_all().num_rows
        assert seen == before, f"{step.number} {step.path}"


def look(seen: dict[str, int], warehouse: Warehouse) -> None:
    """Pin a snapshot and read one topic of it; the other one is read when everything is merged."""
    snapshot = warehouse.snapshot()
    seen["position"] = snapshot.position
    seen["debit"] = snapshot.read_arrow("debit").read_all().num_rows


def test_transfers_are_whole_after_a_compaction() -> None:
    site = site_to_compact()

    compact_all(site.open())

    assert committed_transfers(site, "") == 1
