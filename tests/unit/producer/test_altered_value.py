"""What is sent with ``row=`` reads back as it was given, or is refused: Arrow changes nothing without a word."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.site import Site
from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.topic import TopicSettings
from txntable.producer.row_check import RowCheck

ZONED, WITHOUT_ZONE = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
FAR = dt.timezone(dt.timedelta(hours=-5))
NAIVE = dt.datetime(2026, 2, 1, 23, 59)  # noqa: DTZ001  what is sent without a zone
AWARE = dt.datetime(2026, 2, 1, 23, 59, tzinfo=FAR)
BEYOND_FLOAT = 1e300


def check_of(kind: pa.DataType) -> RowCheck:
    return RowCheck(TopicSettings("t", "a" * 32, 1, pa.schema([pa.field("x", kind)])))


ALTERED = [
    (pa.date32(), NAIVE, "would lose its time"),
    (pa.date32(), dt.datetime(2026, 2, 1, tzinfo=dt.UTC), "would lose its time"),
    (pa.date32(), pd.NaT, "would lose its time"),
    (pa.date32(), 1.5, "float is no date"),
    (pa.date32(), np.bool_(True), "bool is no date"),
    (ZONED, NAIVE, "without a time zone"),
    (WITHOUT_ZONE, AWARE, "would be lost"),
    (WITHOUT_ZONE, NAIVE.replace(tzinfo=dt.UTC), "would be lost"),
    (ZONED, 1.5, "float is no datetime"),
    (WITHOUT_ZONE, Decimal("1.5"), "Decimal is no datetime"),
    (WITHOUT_ZONE, pd.Timestamp("2026-02-01T00:00:00.000000001"), "would cut its nanoseconds"),
    (ZONED, pa.scalar(NAIVE), ""),
    (pa.float32(), BEYOND_FLOAT, "would become infinite"),
    (pa.float32(), -3.5e38, "would become infinite"),
    (pa.float32(), np.float64(BEYOND_FLOAT), "would become infinite"),
    (pa.float64(), True, "bool is no number"),
    (pa.float32(), 2**24 + 1, "outside of the range"),
    (pa.float64(), 2**53 + 1, "outside of the range"),
    (pa.int64(), 1.5, "cut its fraction"),
    (pa.int64(), np.float32(1.5), "cut its fraction"),
    (pa.int64(), Decimal("1.5"), "cut its fraction"),
    (pa.int64(), Fraction(1, 2), "cut its fraction"),
    (pa.int64(), np.bool_(True), "is no integer"),
    (pa.int64(), np.datetime64("2026-02-01T00:00:00.000000001"), "is no integer"),
    (pa.decimal128(10, 2), Decimal("1.005"), "would cause data loss"),
    (pa.decimal128(10, 2), 1.5, "int or decimal object expected"),
    (pa.string(), b"x", "decode them"),
    (pa.string(), bytearray(b"x"), "decode them"),
    (pa.binary(), "x", "encode it"),
    (pa.list_(pa.string()), "abc", "take it apart"),
    (pa.list_(pa.int32()), b"abc", "take it apart"),
]


@pytest.mark.parametrize(("kind", "value", "why"), ALTERED)
def test_value_that_arrow_would_alter_is_refused(kind: pa.DataType, value: Any, why: str) -> None:
    with pytest.raises(SchemaMismatchError, match=f"does not fit its column: .*{why}") as refused:
        check_of(kind).check({"x": value})

    assert refused.value.facts["column"] == "x"


@pytest.mark.parametrize(("kind", "value", "why"), ALTERED)
def test_value_that_arrow_would_alter_is_refused_inside_of_others(kind: pa.DataType, value: Any, why: str) -> None:
    whole = pa.list_(pa.struct([pa.field("m", pa.map_(pa.string(), kind))]))
    for struct in ({"m": {"k": value}}, ({"k": value},), [("m", [("k", value)])]):
        with pytest.raises(SchemaMismatchError, match="does not fit its column"):
            check_of(whole).check({"x": [None, struct]})
    for array in ([value], (value,)):
        with pytest.raises(SchemaMismatchError, match="does not fit its column"):
            check_of(pa.list_(kind)).check({"x": array})


def test_refusal_of_a_part_names_its_path() -> None:
    kind = pa.list_(pa.struct([pa.field("day", pa.date32())]))

    with pytest.raises(SchemaMismatchError, match=r"\.date\(\)") as refused:
        check_of(kind).check({"x": [{"day": NAIVE}]})

    assert refused.value.facts["column"] == "x.element.day"


def test_key_of_a_map_is_not_altered_either() -> None:
    with pytest.raises(SchemaMismatchError, match="fraction") as refused:
        check_of(pa.map_(pa.int64(), pa.string())).check({"x": {1.5: "a"}})

    assert refused.value.facts["column"] == "x.key"


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (ZONED, AWARE, dt.datetime(2026, 2, 2, 4, 59, tzinfo=dt.UTC)),
        (ZONED, pd.Timestamp("2026-02-01T12:00", tz="UTC"), dt.datetime(2026, 2, 1, 12, tzinfo=dt.UTC)),
        (ZONED, dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), None),
        (WITHOUT_ZONE, NAIVE, NAIVE),
        (pa.float32(), -math.inf, -math.inf),
        (pa.float32(), 0.1, np.float32(0.1).item()),
        (pa.float32(), np.float32(1.5), 1.5),
        (pa.int64(), Decimal(2), 2),
        (pa.int64(), np.int8(2), 2),
        (pa.date32(), 5, dt.date(1970, 1, 6)),
        (pa.list_(pa.int64()), np.array([1, 2]), [1, 2]),
        (pa.int64(), pa.scalar(5), 5),
    ],
)
def test_value_that_says_the_same_in_another_way_is_taken(kind: pa.DataType, value: Any, taken: Any) -> None:
    (found,) = pa.array(check_of(kind).check({"x": value}).values, kind).to_pylist()

    assert found == (dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC) if taken is None else taken)


# -- whatever is taken --------------------------------------------------------------------------

MOMENTS = st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.one_of(st.none(), st.timezones()))  # noqa: DTZ001
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**24 + 1, 2**53 + 1, 2**31, 2**63, -(2**15), BEYOND_FLOAT, 3.4028235677973366e38, -0.0]),
    st.floats(),
    st.floats(width=32),
    st.decimals(allow_nan=True, places=3) | st.decimals(-9999, 9999, places=2),
    st.fractions(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.dates(),
    MOMENTS,
    st.times(),
    st.timedeltas(),
    st.integers(-128, 127).map(np.int8),
    st.floats().map(np.float64),
    st.booleans().map(np.bool_),
)
TYPES = st.recursive(
    st.sampled_from(
        [
            *(pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
            *(pa.date32(), ZONED, WITHOUT_ZONE, pa.decimal128(10, 2), pa.decimal128(38, 0)),
        ]
    ),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(lambda kind: pa.struct([pa.field("a", kind), pa.field("b", pa.string())]))
        | st.tuples(inner, inner).map(lambda kinds: pa.map_(*kinds))
    ),
    max_leaves=3,
)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of the shape of a type, with leaves of any kind."""
    whole: st.SearchStrategy[Any]
    if pa.types.is_list(kind):
        whole = st.lists(st.none() | values_of(kind.value_type), max_size=2)
    elif pa.types.is_struct(kind):
        whole = st.fixed_dictionaries({}, optional={field.name: values_of(field.type) for field in kind.fields})
    elif pa.types.is_map(kind):
        whole = st.lists(st.tuples(values_of(kind.key_type), values_of(kind.item_type)), max_size=2)
    else:
        return fitting(kind) | SCALARS
    return whole | SCALARS


