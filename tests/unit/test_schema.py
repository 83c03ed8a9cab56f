"""Topic schemas and their Delta form."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.errors import SchemaMismatchError
from txntable.format.schema import (
    KAFKA_SCHEMA,
    all_nullable,
    check_topic_schema,
    from_delta_schema,
    needs_timestamp_ntz,
    public_schema,
    segment_schema,
    segments_schema,
    to_delta_schema,
)
from txntable.format.topic import TopicSettings

UTC = pa.timestamp("us", tz="UTC")


def columns(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in kinds.items()])


def topic(*fields: pa.Field) -> TopicSettings:
    return TopicSettings("flights", "a" * 32, 4, pa.schema(fields))


FLIGHTS = topic(pa.field("carrier", pa.string(), nullable=False), pa.field("delay", pa.int32()))

SIMPLE = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        UTC,
        pa.timestamp("us"),
        pa.decimal128(38, 38),
        pa.decimal128(9, 0),
    ]
)


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    def struct(parts: list[tuple[pa.DataType, bool]]) -> pa.DataType:
        return pa.struct([pa.field(f"f{i}", kind, nullable=null) for i, (kind, null) in enumerate(parts)])

    return st.one_of(
        st.builds(lambda kind, null: pa.list_(pa.field("element", kind, nullable=null)), inner, st.booleans()),
        st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(struct),
        st.builds(
            lambda kind, null: pa.map_(pa.string(), pa.field("value", kind, nullable=null)), inner, st.booleans()
        ),
    )


TYPES = st.recursive(SIMPLE, _nested, max_leaves=6)


@given(st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=5))
def test_a_schema_comes_back_whole_when_it_went_through_deltas_json(parts):
    schema = pa.schema([pa.field(f"c{i}", kind, nullable=null) for i, (kind, null) in enumerate(parts)])

    stored = check_topic_schema(schema)

    assert stored.equals(from_delta_schema(to_delta_schema(stored)), check_metadata=True)
    assert to_delta_schema(stored) == to_delta_schema(schema)


def test_kafkas_schema_is_stored_as_it_is_compared():
    assert from_delta_schema(to_delta_schema(KAFKA_SCHEMA)) == KAFKA_SCHEMA
    assert check_topic_schema(KAFKA_SCHEMA) == KAFKA_SCHEMA


def test_deltas_json_names_types_as_delta_does():
    schema = pa.schema(
        [
            pa.field("a", pa.large_string(), nullable=False, metadata={"comment": "dropped"}),
            pa.field("b", pa.decimal128(10, 2)),
            pa.field("c", pa.list_(pa.field("item", pa.int16(), nullable=False))),
            pa.field("d", pa.map_(pa.string(), pa.timestamp("us"))),
        ]
    )

    assert json.loads(to_delta_schema(schema))["fields"] == [
        {"name": "a", "type": "string", "nullable": False, "metadata": {}},
        {"name": "b", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
        {
            "name": "c",
            "type": {"type": "array", "elementType": "short", "containsNull": False},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "d",
            "type": {
                "type": "map",
                "keyType": "string",
                "valueType": "timestamp_ntz",
                "valueContainsNull": True,
            },
            "nullable": True,
            "metadata": {},
        },
    ]


@pytest.mark.parametrize("kind", ["interval", "decimal(39)", "void", {"type": "variant"}], ids=str)
def test_a_stored_schema_is_refused_when_its_type_is_unknown(kind):
    text = json.dumps({"type": "struct", "fields": [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]})

    with pytest.raises(ValueError, match="no such type"):
        from_delta_schema(text)


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (columns(_offset=pa.int64()), "_offset"),
        (pa.schema([pa.field("a b", pa.int64())]), "'a b'"),
        (pa.schema([pa.field("a=b", pa.int64())]), "'a=b'"),
        (pa.schema([pa.field("", pa.int64())]), "''"),
        (columns(a=pa.list_(pa.struct([pa.field("x;y", pa.int64())]))), "'a.x;y'"),
    ],
)
def test_a_column_is_refused_when_its_name_can_not_be_stored(schema, column):
    with pytest.raises(SchemaMismatchError) as refused:
        check_topic_schema(schema)

    assert refused.value.facts["column"] == column


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (pa.schema([("delay", pa.int64()), ("Delay", pa.int64())]), "Delay,delay"),
        (pa.schema([("delay", pa.int64()), ("delay", pa.int64())]), "delay,delay"),
        (columns(a=pa.struct([("x", pa.int64()), ("X", pa.int64())])), "a.X,x"),
    ],
)
def test_two_columns_are_refused_when_they_differ_by_case_only(schema, names):
    with pytest.raises(SchemaMismatchError) as refused:
        check_topic_schema(schema)

    assert refused.value.facts["columns"] == names


def test_a_schema_is_refused_without_columns():
    with pytest.raises(SchemaMismatchError, match="at least one column"):
        check_topic_schema(pa.schema([]))


@pytest.mark.parametrize(
    ("kind", "nearest"),
    [
        (pa.timestamp("ns"), "timestamp[us]"),
        (pa.timestamp("ms", tz="Europe/Berlin"), "timestamp[us, tz=UTC]"),
        (pa.uint8(), "int16"),
        (pa.uint64(), "decimal128(20, 0)"),
        (pa.float16(), "float"),
        (pa.date64(), "date32"),
        (pa.time64("us"), "int64"),
        (pa.duration("s"), "int64"),
        (pa.null(), "string"),
        (pa.binary(16), "binary"),
        (pa.decimal256(50, 4), "decimal128(38, 4)"),
        (pa.decimal128(5, -2), "decimal128(5, 0)"),
        (pa.list_(pa.int64(), 3), "list<int64>"),
        (pa.list_(pa.time32("s")), "int64"),
        (pa.struct([]), "string"),
    ],
    ids=str,
)
def test_a_type_is_refused_with_the_nearest_that_can_be_stored(kind, nearest):
    with pytest.raises(SchemaMismatchError) as refused:
        check_topic_schema(columns(good=pa.int64(), bad=kind))

    assert refused.value.facts["column"] == "bad"
    assert refused.value.facts["nearest"] == nearest


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (UTC, False),
        (pa.timestamp("us"), True),
        (pa.list_(pa.struct([("a", pa.timestamp("us"))])), True),
        (pa.map_(pa.timestamp("us"), pa.string()), True),
        (pa.map_(pa.string(), pa.timestamp("us")), True),
        (pa.map_(pa.string(), pa.string()), False),
    ],
    ids=str,
)
def test_a_zone_less_timestamp_is_found_wherever_it_is(kind, expected):
    assert needs_timestamp_ntz(columns(a=pa.int64(), b=kind)) is expected


def test_the_tables_of_a_topic_have_the_columns_of_the_format():
    assert segments_schema(FLIGHTS).names == [
        "carrier", "delay", "_offset_delta", "_timestamp", "_partition", "_base_offset", "_last_offset", "_producer_id",
        "_producer_epoch", "_control", "_marker",
    ]  # fmt: skip
    assert public_schema(FLIGHTS).names == [
        "carrier", "delay", "_offset_delta", "_timestamp", "_partition", "_base_offset", "_last_offset", "_commit",
    ]  # fmt: skip
    assert all(field.nullable for field in segments_schema(FLIGHTS))
    assert not public_schema(FLIGHTS).field("carrier").nullable
    assert segments_schema(FLIGHTS).names[:4] == segment_schema(FLIGHTS.schema).names


def test_all_nullable_reaches_every_depth():
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    schema = pa.schema([pa.field("a", pa.list_(pa.field("element", inner, nullable=False)), nullable=False)])

    (field,) = all_nullable(schema)

    assert field.nullable
    assert field.type.value_field.nullable
    assert field.type.value_type.field("x").nullable
