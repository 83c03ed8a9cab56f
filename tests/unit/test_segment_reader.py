"""Reading a segment: the wanted records in order, old columns as null, and every damage told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.errors import DamagedDataError, SchemaMismatchError, StoreUnavailableError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.delta_types import TIMESTAMP
from txntable.format.schema import OFFSET_DELTA_COLUMN
from txntable.format.topic import TopicSettings
from txntable.segments.record_filter import ColumnTest, Operator, RecordFilter
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_pruning import row_groups
from txntable.segments.segment_reader import SegmentReader, offsets_of
from txntable.segments.segment_writer import SegmentWriter
from txntable.storage.object_store import ObjectStore

BASE = 100
SCHEMA = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])
SETTINGS = TopicSettings("t", "a" * 32, 1, SCHEMA)


def rows(deltas: Iterable[int], **columns: Any) -> pa.Table:
    """What a file holds: a record for each offset delta."""
    deltas = list(deltas)
    content = {
        "account": [f"a{delta}" for delta in deltas],
        "amount": [delta * 10 for delta in deltas],
        OFFSET_DELTA_COLUMN: pa.array(deltas, pa.int64()),
        TIMESTAMP_COLUMN: pa.array([delta * 1000 for delta in deltas], TIMESTAMP),
        **columns,
    }
    return pa.table({name: values for name, values in content.items() if values is not None})


def write(store: ObjectStore, table: pa.Table, *, group_rows: int = 1000, path: str = "root/s") -> int:
    """Write a file as a segment; return its size."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group_rows, write_page_checksum=True, store_schema=False)
    store.put(path, sink.getvalue().to_pybytes())
    return int(sink.getvalue().size)


def segment(size: int, *, last: int, start: int = 0, end: int = 1 << 40, records: int | None = None) -> PlannedSegment:
    return PlannedSegment("s", 0, BASE, BASE + last, 7, size, records, start, end)


def read(store: ObjectStore, wanted: PlannedSegment, columns: list[str] | None = None, batch_rows: int = 1000) -> Any:
    reader = SegmentReader(store, "root", SETTINGS, columns)
    return pa.Table.from_batches(list(reader.read(wanted, batch_rows)), reader.schema)


@given(
    amounts=st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=40),
    group_rows=st.integers(1, 10),
    operator=st.sampled_from([Operator.EQUAL, Operator.BELOW, Operator.AT_LEAST, Operator.NULL]),
    start=st.integers(BASE, BASE + 40),
)
def test_where_returns_exactly_the_records_that_pass_whatever_the_groups(
    amounts: list[int | None], group_rows: int, operator: Operator, start: int
) -> None:
    store = MemoryStore()
    size = write(store, rows(range(len(amounts)), amount=pa.array(amounts, pa.int64())), group_rows=group_rows)
    test = ColumnTest(("amount",), operator, pa.array([] if operator is Operator.NULL else [5], pa.int64()))
    passes: dict[Operator, Any] = {
        Operator.EQUAL: lambda one: one == 5,
        Operator.BELOW: lambda one: one is not None and one < 5,
        Operator.AT_LEAST: lambda one: one is not None and one >= 5,
        Operator.NULL: lambda one: one is None,
    }

    wanted = segment(size, last=len(amounts) - 1, start=start)
    reader = SegmentReader(store, "root", SETTINGS, ["_offset"]).where(RecordFilter(((test,),)))
    found = [offset for batch in reader.read(wanted) for offset in offsets_of(batch)]

    passing = [BASE + delta for delta, amount in enumerate(amounts) if passes[operator](amount)]
    assert found == [offset for offset in passing if offset >= start]


def test_row_groups_are_left_out_by_what_the_footer_says() -> None:
    sink = pa.BufferOutputStream()
    ratios = [1.0, 2.0, float("nan"), 4.0, None, None]
    pq.write_table(pa.table({"v": pa.array(ratios), "w": range(6)}), sink, row_group_size=2)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    schema = pa.schema([pa.field("v", pa.float64()), pa.field("w", pa.int64()), pa.field("new", pa.int64())])

    def left(column: str, operator: Operator, *values: float) -> list[int]:
        test = ColumnTest((column,), operator, pa.array(values, schema.field(column).type))
        return row_groups(footer, [0, 1, 2], RecordFilter(((test,),)), schema)

    assert left("w", Operator.EQUAL, 3) == [1]
    assert left("w", Operator.ABOVE, 1) == [1, 2]
    assert left("v", Operator.BELOW, 4) == [0]
    assert left("v", Operator.ABOVE, 9) == []
    assert left("v", Operator.NULL) == [2]
    assert left("new", Operator.EQUAL, 1) == [0, 1, 2]


