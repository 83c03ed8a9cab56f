"""What a report knows, against what was written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Operation
from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import Site
from txntable.admin.upkeep import Duty
from txntable.coordinator.group_state import GroupState
from txntable.errors import InvalidConfigError
from txntable.format.layout import commit_path, segments_root
from txntable.format.records import TopicPartition
from txntable.report.collector import Collector
from txntable.report.newest_records import LONGEST_TEXT, text_of
from txntable.report.warehouse_report import RecordOutcome, ReportLimits, WarehouseReport
from txntable.warehouse.warehouse import Warehouse, open_on

DAY_MS = 86_400_000


def looked(warehouse: Warehouse, **limits: int) -> WarehouseReport:
    return Collector(warehouse, ReportLimits(**limits)).collect()


def send(warehouse: Warehouse, records: int, partition: int = 0, topic: str = "orders") -> None:
    """Append committed records, each a segment."""
    with warehouse.producer() as producer:
        for number in range(records):
            producer.send(topic, key=b"k", value=b"%d" % number, partition=partition)
            producer.flush()


def leave_open(warehouse: Warehouse, partition: int = 0) -> None:
    producer = warehouse.producer("open")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value=b"open", partition=partition)
    producer.flush()


def test_topic_tells_its_bounds_sizes_and_what_is_held_back(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 3)
    leave_open(warehouse)
    send(warehouse, 2)
    send(warehouse, 1, partition=1)

    (topic,) = looked(warehouse).topics.shown

    held, free = topic.partitions.shown
    assert (held.log_start, held.last_stable_offset, held.high_watermark, held.held_back) == (0, 3, 6, 3)
    assert (free.log_start, free.last_stable_offset, free.high_watermark, free.held_back) == (0, 1, 1, 0)
    assert (held.segments, held.records, free.segments, free.records) == (6, 6, 1, 1)
    assert (topic.segments, topic.records, topic.held_back) == (7, 7, 3)
    stored = site.objects_below("topics/orders/_segments/p00000")
    assert held.size == sum(len(found.data) for found in stored.values())


def test_topic_tells_when_its_partitions_were_written_last(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 1)
    site.advance_ms(DAY_MS)
    send(warehouse, 1, partition=1)

    report = looked(warehouse)

    (topic,) = report.topics.shown
    first, second = (each.last_write_ms for each in topic.partitions.shown)
    assert first is not None
    assert second is not None
    assert second - first >= DAY_MS
    assert topic.last_write_ms == second
    assert report.made_at_ms - second < 1_000


def test_partitions_that_are_held_back_are_shown_before_others(warehouse: Warehouse) -> None:
    warehouse.admin().create_partitions({"orders": 40})
    leave_open(warehouse, partition=33)

    (topic,) = looked(warehouse, partitions=3).topics.shown

    assert [each.partition for each in topic.partitions.shown] == [0, 1, 33]
    assert topic.partitions.total == 40


def test_topics_that_are_held_back_and_the_latest_are_shown_before_others(site: Site, warehouse: Warehouse) -> None:
    for name in ("a", "b", "c"):
        warehouse.admin().create_topic(name)
    leave_open(warehouse)
    site.advance_ms(60_000)
    send(warehouse, 1, topic="c")

    topics = looked(warehouse, topics=2).topics

    assert [topic.name for topic in topics.shown] == ["c", "orders"]
    assert topics.total == 4


def test_deleted_topic_is_not_there(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("gone")
    send(warehouse, 1, topic="gone")
    warehouse.admin().delete_topic("gone")

    report = looked(warehouse)

    assert [topic.name for topic in report.topics.shown] == ["orders"]
    assert [topic.topic for topic in report.records.shown] == []


def test_group_tells_its_lag_to_the_last_stable_offset(warehouse: Warehouse) -> None:
    send(warehouse, 5)
    leave_open(warehouse)
    send(warehouse, 4)
    send(warehouse, 2, partition=1)
    admin = warehouse.admin()
    admin.alter_consumer_group_offsets("behind", {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): 1})
    admin.alter_consumer_group_offsets("waits", {TopicPartition("orders", 0): 5})

    behind, waits = looked(warehouse).groups.shown

    assert (behind.name, behind.lag, behind.state, behind.members) == ("behind", 4, GroupState.EMPTY, 0)
    assert [(each.partition, each.offset, each.lag) for each in behind.partitions.shown] == [(0, 2, 3), (1, 1, 1)]
    assert [each.is_held_back for each in behind.partitions.shown] == [True, False]
    assert (waits.name, waits.lag, waits.partitions.shown[0].is_held_back) == ("waits", 0, True)


def test_offset_of_a_topic_that_was_created_again_is_no_group_s_place(warehouse: Warehouse) -> None:
    send(warehouse, 5)
    warehouse.admin().alter_consumer_group_offsets("old", {TopicPartition("orders", 0): 5})
    warehouse.admin().delete_topic("orders")
    warehouse.admin().create_topic("orders", partitions=2)

    assert [group.partitions.total for group in looked(warehouse).groups.shown] == []


def test_newest_records_are_told_apart_by_what_became_of_them(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 2)
    aborting = warehouse.producer("aborting")
    aborting.init_transactions()
    aborting.begin_transaction()
    aborting.send("orders", value=b"aborted", partition=1)
    aborting.flush()
    aborting.abort_transaction()
    with aborting.transaction() as transaction:
        transaction.send("orders", key=b"k", value=b"committed", partition=1)
    site.advance_ms(1_000)
    leave_open(warehouse)

    (topic,) = looked(warehouse).records.shown

    told = [(record.outcome, record.value, record.commit) for record in topic.records]
    (decision,) = (row.decision for row in warehouse.transactions.rows() if row.transactional_id == "aborting")
    assert decision is not None
    assert told[0] == (RecordOutcome.OPEN, "open", None)
    assert set(told[1:]) == {
        (RecordOutcome.COMMITTED, "committed", decision.position),
        (RecordOutcome.ABORTED, "aborted", None),
        (RecordOutcome.COMMITTED, "1", 0),
        (RecordOutcome.COMMITTED, "0", 0),
    }
    assert topic.problem == ""


def test_newest_records_are_the_last_of_those_that_were_appended_last(site: Site, warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        for number in range(20):
            producer.send("orders", value=b"%d" % number, partition=0)
    site.advance_ms(1_000)
    send(warehouse, 1, partition=1)

    (topic,) = looked(warehouse, records=4).records.shown

    assert [(each.partition, each.offset, each.value) for each in topic.records] == [
        (1, 0, "0"),
        (0, 19, "19"),
        (0, 18, "18"),
        (0, 17, "17"),
    ]


def test_records_of_a_topic_with_its_own_columns_are_objects(warehouse: Warehouse) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("data", pa.binary()), pa.field("at", pa.date32())])
    warehouse.admin().create_topic("own", schema=schema)
    with warehouse.producer() as producer:
        producer.send("own", row={"id": 7, "data": b"\xff", "at": None})

    (topic,) = looked(warehouse).records.shown

    assert [(record.key, record.value) for record in topic.records] == [(None, '{"id": 7, "data": "/w==", "at": null}')]


def test_no_record_is_read_when_none_is_wanted(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 1)
    store = site.store()
    fresh = open_on(store, site.environment())

    assert looked(fresh, records=0).records.shown == ()

    assert not [step for step in store.steps if "/p00000/" in step.path]
    assert [record.value for record in looked(fresh).records.shown[0].records] == ["0"]
    assert [step for step in store.steps if "/p00000/" in step.path]


def test_segment_that_is_damaged_is_told_where_its_records_would_be(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 1)
    (path,) = site.objects_below("topics/orders/_segments/p00000")
    site.objects.put(path, b"PAR1 nothing")

    report = looked(site.open())

    (topic,) = report.records.shown
    assert topic.problem.startswith("CORRUPT_MESSAGE a segment cannot be read")
    assert report.topics.shown[0].records == 1


def test_topic_whose_log_is_damaged_is_a_finding_and_the_others_are_shown(site: Site, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("whole")
    site.objects.put(commit_path(segments_root("orders"), 0), b"{}\n")

    report = looked(site.open())

    assert [topic.name for topic in report.topics.shown] == ["whole"]
    assert [(one.duty, one.where) for one in report.findings.shown] == [(Duty.READ, "topic orders")]


def test_storage_is_told_by_layer(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 2)
    leave_open(warehouse)
    aborting = warehouse.producer("aborting")
    aborting.init_transactions()
    aborting.begin_transaction()
    aborting.send("orders", value=b"aborted", partition=1)
    aborting.flush()
    aborting.abort_transaction()

    layers = {layer.name: layer for layer in looked(warehouse).layers}

    assert layers["committed segments"].objects == 2
    assert layers["open segments"].objects == 1
    assert layers["aborted or unpublished segments"].objects == 1
    segments = ("committed segments", "open segments", "aborted or unpublished segments")
    stored = site.objects_below("topics/orders/_segments/p00000") | site.objects_below("topics/orders/_segments/p00001")
    assert sum(layers[name].size for name in segments) == sum(len(found.data) for found in stored.values())
    entries = site.objects_below("system/transaction_log/_delta_log")
    assert layers["transaction log"].size == sum(
        len(found.data) for path, found in entries.items() if not path.endswith("_last_checkpoint")
    )


def test_report_writes_nothing_but_the_clock(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 2)
    leave_open(warehouse)
    fresh = site.open()
    before = site.objects.snapshot()

    looked(fresh)

    after = site.objects.snapshot()
    assert {path for path in after if after[path] != before.get(path)} <= {"system/clock"}
    assert before.keys() <= after.keys()


def test_reader_without_write_permission_has_the_same_report(site: Site, warehouse: Warehouse) -> None:
    send(warehouse, 2)
    leave_open(warehouse)
    reader = open_on(ReadOnlyStore(MemoryStore(site.objects)), site.environment())

    report, same = looked(reader), looked(site.open())

    assert report.blocking == same.blocking
    assert report.topics == same.topics
    assert report.records == same.records
    assert report.layers == same.layers


def test_findings_are_looked_for_again_only_after_a_while(site: Site, warehouse: Warehouse) -> None:
    store, machine = site.store(), site.environment()
    collector = Collector(open_on(store, machine), ReportLimits(), check_every_ms=60_000)

    def lists() -> int:
        return sum(step.operation is Operation.LIST and "_delta_log" in step.path for step in store.steps)

    collector.collect()
    first = lists()
    collector.collect()
    again = lists()
    machine.advance_ms(60_000)
    collector.collect()

    assert first == again > 0
    assert lists() == 2 * first


@pytest.mark.parametrize("value", [-1, 10_001, True, 1.5, "3"])
def test_limit_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InvalidConfigError, match="from 0 to 10,000"):
        ReportLimits(lanes=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, None),
        (b"", ""),
        ("text", "text"),
        ("Zürich".encode(), "Zürich"),
        (b"\xff\x00", "0xff00"),
        (b"x" * 1_000_000, "x" * LONGEST_TEXT + "…"),
        ("é".encode() * 2_000, "é" * LONGEST_TEXT + "…"),
        (b"a" + "🦊".encode() * 2_000, "a" + "🦊" * (LONGEST_TEXT - 1) + "…"),
        (b"\xff" * 2_000, "0x" + "ff" * (LONGEST_TEXT // 2 - 1) + "…"),
    ],
)
def test_bytes_are_shown_as_text_or_as_hex_digits_and_shortened(data: object, text: str | None) -> None:
    assert text_of(data) == text
