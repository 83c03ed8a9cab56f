"""Segments: what is in the file, what the log is told, and that nothing appears before it is whole."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.doubles.memory_store import MemoryStore
from txntable.errors import InvalidRequestError, StoreUnavailableError
from txntable.format.conform import TIMESTAMP_COLUMN, conform
from txntable.format.topic import TopicSettings
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_writer import SegmentWriter

UTC = pa.timestamp("us", tz="UTC")
UNIQUE = "c" * 32
ROOT = "topics/flights/_segments"
NOW_MS = 1_357_000_000_123
SCHEMA = pa.schema(
    [
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("fare", pa.decimal128(9, 2)),
        pa.field("delay", pa.float64()),
        pa.field(
            "stops",
            pa.list_(pa.field("element", pa.struct([pa.field("at", pa.string()), pa.field("gain", pa.float32())]))),
        ),
    ]
)


def plan_of(config: dict[str, str] | None = None, producer: tuple[int, int] | None = (7, 2)) -> SegmentPlan:
    settings = TopicSettings("flights", "a" * 32, 4, SCHEMA, ("carrier",), config or {})
    return SegmentPlan(ROOT, settings, producer, NOW_MS)


def rows_of(count: int, *, first: int = 0, times: list[int] | None = None) -> pa.Table:
    table = pa.table(
        {
            "carrier": [f"C{i % 7}" for i in range(first, first + count)],
            "fare": pa.array([Decimal(i) / 4 for i in range(first, first + count)], pa.decimal128(9, 2)),
            "delay": [float(i) for i in range(first, first + count)],
            "stops": [[{"at": "EWR", "gain": 1.5}]] * count,
        },
    )
    table = table.set_column(3, "stops", table.column("stops").cast(SCHEMA.field("stops").type))
    if times is not None:
        table = table.append_column(TIMESTAMP_COLUMN, pa.array(times, UTC))
    return conform(table, plan_of().settings)


def writer_of(store: MemoryStore, plan: SegmentPlan | None = None, *, keyed: bool = True) -> SegmentWriter:
    return SegmentWriter(store, plan or plan_of(), 3, UNIQUE, keyed=keyed)


def parquet_of(store: MemoryStore, path: str) -> pq.ParquetFile:
    found = store.get(f"{ROOT}/{path}")
    assert found is not None
    return pq.ParquetFile(io.BytesIO(found.data))


def test_a_segment_holds_the_rows_and_their_distance_from_the_base_offset():
    store = MemoryStore()
    writer = writer_of(store)

    writer.write(rows_of(3))
    writer.write(rows_of(2, first=3))
    staged = writer.close()

    table = parquet_of(store, staged.path).read()
    assert table.column_names == [*SCHEMA.names, "_offset_delta", "_timestamp"]
    assert table.column("_offset_delta").to_pylist() == [0, 1, 2, 3, 4]
    assert table.column("_timestamp").to_pylist() == [dt.datetime.fromtimestamp(NOW_MS / 1000, dt.UTC)] * 5
    assert table.select(SCHEMA.names).to_pylist() == rows_of(5).to_pylist()


def test_a_closed_segment_tells_what_the_log_needs():
    store = MemoryStore()
    writer = writer_of(store)

    writer.write(rows_of(4, times=[5_999, 9_000_001, -1, 7_000]))
    staged = writer.close()

    stored = store.get(f"{ROOT}/{staged.path}")
    assert stored is not None
    assert staged.path == f"p00003/{'a' * 32}-7-2-{UNIQUE}.parquet"
    assert (staged.partition, staged.records, staged.size) == (3, 4, len(stored.data))
    assert (staged.first_timestamp_ms, staged.max_timestamp_ms) == (5, 9_000)
    assert (staged.partition_count, staged.uploaded_at_ms) == (4, NOW_MS)
    stats = json.loads(staged.stats)
    assert stats["numRecords"] == 4
    assert stats["minValues"]["_offset_delta"] == 0
    assert stats["maxValues"] == {
        "carrier": "C3",
        "fare": 0.75,
        "delay": 3.0,
        "_offset_delta": 3,
        "_timestamp": "1970-01-01T00:00:09.001Z",
    }


@pytest.mark.parametrize(("keyed", "partition_count"), [(True, 4), (False, None)])
def test_the_partition_count_is_told_only_when_keys_chose_the_partition(keyed, partition_count):
    writer = writer_of(MemoryStore(), keyed=keyed)
    writer.write(rows_of(1))

    assert writer.close().partition_count == partition_count


def test_a_segment_has_no_owner_in_its_name_when_the_producer_is_at_least_once():
    writer = writer_of(MemoryStore(), plan_of(producer=None))
    writer.write(rows_of(1))

    assert writer.close().path == f"p00003/{'a' * 32}-x-x-{UNIQUE}.parquet"


def test_records_get_the_time_of_the_upload_when_the_topic_says_so():
    writer = writer_of(MemoryStore(), plan_of({"message.timestamp.type": "LogAppendTime"}))

    writer.write(rows_of(2, times=[1_000, 2_000]))

    staged = writer.close()
    assert (staged.first_timestamp_ms, staged.max_timestamp_ms) == (NOW_MS, NOW_MS)


def test_columns_are_encoded_as_the_format_says():
    store = MemoryStore()
    writer = writer_of(store)
    writer.write(rows_of(100))

    group = parquet_of(store, writer.close().path).metadata.row_group(0)

    chunks = {chunk.path_in_schema: chunk for chunk in (group.column(i) for i in range(group.num_columns))}
    assert {chunk.compression for chunk in chunks.values()} == {"ZSTD"}
    for name in ("_offset_delta", "_timestamp"):
        assert chunks[name].encodings == ("RLE", "DELTA_BINARY_PACKED")
    assert "RLE_DICTIONARY" in chunks["carrier"].encodings
    assert "RLE_DICTIONARY" not in chunks["stops.list.element.at"].encodings
    assert chunks["fare"].physical_type == "INT32"


@pytest.mark.parametrize(
    ("setting", "codec"),
    [("producer", "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("lz4", "LZ4"), ("uncompressed", "UNCOMPRESSED")],
)
def test_the_codec_is_the_topics(setting, codec):
    store = MemoryStore()
    writer = writer_of(store, plan_of({"compression.type": setting}))
    writer.write(rows_of(10))

    assert parquet_of(store, writer.close().path).metadata.row_group(0).column(0).compression == codec


def test_bounds_are_left_out_when_a_nan_is_in_any_row_group():
    writer = writer_of(MemoryStore())
    for value in (1.0, float("nan"), 2.0):
        rows = rows_of(1)
        writer.write(rows.set_column(2, "delay", pa.array([value])))
        writer.flush()

    stats = json.loads(writer.close().stats)

    assert "minValues" not in stats
    assert "maxValues" not in stats
    assert stats["nullCount"]["delay"] == 0


def test_bounds_of_texts_are_those_of_the_rows_when_a_footer_has_none():
    writer = writer_of(MemoryStore())
    for text in ("b", "c" * 5000, "a"):
        rows = rows_of(1)
        writer.write(rows.set_column(0, "carrier", pa.array([text])))
        writer.flush()

    stats = json.loads(writer.close().stats)

    assert (stats["minValues"]["carrier"], stats["maxValues"]["carrier"]) == ("a", "c" * 31 + "d")


def test_a_flushed_row_group_leaves_memory_and_stays_in_the_same_file():
    store = MemoryStore()
    writer = writer_of(store)

    writer.write(rows_of(10))
    assert writer.buffered_bytes > 0
    assert writer.written_bytes == 0
    writer.flush()

    assert writer.buffered_bytes == 0
    assert writer.written_bytes > 0
    writer.write(rows_of(5))
    assert parquet_of(store, writer.close().path).metadata.num_row_groups == 2


def test_nothing_is_in_the_store_when_a_segment_is_aborted():
    store = MemoryStore()
    writer = writer_of(store)
    writer.write(rows_of(10))
    writer.flush()
    writer.write(rows_of(10))

    writer.abort()

    assert list(store.list("")) == []


def test_nothing_is_in_the_store_before_a_segment_is_closed():
    store = MemoryStore()
    writer = writer_of(store)

    writer.write(rows_of(10))
    writer.flush()

    assert list(store.list("")) == []
    writer.abort()


def test_a_segment_without_records_is_refused_when_it_is_closed():
    store = MemoryStore()
    writer = writer_of(store)
    writer.write(rows_of(0))

    with pytest.raises(InvalidRequestError, match="at least one record"):
        writer.close()

    assert list(store.list("")) == []


class FailingFile(io.BytesIO):
    """Takes some bytes, then the store is gone."""

    def write(self, data: object) -> int:
        if self.tell() > 100:
            raise StoreUnavailableError("the store did not answer; try again")
        return super().write(bytes(data))  # type: ignore[call-overload]

    def __exit__(self, *_: object) -> None:
        super().close()


class FailingStore(MemoryStore):
    """Fails while an object is streamed into it."""

    def writer(self, path: str) -> FailingFile:
        del path
        return FailingFile()


def test_an_abort_is_quiet_after_the_store_failed():
    writer = writer_of(FailingStore())
    writer.write(rows_of(1000))
    with pytest.raises(StoreUnavailableError):
        writer.flush()

    writer.abort()
    writer.abort()
