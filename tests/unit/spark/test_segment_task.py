"""What one task of a distributed write uploads, without a JVM."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.memory_store import MemoryStore
from txntable.errors import SchemaMismatchError, StoreUnavailableError
from txntable.format.key import partition_of
from txntable.format.topic import TopicSettings
from txntable.runtime.environment import SystemEnvironment
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.spark.writing.segment_task import SegmentTask, TaskLimits

SCHEMA = pa.schema([pa.field("carrier", pa.string()), pa.field("number", pa.int64(), nullable=False)])
ROOT = "topics/flights/_segments"
LARGE = TaskLimits(segment_bytes=2**40)


def plan_of(key: tuple[str, ...], partitions: int = 4) -> SegmentPlan:
    return SegmentPlan(ROOT, TopicSettings("flights", "a" * 32, partitions, SCHEMA, key), (7, 1), 1_000)


def batch_of(carriers: Sequence[str | None], first: int = 0) -> pa.RecordBatch:
    numbers = pa.array(range(first, first + len(carriers)), pa.int64())
    return pa.RecordBatch.from_arrays([numbers, pa.array(carriers, pa.string())], names=["number", "carrier"])


def run(
    store: MemoryStore,
    batches: Iterable[pa.RecordBatch],
    *,
    key: tuple[str, ...] = ("carrier",),
    limits: TaskLimits = LARGE,
    first_partition: int = 0,
) -> list[StagedSegment]:
    task = SegmentTask(store, plan_of(key), SystemEnvironment(), limits, first_partition)
    return list(task.run(batches))


def rows_of(store: MemoryStore, staged: StagedSegment) -> list[dict]:
    found = store.get(f"{ROOT}/{staged.path}")
    assert found is not None
    table = pq.read_table(io.BytesIO(found.data))
    assert table.column("_offset_delta").to_pylist() == list(range(staged.records))
    return table.select(["carrier", "number"]).to_pylist()


@given(st.lists(st.lists(st.none() | st.sampled_from(["UA", "AA", "DL", "B6", ""]), max_size=12), max_size=5))
def test_every_record_lands_once_in_the_partition_of_its_key_and_in_order(carriers):
    store = MemoryStore()
    starts = [sum(map(len, carriers[:i])) for i in range(len(carriers))]
    batches = [batch_of(names, start) for names, start in zip(carriers, starts, strict=True)]

    staged = run(store, batches)

    landed = [row["number"] for segment in staged for row in rows_of(store, segment)]
    assert sorted(landed) == list(range(sum(map(len, carriers))))
    for segment in staged:
        rows = rows_of(store, segment)
        numbers = [row["number"] for row in rows]
        assert numbers == sorted(numbers)
        keys = {row["carrier"] for row in rows}
        if segment.partition_count is None:
            assert keys == {None}
        else:
            assert {partition_of(key.encode(), 4) for key in keys} == {segment.partition}
    assert len({segment.path for segment in staged}) == len(staged)


def test_nothing_is_uploaded_when_there_are_no_rows():
    store = MemoryStore()

    assert run(store, [batch_of([])]) == []
    assert run(store, []) == []
    assert list(store.list("")) == []


@pytest.mark.parametrize("first_partition", [0, 3, 6])
def test_records_without_a_key_fill_one_partition_when_they_are_few(first_partition):
    store = MemoryStore()

    staged = run(store, [batch_of(["UA", "AA"]), batch_of(["DL"], 2)], key=(), first_partition=first_partition)

    assert [(one.partition, one.records, one.partition_count) for one in staged] == [(first_partition % 4, 3, None)]


def test_records_without_a_key_go_on_to_the_next_partition_when_a_segment_is_full(monkeypatch):
    monkeypatch.setattr("txntable.segments.segment_writer.ROW_GROUP_ROWS", 10)
    batches = [batch_of(["UA"] * 10, first) for first in range(0, 60, 10)]

    staged = run(MemoryStore(), batches, key=(), limits=TaskLimits(segment_bytes=1), first_partition=2)

    assert [one.partition for one in staged] == [2, 3, 0, 1, 2, 3]
    assert {one.records for one in staged} == {10}


def test_keyed_records_go_on_in_a_new_segment_of_their_partition_when_one_is_full(monkeypatch):
    monkeypatch.setattr("txntable.segments.segment_writer.ROW_GROUP_ROWS", 10)
    store = MemoryStore()
    batches = [batch_of(["UA"] * 10, first) for first in range(0, 30, 10)]

    staged = run(store, batches, limits=TaskLimits(segment_bytes=1))

    assert {one.partition for one in staged} == {partition_of(b"UA", 4)}
    assert [row["number"] for one in staged for row in rows_of(store, one)] == list(range(30))


def test_the_largest_row_groups_are_written_early_when_rows_in_memory_exceed_the_limit():
    store = MemoryStore()
    many = [f"K{number}" for number in range(40)] + ["UA"] * 400

    staged = run(store, [batch_of(many), batch_of(many, 440)], limits=TaskLimits(2**40, buffered_bytes=4_000))

    groups = {}
    for one in staged:
        found = store.get(f"{ROOT}/{one.path}")
        assert found is not None
        groups[one.partition] = pq.read_metadata(io.BytesIO(found.data)).num_row_groups
    assert groups[partition_of(b"UA", 4)] >= 2
    assert sum(one.records for one in staged) == 880


def test_uploads_are_closed_when_too_many_are_open():
    store = MemoryStore()
    carriers = [f"K{number}" for number in range(200)]
    batches = [batch_of(carriers, first) for first in (0, 200, 400)]

    staged = run(store, batches, limits=TaskLimits(2**40, buffered_bytes=0, open_uploads=2))

    assert sum(one.records for one in staged) == 600
    assert len(staged) > 4
    for partition in range(4):
        numbers = [row["number"] for one in staged if one.partition == partition for row in rows_of(store, one)]
        assert numbers == sorted(numbers)


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield batch_of(["UA", None, "AA", "DL"] * 10)
    raise error


def test_open_segments_are_forgotten_when_a_task_fails():
    store = MemoryStore()

    with pytest.raises(StoreUnavailableError):
        run(
            store,
            failing(StoreUnavailableError("the store did not answer")),
            limits=TaskLimits(2**40, buffered_bytes=0),
        )

    assert list(store.list("")) == []


def test_a_null_in_a_required_column_is_refused_with_its_name():
    store = MemoryStore()
    batch = pa.RecordBatch.from_arrays([pa.array([1, None]), pa.array(["UA", "AA"])], names=["number", "carrier"])

    with pytest.raises(SchemaMismatchError) as refused:
        run(store, [batch_of(["UA"]), batch])

    assert refused.value.facts["column"] == "number"
    assert list(store.list("")) == []


@pytest.mark.parametrize(("policy", "refused"), [("compact", True), ("compact,delete", True), ("delete", False)])
def test_record_without_a_key_is_refused_with_its_column_only_when_the_topic_is_compacted(policy, refused):
    store = MemoryStore()
    settings = TopicSettings("flights", "a" * 32, 4, SCHEMA, ("carrier",), {"cleanup.policy": policy})
    plan = SegmentPlan(ROOT, settings, (7, 1), 1_000)
    task = SegmentTask(store, plan, SystemEnvironment(), LARGE, 0)
    batches = [batch_of(["UA", "AA"]), batch_of(["DL", None], 2)]

    if refused:
        with pytest.raises(SchemaMismatchError, match=r"compacted.*topic=flights column=carrier"):
            list(task.run(batches))
        assert list(store.list("")) == []
    else:
        assert sum(staged.records for staged in task.run(batches)) == 4