def test_column_inside_of_another_tells_nothing_of_one_with_a_dot() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a.b": [9], "a": [{"b": 1}]}), sink)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    wanted = RecordFilter(((ColumnTest(("a.b",), Operator.EQUAL, pa.array([9])),),))

    assert row_groups(footer, [0], wanted, pa.schema([pa.field("a.b", pa.int64())])) == [0]


def test_columns_behind_a_type_that_no_topic_has_are_looked_up_by_their_own_bounds() -> None:
    sink = pa.BufferOutputStream()
    kind = pa.large_list(pa.struct([("x", pa.int64()), ("w", pa.int64())]))
    pq.write_table(pa.table({"l": pa.array([[{"x": 1, "w": 2}]], kind), "v": [7], "w": [9]}), sink)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    wanted = RecordFilter(((ColumnTest(("w",), Operator.EQUAL, pa.array([9])),),))

    assert row_groups(footer, [0], wanted, pa.schema([("v", pa.int64()), ("w", pa.int64())])) == [0]


@pytest.mark.parametrize("columns", [["amount"], ["account", "_commit"]])
def test_offsets_are_not_decoded_where_nobody_asks_for_them(columns: list[str]) -> None:
    store = MemoryStore()
    table = rows([0, 0])

    assert read(store, segment(write(store, table), last=1), columns).num_rows == 2
    with pytest.raises(DamagedDataError, match="do not rise"):
        read(store, segment(write(store, table), last=1), [*columns, "_offset"])


@given(
    deltas=st.sets(st.integers(0, 60), min_size=1),
    group_rows=st.integers(1, 25),
    batch_rows=st.integers(1, 70),
    start=st.integers(0, 70),
    length=st.integers(0, 70),
)
def test_read_returns_exactly_the_offsets_wanted_whatever_the_groups_and_gaps(
    deltas: set[int], group_rows: int, batch_rows: int, start: int, length: int
) -> None:
    store = MemoryStore()
    size = write(store, rows(sorted(deltas)), group_rows=group_rows)
    wanted = segment(size, last=60, start=BASE + start, end=BASE + start + length, records=len(deltas))

    found = read(store, wanted, batch_rows=batch_rows)

    chosen = [delta for delta in sorted(deltas) if start <= delta < start + length]
    assert found["_offset"].to_pylist() == [BASE + delta for delta in chosen]
    assert found["account"].to_pylist() == [f"a{delta}" for delta in chosen]
    assert set(found["_partition"].to_pylist()) <= {0}
    assert set(found["_commit"].to_pylist()) <= {7}


def test_read_of_a_part_asks_only_for_the_row_groups_that_have_it() -> None:
    memory = MemoryStore()
    noise = np.random.default_rng(1).integers(0, 1 << 62, 4 * 300_000)
    size = write(memory, rows(range(4 * 300_000), account=None, amount=noise), group_rows=300_000)
    schema = pa.schema([pa.field("amount", pa.int64())])
    settings = TopicSettings("t", "a" * 32, 1, schema)
    asked = {}
    for start, end in ((0, 1 << 40), (BASE + 300_000, BASE + 600_000)):
        store = SteppingStore(memory)
        reader = SegmentReader(store, "root", settings, ["amount"])
        found = list(reader.read(segment(size, last=4 * 300_000 - 1, start=start, end=end)))
        asked[sum(batch.num_rows for batch in found)] = len(store.steps)

    assert list(asked) == [1_200_000, 300_000]
    assert asked[300_000] < asked[1_200_000]


def test_columns_come_in_the_order_asked_for_and_all_of_them_by_default() -> None:
    store = MemoryStore()
    size = write(store, rows(range(2)))

    chosen = read(store, segment(size, last=1), ["_offset", "amount"])
    everything = read(store, segment(size, last=1))

    assert chosen.to_pylist() == [{"_offset": 100, "amount": 0}, {"_offset": 101, "amount": 10}]
    assert everything.column_names == ["account", "amount", "_partition", "_offset", "_timestamp", "_commit"]


