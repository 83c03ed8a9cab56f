"""Records keep offsets, timestamps, values and order on their way into new segments (PROTOCOL.md §5.8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import DamagedDataError
from txntable.format.isolation import IsolationLevel
from txntable.segments.segment import MergedSegment, SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import SegmentReader
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.warehouse.warehouse import Warehouse

NOTE = pa.field("note", pa.string())


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    """A topic with segments of 3, 2 and 4 records, whose times go up and down."""
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS, config={"message.timestamp.type": "CreateTime"})
    number = 0
    with warehouse.producer() as producer:
        for count in (3, 2, 4):
            for _ in range(count):
                row = {"account": f"a{number}", "amount": None if number == 4 else number}
                producer.send("t", row=row, timestamp_ms=1_000_000 - 10 * (number % 3))
                number += 1
            producer.flush()
    return warehouse


def sources(warehouse: Warehouse) -> list[PlannedSegment]:
    return list(warehouse.topic_reader("t").view(IsolationLevel.READ_UNCOMMITTED).plan())


def plan(warehouse: Warehouse, segment_bytes: int = 1 << 30) -> RewritePlan:
    log = warehouse.topic_log("t")
    segments = SegmentPlan(log.segments.root, log.settings(), None, 77)
    return RewritePlan(segments, segment_bytes, warehouse.context.environment.new_id)


def read(warehouse: Warehouse, segments: list[PlannedSegment]) -> list[dict[str, Any]]:
    log = warehouse.topic_log("t")
    reader = SegmentReader(warehouse.store, log.segments.root, log.settings())
    return [row for segment in segments for batch in reader.read(segment) for row in batch.to_pylist()]


def as_planned(output: MergedSegment) -> PlannedSegment:
    segment, base, last = output.segment, output.base_offset, output.last_offset
    return PlannedSegment(segment.path, 0, base, last, None, segment.size, segment.records, base, last + 1)


def test_records_of_all_sources_are_in_one_segment_as_they_were(warehouse: Warehouse) -> None:
    before = read(warehouse, sources(warehouse))

    (output,) = rewrite_segments(warehouse.store, plan(warehouse), sources(warehouse))

    assert read(warehouse, [as_planned(output)]) == before
    assert (output.base_offset, output.last_offset, output.segment.records) == (0, 8, 9)
    assert (output.segment.first_timestamp_ms, output.segment.max_timestamp_ms) == (1_000_000, 1_000_000)
    assert (output.segment.uploaded_at_ms, output.segment.partition_count) == (77, None)


def test_times_stay_also_where_the_topic_stamps_what_is_appended(warehouse: Warehouse) -> None:
    before = read(warehouse, sources(warehouse))
    warehouse.admin().alter_configs("t", {"message.timestamp.type": "LogAppendTime"})

    (output,) = rewrite_segments(warehouse.store, plan(warehouse), sources(warehouse))

    assert read(warehouse, [as_planned(output)]) == before


def test_records_that_are_not_chosen_leave_gaps_and_bounds_are_those_of_the_rest(warehouse: Warehouse) -> None:
    def choose(source: PlannedSegment, batch: pa.RecordBatch) -> pa.RecordBatch:
        offsets = np.asarray(batch.column("_offset"))
        return batch.filter(pa.array(np.isin(offsets, [1, 2, 6])))

    (output,) = rewrite_segments(warehouse.store, plan(warehouse), sources(warehouse), choose)

    assert [row["_offset"] for row in read(warehouse, [as_planned(output)])] == [1, 2, 6]
    assert (output.base_offset, output.last_offset, output.segment.records) == (1, 6, 3)


def test_nothing_is_written_when_no_record_stays(site: Site, warehouse: Warehouse) -> None:
    before = set(site.objects.snapshot())

    outputs = rewrite_segments(warehouse.store, plan(warehouse), sources(warehouse), lambda _, batch: batch[:0])

    assert outputs == []
    assert set(site.objects.snapshot()) == before


def test_column_that_sources_lack_is_null_in_the_new_segment(warehouse: Warehouse) -> None:
    old = sources(warehouse)
    warehouse.admin().add_columns("t", [NOTE])

    (output,) = rewrite_segments(warehouse.store, plan(warehouse), old)

    rows = read(warehouse, [as_planned(output)])
    assert {row["note"] for row in rows} == {None}
    assert [row["account"] for row in rows] == [f"a{number}" for number in range(9)]


def test_column_that_structs_of_sources_lack_is_null_in_the_new_segment(warehouse: Warehouse) -> None:
    kind = pa.list_(pa.struct([pa.field("x", pa.int64())]))
    warehouse.admin().create_topic("n", partitions=1, schema=pa.schema([("l", kind)]))
    with warehouse.producer() as producer:
        producer.send("n", row={"l": [{"x": 1}, None]})
    warehouse.admin().add_columns("n", [NOTE], inside=["l", "element"])
    view = warehouse.topic_reader("n").view(IsolationLevel.READ_UNCOMMITTED)
    rewrite = RewritePlan(SegmentPlan(view.root, view.settings, None, 0), 1 << 30, lambda: "c" * 32)

    (output,) = rewrite_segments(warehouse.store, rewrite, list(view.plan()))

    written = warehouse.store.get(f"{view.root}/{output.segment.path}")
    assert written is not None
    rows = pq.read_table(pa.BufferReader(written.data))["l"].to_pylist()
    assert rows == [[{"x": 1, "note": None}, None]]


def test_next_segment_is_begun_when_one_is_full(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group is written first: until then nobody knows how large a file is."""
    monkeypatch.setattr("txntable.segments.segment_writer.ROW_GROUP_ROWS", 2)
    before = read(warehouse, sources(warehouse))

    outputs = rewrite_segments(warehouse.store, plan(warehouse, segment_bytes=1), sources(warehouse))

    assert [(output.base_offset, output.last_offset) for output in outputs] == [(0, 2), (3, 4), (5, 8)]
    assert read(warehouse, [as_planned(output) for output in outputs]) == before


def test_part_of_a_source_that_is_cut_off_is_not_written(warehouse: Warehouse) -> None:
    first, *_ = sources(warehouse)

    (output,) = rewrite_segments(
        warehouse.store, plan(warehouse), [PlannedSegment(first.path, 0, 0, 2, None, first.size, 3, 1, 3)]
    )

    assert (output.base_offset, output.last_offset, output.segment.records) == (1, 2, 2)


def test_source_that_is_gone_is_damage_and_leaves_no_new_segment(site: Site, warehouse: Warehouse) -> None:
    planned = sources(warehouse)
    site.objects.delete(f"{warehouse.topic_log('t').segments.root}/{planned[1].path}")
    before = set(site.objects.snapshot())

    with pytest.raises(DamagedDataError, match=planned[1].path):
        rewrite_segments(warehouse.store, plan(warehouse), planned)

    assert set(site.objects.snapshot()) == before