def fitting(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values that are likely to be taken."""
    if pa.types.is_decimal(kind):
        return st.decimals(-999, 999, places=2)
    if pa.types.is_timestamp(kind):
        return MOMENTS
    if pa.types.is_date(kind):
        return st.dates()
    return st.floats(width=32) if pa.types.is_floating(kind) else st.integers(-128, 127)


def is_same(given: Any, found: Any, kind: pa.DataType) -> bool:
    """Return whether what is read back is what was given, in the type's own terms."""
    if given is None or found is None:
        return given is found
    if pa.types.is_nested(kind):
        return all(is_same(*part) for part in parts(given, found, kind))
    if pa.types.is_floating(kind):
        return is_same_number(given, found, kind)
    return is_same_leaf(given, found, kind)


def parts(given: Any, found: Any, kind: pa.DataType) -> list[tuple[Any, Any, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [(given.get(field.name), found[field.name], field.type) for field in kind.fields]
    if pa.types.is_list(kind):
        return [(one, other, kind.value_type) for one, other in zip(given, found, strict=True)]
    sides = (kind.key_type, kind.item_type)
    pairs = zip(given, found, strict=True)
    return [part for one, other in pairs for part in zip(one, other, sides, strict=True)]


def is_same_leaf(given: Any, found: Any, kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind) and isinstance(given, dt.datetime):
        zoned = kind.tz is not None
        return (given.utcoffset() is not None) == zoned and (given.astimezone(dt.UTC) if zoned else given) == found
    if pa.types.is_temporal(kind) and isinstance(given, int) and not isinstance(given, bool):
        return pa.scalar(given, kind).as_py() == found
    is_boolean = isinstance(given, bool | np.bool_)
    return is_boolean == pa.types.is_boolean(kind) and type(given) is not dt.datetime and bool(given == found)


def is_same_number(given: Any, found: float, kind: pa.DataType) -> bool:
    if isinstance(given, bool | np.bool_):
        return False
    if isinstance(given, int):
        return given == found
    with np.errstate(over="ignore"):
        rounded = kind.to_pandas_dtype()(given).item()
    if math.isnan(rounded):
        return math.isnan(found) and math.isnan(given)
    same_sign = math.copysign(1, rounded) == math.copysign(1, found)
    return rounded == found and same_sign and math.isinf(found) == math.isinf(given)


@given(st.data())
def test_whatever_is_taken_reads_back_as_it_was_given(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    value = data.draw(values_of(kind))
    try:
        taken = check_of(kind).check({"x": value}).values
    except SchemaMismatchError:
        return

    array = pa.array(taken, kind)
    (found,) = readable(array, kind)

    assert is_same(value, found, kind), (kind, value, found)


def readable(array: pa.Array, kind: pa.DataType) -> list[Any]:
    try:
        return array.to_pylist()
    except (OverflowError, ValueError):
        # A number of days or microseconds beyond Python's years, which was given as a number.
        return array.cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).to_pylist()


# -- from the call to the table -----------------------------------------------------------------


def test_refused_moment_leaves_the_transaction_as_it_was(site: Site) -> None:
    schema = pa.schema([("d", pa.date32()), ("t", ZONED)])
    site.open().admin().create_topic("times", schema=schema)
    warehouse = site.open()
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        with pytest.raises(SchemaMismatchError):
            txn.send("times", row={"d": NAIVE})
        with pytest.raises(SchemaMismatchError):
            txn.send("times", row={"t": NAIVE})
        txn.send("times", row={"d": AWARE.date(), "t": AWARE})

    rows = warehouse.read_arrow("times", columns=["d", "t"]).read_all().to_pylist()
    assert rows == [{"d": AWARE.date(), "t": AWARE}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"D": None}, r"did you mean d\? \(names are matched by case\) .*columns=D known=d,user"),
        ({"dd": None, "zz": None}, r"did you mean d\?"),
        ({"nothing_like_it": None}, r"give some that it has .*columns=nothing_like_it known=d,user"),
        (
            {"user": {"Name": "ann"}},
            r"arrow would drop .user\.Name., .* did you mean name\? \(names are matched by case\)",
        ),
    ],
)
def test_unknown_column_is_answered_with_the_one_that_was_meant(row: dict[str, Any], said: str) -> None:
    schema = pa.schema([("d", pa.date32()), ("user", pa.struct([pa.field("name", pa.string())]))])

    with pytest.raises(SchemaMismatchError, match=said):
        RowCheck(TopicSettings("t", "a" * 32, 1, schema)).check(row)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (pd.DataFrame({"d": [1]}), r"pa\.Table\.from_pandas\(rows, preserve_index=False\)"),
        (pl.DataFrame({"d": [1]}), r"rows\.to_arrow\(\)"),
        ([{"d": 1}], "convert them found=list"),
    ],
)
def test_rows_that_are_no_table_are_refused_with_the_call_that_converts_them(site: Site, rows: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        site.open().producer().send("t", rows=rows)