def test_no_columns_at_all_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="one at least topic=t known=account"):
        SegmentReader(MemoryStore(), "root", SETTINGS, [])


def test_unknown_column_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SchemaMismatchError, match="columns=price known=account,amount,_partition"):
        SegmentReader(MemoryStore(), "root", SETTINGS, ["account", "price"])


def test_column_that_the_segment_lacks_is_null_when_it_is_nullable() -> None:
    store = MemoryStore()
    size = write(store, rows(range(2), amount=None))

    assert read(store, segment(size, last=1))["amount"].to_pylist() == [None, None]


def test_column_with_a_dot_in_its_name_is_told_from_a_part_of_another() -> None:
    schema = pa.schema([pa.field("a", pa.struct([pa.field("b", pa.int64())])), pa.field("a.b", pa.int64())])
    settings = TopicSettings("t", "a" * 32, 1, schema)
    store = MemoryStore()
    table = rows(range(1), account=None, amount=None, **{"a": [{"b": 1}], "a.b": [2]})
    size = write(store, table)

    for columns in (["a"], ["a.b"], ["a", "a.b"]):
        (batch,) = SegmentReader(store, "root", settings, columns).read(segment(size, last=0))
        assert batch.to_pylist() == [{name: {"a": {"b": 1}, "a.b": 2}[name] for name in columns}]


def test_segment_that_the_writer_wrote_is_read_as_it_was_given() -> None:
    nested = pa.struct([pa.field("x", pa.list_(pa.field("element", pa.decimal128(10, 2))))])
    schema = pa.schema(
        [pa.field("n", nested), pa.field("m", pa.map_(pa.string(), pa.binary())), pa.field("t", pa.timestamp("us"))]
    )
    settings = TopicSettings("t", "a" * 32, 1, schema)
    store = MemoryStore()
    writer = SegmentWriter(store, SegmentPlan("root", settings, None, 5), 0, "b" * 32, keyed=False)
    given_rows = pa.table({"n": [{"x": [None]}, None], "m": [[("k", b"v")], None], "t": [1, 2]}, schema=schema)
    writer.write(given_rows)
    staged = writer.close()

    reader = SegmentReader(store, "root", settings, schema.names)
    planned = PlannedSegment(staged.path, 0, 0, 1, 0, staged.size, 2, 0, 9)

    assert pa.Table.from_batches(reader.read(planned)).to_pylist() == given_rows.to_pylist()


# -- damage -------------------------------------------------------------------------------------

FACTS = f"path=root/s partition=0 base_offset={BASE} last_offset={BASE + 9} commit=7 reason="


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (rows(range(9)), "it has 9 records, not 10"),
        (rows(range(11)), "it has 11 records, not 10"),
        (rows([*range(9), 10]), "its offsets do not rise, or leave the segment"),
        (rows([*range(8), 9, 8]), "its offsets do not rise"),
        (rows([0, *range(9)]), "its offsets do not rise"),
        (rows([-1, *range(9)]), "its offsets do not rise"),
        (rows(range(10), _offset_delta=pa.array([None, *range(9)], pa.int64())), "it has a record without an offset"),
        (rows(range(10), _offset_delta=None), "it has no column _offset_delta"),
        (rows(range(10), _timestamp=None), "it has no column _timestamp"),
        (rows(range(10), account=None), "it has no column account"),
        (rows(range(10), amount=["x"] * 10), "its column amount is string, not int64"),
        (rows(range(10), amount=pa.array([1] * 10, pa.int32())), "its column amount is int32, not int64"),
        (rows(range(10), _offset_delta=pa.array(range(10), pa.int32())), "its column _offset_delta is int32"),
    ],
)
def test_file_that_is_another_than_the_log_says_is_damage(content: pa.Table, reason: str) -> None:
    store = MemoryStore()
    size = write(store, content)

    with pytest.raises(DamagedDataError) as raised:
        read(store, segment(size, last=9, records=10))

    assert FACTS + reason in str(raised.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (rows(range(10), account=None), "it has no column account"),
        (rows(range(10), amount=["x"] * 10), "its column amount is string, not int64"),
        (rows(range(11)), "it has 11 records, not 10"),
    ],
)
def test_damaged_file_is_refused_by_a_reader_that_has_read_a_good_one(content: pa.Table, reason: str) -> None:
    store = MemoryStore()
    reader = SegmentReader(store, "root", SETTINGS)
    good = segment(write(store, rows(range(10)), path="root/good"), last=9, records=10)
    assert sum(batch.num_rows for batch in reader.read(replace(good, path="good"))) == 10

    with pytest.raises(DamagedDataError, match=re.escape(reason)):
        list(reader.read(segment(write(store, content), last=9, records=10)))


