"""Bringing rows into the shape of a topic: what is taken, what is widened, what is refused and by which name."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from txntable.errors import MissingKeyError, SchemaMismatchError
from txntable.format.conform import TIMESTAMP_COLUMN, conform
from txntable.format.schema import all_nullable, check_topic_schema
from txntable.format.topic import TopicSettings

UTC = pa.timestamp("us", tz="UTC")


def columns(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


def topic(*fields: pa.Field) -> TopicSettings:
    return TopicSettings("flights", "a" * 32, 4, pa.schema(fields))


FLIGHTS = topic(pa.field("carrier", pa.string(), nullable=False), pa.field("delay", pa.int32()))


def test_rows_are_put_in_order_by_name():
    rows = pa.table({"delay": pa.array([1, None], pa.int32()), "carrier": ["UA", "AA"]})

    shaped = conform(rows, FLIGHTS)

    assert shaped.column_names == ["carrier", "delay"]
    assert shaped.to_pylist() == [{"carrier": "UA", "delay": 1}, {"carrier": "AA", "delay": None}]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["a", None], pa.large_string()), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array(["a", None]).dictionary_encode(), pa.string()),
        (pa.array([b"a", None], pa.large_binary()), pa.binary()),
        (pa.array([0, None], pa.timestamp("us", tz="Europe/Berlin")), UTC),
        (pa.nulls(2), pa.float64()),
        (pa.array([["a"], None], pa.large_list(pa.large_string())), pa.list_(pa.string())),
        (pa.array([[("a", "b")], None], pa.map_(pa.string(), pa.large_string())), pa.map_(pa.string(), pa.string())),
        (pa.array([{"x": "a"}, None], pa.struct([("x", pa.large_string())])), pa.struct([("x", pa.string())])),
    ],
    ids=lambda part: str(part if isinstance(part, pa.DataType) else part.type),
)
def test_rows_are_taken_when_a_column_is_the_same_type_otherwise_encoded(column, kind):
    batch = pa.RecordBatch.from_arrays([column], names=["a"])

    shaped = conform(batch, topic(*check_topic_schema(columns(a=kind))))

    assert shaped.schema.field("a").type == check_topic_schema(columns(a=kind)).field("a").type
    assert shaped.column("a").to_pylist() == column.cast(kind).to_pylist()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.float32()),
        (pa.int64(), pa.decimal128(20, 2)),
        (pa.uint64(), pa.int64()),
        (pa.uint8(), pa.int8()),
        (pa.float64(), pa.float32()),
        (pa.float32(), pa.int64()),
        (pa.bool_(), pa.int32()),
        (pa.int32(), pa.bool_()),
        (pa.int32(), pa.string()),
        (pa.string(), pa.int32()),
        (pa.date32(), UTC),
        (pa.timestamp("us"), pa.date32()),
        (pa.binary(), pa.string()),
        (pa.timestamp("us"), UTC),
        (UTC, pa.timestamp("us")),
        (pa.timestamp("ns", tz="UTC"), UTC),
        (pa.decimal128(10, 2), pa.decimal128(12, 5)),
        (pa.decimal128(10, 2), pa.decimal128(10, 1)),
        (pa.decimal128(10, 0), pa.int64()),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.time32("s"), pa.int32()),
        (pa.struct([("x", pa.int64())]), pa.int64()),
        (pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_rows_are_refused_when_a_column_is_of_another_type(found, expected):
    rows = pa.table({"a": pa.array([], found)})

    with pytest.raises(SchemaMismatchError) as refused:
        conform(rows, topic(pa.field("a", expected)))

    assert (refused.value.facts["column"], refused.value.facts["found"]) == ("a", str(found))
    assert refused.value.facts["expected"] == str(expected)


LEG = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("miles", pa.int64()), pa.field("x", UTC)])


@pytest.mark.parametrize(
    ("found", "expected", "facts"),
    [
        (pa.struct([("name", pa.string()), ("miles", pa.float64())]), LEG, {"column": "a.miles", "expected": "int64"}),
        (pa.struct([("miles", pa.int64())]), LEG, {"missing": "a.name"}),
        (pa.struct([("name", pa.string()), ("mile", pa.int64())]), LEG, {"unknown": "a.mile"}),
        (pa.struct([("name", pa.string()), ("name", pa.string())]), LEG, {"twice": "a.name"}),
        (pa.list_(LEG.fields[1]), pa.list_(pa.int32()), {"column": "a.element", "found": "int64"}),
        (
            pa.list_(pa.struct([("z", pa.int8())])),
            pa.list_(LEG),
            {"unknown": "a.element.z", "missing": "a.element.name"},
        ),
        (pa.map_(pa.int64(), pa.int8()), pa.map_(pa.int32(), pa.int64()), {"column": "a.key", "expected": "int32"}),
        (pa.map_(pa.int8(), pa.string()), pa.map_(pa.int32(), pa.int64()), {"column": "a.value", "found": "string"}),
    ],
    ids=str,
)
def test_rows_are_refused_by_the_path_of_what_does_not_fit_inside_of_a_column(found, expected, facts):
    rows = pa.table({"a": pa.array([], found)})

    with pytest.raises(SchemaMismatchError) as refused:
        conform(rows, topic(pa.field("a", expected)))

    assert {name: refused.value.facts.get(name) for name in facts} == facts


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pa.int8(), pa.int16()),
        (pa.int16(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.int8(), pa.int64()),
        (pa.uint8(), pa.int16()),
        (pa.uint32(), pa.int64()),
        (pa.int16(), pa.float32()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.float16(), pa.float32()),
        (pa.int8(), pa.decimal128(3, 0)),
        (pa.int16(), pa.decimal128(5, 0)),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.int64(), pa.decimal128(19, 0)),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["plain", "dictionary", "list", "struct", "map"])
def test_every_value_is_kept_when_a_column_is_only_widened(form, found, expected):
    least, most = extremes(found)
    narrow = pa.array([least, None, most], found)
    column, kind = nested(form, narrow, expected)

    shaped = conform(pa.table({"a": column}), topic(*check_topic_schema(columns(a=kind))))

    assert shaped.schema.field("a").type == check_topic_schema(columns(a=kind)).field("a").type
    assert shaped.column("a").to_pylist() == column.to_pylist()


def extremes(kind: pa.DataType) -> tuple[object, object]:
    if pa.types.is_decimal(kind):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return -most, most
    if pa.types.is_floating(kind):
        return -1.5, float(np.finfo(kind.to_pandas_dtype()).max)
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def nested(form: str, values: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, pa.DataType]:
    """Return values inside of a type, and that type around another."""
    offsets = pa.array([0, 1, 1, 3], pa.int32())
    keys = pa.array([1, 2, 3], pa.int32())
    match form:
        case "dictionary":
            return pa.DictionaryArray.from_arrays(pa.array([0, None, 2], pa.int8()), values), wanted
        case "list":
            return pa.ListArray.from_arrays(offsets, values), pa.list_(wanted)
        case "struct":
            return pa.StructArray.from_arrays([values], ["x"]), pa.struct([("x", wanted)])
        case "map":
            return pa.MapArray.from_arrays(offsets, keys, values), pa.map_(pa.int64(), wanted)
    return values, wanted


def test_a_date_becomes_midnight_in_a_column_without_a_zone_and_one_out_of_its_range_is_refused():
    days = pa.array([dt.date(2013, 1, 1)], pa.date32())
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    local = topic(pa.field("a", pa.timestamp("us")))

    shaped = conform(pa.table({"a": days}), local)
    with pytest.raises(SchemaMismatchError) as refused:
        conform(pa.table({"a": far}), local)

    assert shaped.column("a").to_pylist() == [dt.datetime(2013, 1, 1)]  # noqa: DTZ001  none is meant
    assert (refused.value.facts["column"], refused.value.facts["found"]) == ("a", "date32[day]")


@pytest.mark.parametrize("form", ["table", "batch"])
def test_columns_that_may_be_null_are_null_when_they_are_left_out_at_any_depth(form):
    inner = pa.struct([("name", pa.string())])
    table = pa.table({"a": pa.array([[{"name": "x"}], None, []], pa.list_(inner))})
    rows = table if form == "table" else table.to_batches()[0]

    shaped = conform(rows.slice(0), topic(pa.field("b", pa.map_(pa.string(), LEG)), pa.field("a", pa.list_(LEG))))

    assert shaped.to_pylist() == [
        {"b": None, "a": [{"name": "x", "miles": None, "x": None}]},
        {"b": None, "a": None},
        {"b": None, "a": []},
    ]


def test_parts_of_a_struct_are_taken_by_name_in_any_order():
    given = pa.array([{"y": 1, "x": 2}], pa.struct([("y", pa.int32()), ("x", pa.int64())]))

    shaped = conform(pa.table({"a": given}), topic(pa.field("a", pa.struct([("x", pa.int64()), ("y", pa.int64())]))))

    assert shaped.column("a").to_pylist() == [{"x": 2, "y": 1}]


def test_rows_are_refused_when_they_have_none_of_the_topics_columns():
    times = pa.array([0], UTC)

    with pytest.raises(SchemaMismatchError, match="rows of nulls"):
        conform(pa.table({TIMESTAMP_COLUMN: times}), topic(pa.field("a", pa.int64()), pa.field("b", pa.int64())))


def test_rows_of_a_compacted_topic_are_refused_when_its_key_column_is_left_out():
    fields = (pa.field("k", pa.string()), pa.field("v", pa.int64()))
    compacted = replace(topic(*fields), key=("k",), config={"cleanup.policy": "compact"})

    with pytest.raises(MissingKeyError) as refused:
        conform(pa.table({"v": pa.array([], pa.int64())}), compacted)

    assert refused.value.facts["column"] == "k"


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (["delay"], {"missing": "carrier"}),
        (["carrier", "delay", "speed"], {"unknown": "speed"}),
        (["Carrier", "delay"], {"missing": "carrier", "unknown": "Carrier"}),
        (["carrier", "delay", "delay"], {"twice": "delay"}),
        (["carrier", "delay", "_offset"], {"unknown": "_offset"}),
    ],
)
def test_rows_are_refused_when_their_columns_are_not_the_topics(names, facts):
    rows = pa.Table.from_arrays([pa.nulls(0)] * len(names), names=names)

    with pytest.raises(SchemaMismatchError) as refused:
        conform(rows, FLIGHTS)

    assert {
        name: value for name, value in refused.value.facts.items() if name in {"missing", "unknown", "twice"}
    } == facts


NOT_NULL = pa.struct([pa.field("x", pa.int64(), nullable=False)])
NULLS_INSIDE = [
    (pa.field("a", pa.int64(), nullable=False), [1, None], "a"),
    (pa.field("a", NOT_NULL), [{"x": 1}, None, {"x": None}], "a.x"),
    (pa.field("a", pa.list_(pa.field("element", pa.int64(), nullable=False))), [[1], None, [2, None]], "a.element"),
    (pa.field("a", pa.list_(NOT_NULL)), [[{"x": 1}, None], [{"x": None}]], "a.element.x"),
    (
        pa.field("a", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
        [[("k", 1)], None, [("l", None)]],
        "a.value",
    ),
]


def loose(kind: pa.DataType) -> pa.DataType:
    return all_nullable(pa.schema([pa.field("a", kind)])).field("a").type


@pytest.mark.parametrize(("field", "values", "path"), NULLS_INSIDE, ids=[path for _, _, path in NULLS_INSIDE])
@pytest.mark.parametrize("form", ["table", "batch"])
def test_rows_are_refused_when_something_required_is_null_at_any_depth(form, field, values, path):
    (stored,) = check_topic_schema(pa.schema([field]))
    table = pa.table({"a": pa.array(values, loose(stored.type))})
    rows = table if form == "table" else table.to_batches()[0]

    with pytest.raises(SchemaMismatchError) as refused:
        conform(rows, topic(stored))

    assert (refused.value.facts["column"], refused.value.facts["found"]) == (path, "null")


@pytest.mark.parametrize(("field", "values", "path"), NULLS_INSIDE, ids=[path for _, _, path in NULLS_INSIDE])
def test_rows_are_taken_when_the_null_is_not_among_them(field, values, path):
    (stored,) = check_topic_schema(pa.schema([field]))
    rows = pa.table({"a": pa.array(values, loose(stored.type))})

    kept = conform(rows.slice(0, len(values) - 1) if path != "a.element.x" else rows.slice(0, 1), topic(stored))

    assert kept.num_rows > 0


def test_rows_may_bring_their_timestamps_last():
    times = pa.array([dt.datetime(2013, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", tz="America/New_York"))
    rows = pa.table({TIMESTAMP_COLUMN: times, "delay": pa.array([1], pa.int32()), "carrier": ["UA"]})

    shaped = conform(rows, FLIGHTS)

    assert shaped.column_names == ["carrier", "delay", TIMESTAMP_COLUMN]
    assert shaped.schema.field(TIMESTAMP_COLUMN).type == UTC


def test_rows_are_refused_when_a_timestamp_is_null():
    rows = pa.table({TIMESTAMP_COLUMN: pa.array([None], UTC), "delay": pa.array([1], pa.int32()), "carrier": ["UA"]})

    with pytest.raises(SchemaMismatchError) as refused:
        conform(rows, FLIGHTS)

    assert refused.value.facts["column"] == TIMESTAMP_COLUMN


def test_column_whose_name_differs_by_case_is_told_the_name_that_was_meant():
    with pytest.raises(SchemaMismatchError, match=r"did you mean carrier\? \(names are matched by case\)"):
        conform(pa.table({"Carrier": ["UA"]}), FLIGHTS)


@pytest.mark.parametrize("place", ["_partition", "_offset", "_commit", "_base_offset"])
def test_rows_that_were_read_from_a_topic_are_refused_with_what_to_leave_out(place):
    with pytest.raises(SchemaMismatchError, match=r"read from a topic .* select only the columns to be written"):
        conform(pa.table({"carrier": ["UA"], place: [0]}), FLIGHTS)


def test_rows_with_another_unknown_column_are_not_said_to_be_read_from_a_topic():
    with pytest.raises(SchemaMismatchError) as refused:
        conform(pa.table({"carrier": ["UA"], "b": [0]}), FLIGHTS)

    assert "read from a topic" not in str(refused.value)
