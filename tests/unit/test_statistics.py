"""Statistics: never a bound that would hide a row."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.segments.statistics import LARGEST_FOOTER_BYTES, Observed, cut_upwards, delta_statistics, leaves

UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")
TEXTS = st.text(max_size=4) | st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), min_size=30, max_size=40)

VALUES: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), TEXTS),
    (pa.date32(), st.dates()),
    (UTC, st.datetimes(timezones=st.just(dt.UTC))),
    (NTZ, st.datetimes()),
    (pa.decimal128(7, 2), st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.decimal128(38, 3), st.integers(-(10**25), 10**25).map(lambda n: Decimal(n).scaleb(-3))),
]
IDS = [str(kind) for kind, _ in VALUES]


def statistics_of(table: pa.Table, row_group_size: int = 3) -> dict[str, Any]:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=row_group_size, store_decimal_as_integer=True)
    with_nan: set[tuple[str, ...]] = {
        (name,)
        for name in table.column_names
        if pa.types.is_floating(table.schema.field(name).type)
        and any(value is not None and math.isnan(value) for value in table.column(name).to_pylist())
    }
    observed = Observed(with_nan)
    for name in table.column_names:
        if pa.types.is_string(table.schema.field(name).type):
            texts = [text.encode() for text in table.column(name).to_pylist() if text is not None]
            if any(len(text) > LARGEST_FOOTER_BYTES for text in texts):
                observed.note_texts((name,), min(texts), max(texts))
    stats = delta_statistics(pq.read_metadata(file), leaves(table.schema), observed)
    return json.loads(stats, parse_float=Decimal)


def bound(stats: dict[str, Any], side: str) -> Any:
    """The bound of column ``a``; a side that cannot be said is not there at all, never without a column."""
    assert stats.get(side) != {}
    return stats.get(side, {}).get("a")


def read_bound(text: Any, kind: pa.DataType) -> Any:
    """Read a bound as a Delta reader does."""
    if pa.types.is_date32(kind):
        return dt.date.fromisoformat(text)
    if pa.types.is_timestamp(kind):
        assert text.endswith("Z") is (kind.tz is not None)
        return dt.datetime.fromisoformat(text)
    return float(text) if pa.types.is_floating(kind) else text


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=IDS)
@given(data=st.data())
def test_no_value_lies_outside_of_the_bounds(kind, values, data):
    column = pa.array(data.draw(st.lists(st.none() | values, min_size=1, max_size=10)), kind)

    stats = statistics_of(pa.table({"a": column}))

    present = [value for value in column.to_pylist() if value is not None]
    assert stats["numRecords"] == len(column)
    assert stats["nullCount"]["a"] == column.null_count
    low, high = bound(stats, "minValues"), bound(stats, "maxValues")
    if low is not None:
        assert all(read_bound(low, kind) <= value for value in present)
    if high is not None:
        assert all(read_bound(high, kind) >= value for value in present)
    if not present:
        assert (low, high) == (None, None)
    if not pa.types.is_floating(kind) and present:
        assert low is not None
        assert high is not None or pa.types.is_string(kind)


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.int32(), [3, None, -1, 7], -1, 7),
        (pa.float64(), [1.5, -0.0, None], Decimal("0.0"), Decimal("1.5")),
        (pa.float64(), [1.5, math.inf], Decimal("1.5"), None),
        (pa.float64(), [1.5, math.nan], None, None),
        (pa.string(), ["b", "ä", "a", None], "a", "ä"),
        (pa.string(), ["x" * 40], "x" * 32, "x" * 31 + "y"),
        (pa.string(), ["", None], "", ""),
        (pa.string(), ["y" * 5000], "y" * 32, "y" * 31 + "z"),
        (pa.string(), ["\U0010ffff" * 40], "\U0010ffff" * 32, "\U0010ffff" * 40),
        (pa.string(), ["\U0010ffff" * 40 + "a" * 999], "\U0010ffff" * 32, "\U0010ffff" * 40 + "a" * 215 + "b"),
        (pa.string(), ["\U0010ffff" * 257], "\U0010ffff" * 32, None),
        (pa.date32(), [dt.date(2013, 1, 1), dt.date(1, 1, 1)], "0001-01-01", "2013-01-01"),
        (UTC, [1_500, -1], "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.002Z"),
        (NTZ, [1_500, 1_000], "1970-01-01T00:00:00.001", "1970-01-01T00:00:00.002"),
        (UTC, [253402300799_999999], "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"),
        (NTZ, [253402300799_999000], "9999-12-31T23:59:59.999", "9999-12-31T23:59:59.999"),
        (UTC, [2**62], None, None),
        (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("3.10")], Decimal("-1.25"), Decimal("3.10")),
        (pa.decimal128(30, 2), [Decimal("-1.25"), Decimal("9" * 20)], Decimal("-1.25"), Decimal("9" * 20)),
        (pa.decimal128(18, 0), [Decimal(5)], 5, 5),
        (pa.bool_(), [True, None, False], False, True),
        (pa.binary(), [b"a"], None, None),
    ],
    ids=str,
)
def test_bounds_are_as_tight_as_deltas_json_allows(kind, values, low, high):
    stats = statistics_of(pa.table({"a": pa.array(values, kind)}))

    assert bound(stats, "minValues") == low
    assert bound(stats, "maxValues") == high
    assert stats["nullCount"]["a"] == values.count(None)


def test_bounds_hold_when_a_text_is_too_long_for_one_row_groups_footer():
    stats = statistics_of(pa.table({"a": ["b", "a", "c", "z" * 5000]}), row_group_size=3)

    assert (stats["minValues"]["a"], stats["maxValues"]["a"]) == ("a", "z" * 31 + "{")


def test_a_decimal_is_said_with_all_its_digits_and_no_exponent():
    values = [Decimal("-0.0000001"), Decimal("12345678901234567890123.4567891")]
    file = io.BytesIO()
    table = pa.table({"a": pa.array(values, pa.decimal128(38, 7))})
    pq.write_table(table, file, store_decimal_as_integer=True)

    text = delta_statistics(pq.read_metadata(file), leaves(table.schema))

    assert '"minValues":{"a":-0.0000001},"maxValues":{"a":12345678901234567890123.4567891}' in text


def test_a_text_is_said_without_escaped_pairs():
    """deltalake decodes an escaped pair of every second plane to another character."""
    file = io.BytesIO()
    table = pa.table({"a": ["\U00020bb7"]})
    pq.write_table(table, file)

    assert '"minValues":{"a":"\U00020bb7"}' in delta_statistics(pq.read_metadata(file), leaves(table.schema))


@pytest.mark.parametrize(("zero", "others"), [(0.0, []), (-0.0, [0.0]), (0.0, [None])])
def test_bounds_at_zero_hold_for_readers_that_order_the_zeros(zero, others):
    file = io.BytesIO()
    table = pa.table({"a": pa.array([zero, *others], pa.float64())})
    pq.write_table(table, file)

    text = delta_statistics(pq.read_metadata(file), leaves(table.schema))

    assert '"minValues":{"a":-0.0},"maxValues":{"a":0.0}' in text


@pytest.mark.parametrize(
    ("value", "sides"),
    [(math.inf, {"minValues"}), (-math.inf, {"maxValues"}), (math.nan, set()), (1.0, {"minValues", "maxValues"})],
)
def test_a_side_is_left_out_whole_when_a_column_can_not_be_said(value, sides):
    """deltalake takes a missing bound beside others for null, and drops the file from every filter on the column."""
    stats = statistics_of(pa.table({"a": [1.0, value], "b": [1, 2], "_timestamp": pa.array([1, 2], UTC)}))

    assert {side for side in ("minValues", "maxValues") if side in stats} == sides
    for side in sides:
        assert set(stats[side]) == {"a", "b", "_timestamp"}


def test_the_newest_time_is_said_even_where_the_upper_bounds_are_left_out():
    """By it time lookups pass over segments; the pattern that finds it wants it before the counts."""
    stats = statistics_of(pa.table({"a": [math.inf], "_timestamp": pa.array([1], UTC)}))

    assert stats["txntable"] == {"_timestamp": "1970-01-01T00:00:00.001Z"}
    # A footer of older pyarrow has a lower bound here, which is none too many.
    assert [name for name in stats if name != "minValues"] == ["numRecords", "txntable", "nullCount"]
    assert list(stats).index("txntable") == list(stats).index("nullCount") - 1


def test_a_column_of_nulls_takes_no_bounds_of_others_along():
    stats = statistics_of(pa.table({"a": pa.array([None], pa.float64()), "b": [1]}))

    assert (stats["minValues"], stats["maxValues"]) == ({"b": 1}, {"b": 1})


def test_a_struct_of_which_nothing_can_be_said_is_there_all_the_same():
    """Left out it would be null itself to deltalake, which then drops the file from ``s IS NULL``."""
    kind = pa.struct([("x", pa.float64())])

    stats = statistics_of(pa.table({"s": pa.array([None, {"x": None}], kind), "b": [1, 2]}))

    assert (stats["minValues"], stats["maxValues"]) == ({"s": {}, "b": 1}, {"s": {}, "b": 2})


def test_bounds_hold_when_one_row_group_is_all_null():
    stats = statistics_of(pa.table({"a": pa.array([None, None, None, 5], pa.int64())}), row_group_size=3)

    assert (stats["minValues"]["a"], stats["maxValues"]["a"], stats["nullCount"]["a"]) == (5, 5, 3)


def test_fields_of_structs_have_bounds_and_parts_of_lists_and_maps_have_none():
    kind = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.list_(pa.int64()))])
    table = pa.table(
        {
            "s": pa.array([{"x": 1, "y": [1]}, None, {"x": None, "y": None}], kind),
            "l": pa.array([[1, None], None, []], pa.list_(pa.int64())),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "after": pa.array([7, 8, 9]),
        }
    )

    stats = statistics_of(table)

    assert stats["minValues"] == {"s": {"x": 1}, "after": 7}
    assert stats["maxValues"] == {"s": {"x": 1}, "after": 9}
    assert stats["nullCount"] == {"s": {"x": 2}, "after": 0}


def test_a_list_or_a_map_is_one_of_the_first_columns():
    """As Delta counts: a reader that expects the bounds of a column and finds none takes them for null."""
    kinds = [pa.list_(pa.int64()), pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))]
    nested = {f"m{i}": pa.array([None], kinds[i % 2]) for i in range(10)}
    table = pa.table({**nested, **{f"c{i}": [i] for i in range(30)}})

    assert list(statistics_of(table)["minValues"]) == [f"c{i}" for i in range(22)]


def test_only_the_first_columns_and_the_formats_own_have_statistics():
    table = pa.table({**{f"c{i}": [i] for i in range(40)}, "_offset_delta": [0]})

    stats = statistics_of(table)

    assert list(stats["minValues"]) == [*(f"c{i}" for i in range(32)), "_offset_delta"]
    assert list(stats["nullCount"]) == list(stats["minValues"])


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("ab", "ac"),
        ("a\ud7ff", "a\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", None),
        ("a\uffff", "a\U00010000"),
    ],
    ids=ascii,
)
def test_a_text_is_cut_upwards_to_the_next_valid_one(prefix, expected):
    assert cut_upwards(prefix) == expected