@pytest.mark.parametrize("columns", [["_offset"], ["account"], None])
def test_damage_outside_of_the_columns_asked_for_is_told_when_it_is_in_the_footer(columns: list[str] | None) -> None:
    store = MemoryStore()
    size = write(store, rows(range(10), amount=["x"] * 10))

    with pytest.raises(DamagedDataError, match="its column amount is string"):
        read(store, segment(size, last=9, records=10), columns)


def damaged(data: bytes, how: str) -> bytes | None:
    footer = int.from_bytes(data[-8:-4], "little") + 8
    match how:
        case "gone":
            return None
        case "empty":
            return b""
        case "truncated":
            return data[:-1]
        case "longer":
            return data + b"x"
        case "no parquet":
            return b"x" * len(data)
        case "zeros inside":
            return data[:60] + bytes(len(data) - footer - 60) + data[-footer:]
    raise AssertionError(how)


@cache
def noisy_file(records: int) -> bytes:
    """A segment of numbers that do not compress."""
    store = MemoryStore()
    noise = np.random.default_rng(1).integers(0, 1 << 62, records)
    write(store, rows(range(records), account=["a"] * records, amount=noise), group_rows=200_000)
    found = store.get("root/s")
    assert found is not None
    return found.data


@pytest.mark.parametrize("how", ["gone", "empty", "truncated", "longer", "no parquet", "zeros inside"])
@pytest.mark.parametrize("records", [10, 600_000], ids=["small", "large"])
def test_file_that_can_not_be_read_is_damage_and_says_which(how: str, records: int) -> None:
    store = MemoryStore()
    whole = noisy_file(records)
    data = damaged(whole, how)
    if data is not None:
        store.put("root/s", data)

    with pytest.raises(DamagedDataError, match=f"path=root/s partition=0 base_offset=100 last_offset={99 + records}"):
        read(store, segment(len(whole), last=records - 1, records=records))


def test_changed_byte_in_a_page_is_damage_and_never_another_value() -> None:
    """The pages carry checksums: without them more than half of such changes go unnoticed."""
    store = MemoryStore()
    writer = SegmentWriter(store, SegmentPlan("root", SETTINGS, None, 5), 0, "b" * 32, keyed=False)
    writer.write(rows(range(50)).drop_columns([OFFSET_DELTA_COLUMN]))
    staged = writer.close()
    found = store.get(f"root/{staged.path}")
    assert found is not None
    planned = PlannedSegment(staged.path, 0, 0, 49, 7, staged.size, 50, 0, 99)
    reader = SegmentReader(store, "root", SETTINGS)
    right = pa.Table.from_batches(reader.read(planned))
    footer = pq.read_metadata(pa.BufferReader(found.data))
    chunks = [footer.row_group(0).column(index) for index in range(footer.num_columns)]
    # The last bytes of a column chunk are those of its data page, not of a page's header.
    places = [
        (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - back
        for chunk in chunks
        for back in range(1, 4)
    ]

    for place in places:
        store.put(f"root/{staged.path}", found.data[:place] + bytes([found.data[place] ^ 1]) + found.data[place + 1 :])
        with pytest.raises(DamagedDataError, match="commit=7"):
            list(reader.read(planned))
    store.put(f"root/{staged.path}", found.data)

    assert pa.Table.from_batches(reader.read(planned)) == right


def test_store_that_can_not_be_reached_is_no_damage() -> None:
    memory = MemoryStore()
    size = write(memory, rows(range(10)))
    store = SteppingStore(memory, (on(Operation.GET, "root/s", Fault.FAIL_BEFORE),))

    with pytest.raises(StoreUnavailableError):
        read(store, segment(size, last=9))

    assert read(store, segment(size, last=9)).num_rows == 10


def test_offsets_of_a_batch_and_of_an_empty_one() -> None:
    store = MemoryStore()
    size = write(store, rows(range(3)))
    reader = SegmentReader(store, "root", SETTINGS)

    (batch,) = reader.read(segment(size, last=2))

    assert offsets_of(batch).tolist() == [100, 101, 102]
