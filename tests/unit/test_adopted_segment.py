"""Files that other software has written: which are segments, what the log is told of them, which are refused."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.doubles.memory_store import MemoryStore
from txntable.errors import MissingKeyError, SchemaMismatchError
from txntable.format import parquet_bounds
from txntable.format.key import partitions_of
from txntable.format.schema import OFFSET_DELTA_COLUMN, segment_schema
from txntable.format.topic import TopicSettings
from txntable.segments.adopted_segment import Unfit, WrittenFile, adopted
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter

ROOT = "topics/flights/_segments"
PATH = "parts/7-2/part-00000-00000000-0000-4000-8000-000000000000-c000.zstd.parquet"
NOW_MS = 1_357_000_000_123
SCHEMA = pa.schema(
    [
        pa.field("carrier", pa.string()),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("delay", pa.float64()),
        pa.field("stops", pa.list_(pa.field("element", pa.string()))),
    ]
)
# As Spark's writer does it: every value of a row group in a dictionary but where none may be.
OPTIONS: Mapping[str, Any] = {
    "use_dictionary": ["carrier", "delay"],
    "write_page_checksum": True,
    "store_decimal_as_integer": True,
    "store_schema": False,
    "compression": "zstd",
}


def plan_of(key: tuple[str, ...] = (), config: Mapping[str, str] | None = None) -> SegmentPlan:
    return SegmentPlan(ROOT, TopicSettings("flights", "a" * 32, 4, SCHEMA, key, config or {}), (7, 2), NOW_MS)


def rows(count: int = 4, **columns: Any) -> pa.Table:
    """What such a file holds, with some columns otherwise; a column of ``None`` is left out."""
    given = {
        "carrier": [f"C{i % 7}" for i in range(count)],
        "number": list(range(count)),
        "delay": [float(i) for i in range(count)],
        "stops": [["EWR", "JFK"]] * count,
        OFFSET_DELTA_COLUMN: list(range(count)),
        "_timestamp": [NOW_MS * 1_000] * count,
    }
    wanted = segment_schema(SCHEMA)
    kept = {name: values for name, values in {**given, **columns}.items() if values is not None}
    return pa.table(
        [pa.array(values, wanted.field(name).type if name in wanted.names else None) for name, values in kept.items()],
        names=list(kept),
    )


def file_of(
    store: MemoryStore, table: pa.Table, *, keyed: bool = False, partition: int = 0, **options: Any
) -> WrittenFile:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{**OPTIONS, **options})
    store.put(f"{ROOT}/{PATH}", sink.getvalue())
    return WrittenFile(PATH, len(sink.getvalue()), partition, keyed, stamped=True)


def test_log_is_told_of_a_file_what_our_own_writer_tells_of_its_own() -> None:
    store, plan = MemoryStore(), plan_of()
    writer = SegmentWriter(store, plan, 3, "c" * 32, keyed=False)
    writer.write(rows().drop_columns([OFFSET_DELTA_COLUMN]).cast(pa.schema([*SCHEMA, segment_schema(SCHEMA)[-1]])))
    staged = writer.close()

    found = adopted(store, plan, WrittenFile(staged.path, staged.size, 3, keyed=False, stamped=False))

    assert found == staged


def test_file_of_several_row_groups_is_a_segment() -> None:
    store = MemoryStore()

    found = adopted(store, plan_of(), file_of(store, rows(10), row_group_size=4))

    assert isinstance(found, StagedSegment)
    assert (found.records, found.max_timestamp_ms) == (10, NOW_MS)


def test_file_without_records_is_nothing_to_tell_of() -> None:
    store, sink = MemoryStore(), io.BytesIO()
    pq.ParquetWriter(sink, segment_schema(SCHEMA), store_decimal_as_integer=True, store_schema=False).close()
    store.put(f"{ROOT}/{PATH}", sink.getvalue())

    assert adopted(store, plan_of(), WrittenFile(PATH, len(sink.getvalue()), 0, keyed=False, stamped=True)) is None


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"delay": None}, {}, "its columns are not those of a segment"),
        ({"more": [1, 2, 3, 4]}, {}, "its columns are not those of a segment"),
        ({OFFSET_DELTA_COLUMN: [1, 2, 3, 4]}, {}, "its offsets do not count from 0"),
        ({OFFSET_DELTA_COLUMN: [0, 1, 2, 4]}, {}, "its offsets do not count from 0"),
        ({OFFSET_DELTA_COLUMN: [0, 1, None, 3]}, {}, "its offsets do not count from 0"),
        ({OFFSET_DELTA_COLUMN: [0, 1, 0, 1]}, {"row_group_size": 2}, "its offsets do not count from 0"),
        ({}, {"use_dictionary": [OFFSET_DELTA_COLUMN]}, "column _offset_delta has a dictionary"),
        ({}, {"use_dictionary": ["stops.list.element"]}, "column stops.list.element has a dictionary"),
        ({}, {"write_statistics": False}, "column carrier has no count of its nulls"),
        (
            {},
            {"use_dictionary": False, "column_encoding": {"carrier": "DELTA_BYTE_ARRAY"}},
            "column carrier has an encoding that readers refuse",
        ),
    ],
)
def test_file_that_is_no_segment_is_refused_with_the_reason(
    columns: Mapping[str, Any], options: Mapping[str, Any], reason: str
) -> None:
    store = MemoryStore()

    found = adopted(store, plan_of(), file_of(store, rows(**columns), **options))

    assert isinstance(found, Unfit)
    assert found.reason == reason


def test_file_that_decodes_to_more_than_readers_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(parquet_bounds, "LARGEST_ROW_GROUP_BYTES", 100)

    assert isinstance(adopted(store, plan_of(), file_of(store, rows())), Unfit)


def test_bytes_that_are_no_parquet_are_refused() -> None:
    store = MemoryStore()
    file = file_of(store, rows())
    store.put(f"{ROOT}/{PATH}", bytes(file.size))

    assert isinstance(adopted(store, plan_of(), file), Unfit)


def test_records_that_are_not_where_their_key_belongs_are_refused() -> None:
    store, plan = MemoryStore(), plan_of(key=("carrier",))
    right = partitions_of(rows().select(["carrier"]).to_batches()[0], ("carrier",), 4)[0].as_py()
    table = rows(carrier=["C0"] * 4)

    assert isinstance(adopted(store, plan, file_of(store, table, keyed=True, partition=right)), StagedSegment)
    assert isinstance(adopted(store, plan, file_of(store, table, keyed=True, partition=(right + 1) % 4)), Unfit)


def test_null_where_none_may_be_is_the_users_error() -> None:
    store = MemoryStore()

    with pytest.raises(SchemaMismatchError, match="column=number"):
        adopted(store, plan_of(), file_of(store, rows(number=[1, None, 3, 4])))


def test_record_without_the_key_that_its_topic_needs_is_the_users_error() -> None:
    store, plan = MemoryStore(), plan_of(("carrier",), {"cleanup.policy": "compact"})

    with pytest.raises(MissingKeyError):
        adopted(store, plan, file_of(store, rows(carrier=["C0", None, "C0", "C0"])))
