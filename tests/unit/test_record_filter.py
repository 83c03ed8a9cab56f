"""Tests of records: what passes, and what bounds say may pass; beside a loop in Python that knows each value."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.segments.record_filter import ColumnBounds, ColumnTest, Operator, RecordFilter, literal

NAN = math.nan
ORDERED = [Operator.EQUAL, Operator.BELOW, Operator.AT_MOST, Operator.ABOVE, Operator.AT_LEAST]


def passes(value: Any, test: ColumnTest) -> bool:
    """Say what SQL says of one value."""
    if test.operator is Operator.NULL:
        return (value is None) is not test.negated
    if value is None:
        return False
    return compared(value, test) is not test.negated


def compared(value: Any, test: ColumnTest) -> bool:
    wanted = test.values.to_pylist()
    answers: dict[Operator, Callable[[], bool]] = {
        Operator.EQUAL: lambda: value in wanted,
        Operator.ONE_OF: lambda: value in wanted,
        Operator.BELOW: lambda: value < wanted[0],
        Operator.AT_MOST: lambda: value <= wanted[0],
        Operator.ABOVE: lambda: value > wanted[0],
        Operator.AT_LEAST: lambda: value >= wanted[0],
    }
    return bool(answers[test.operator]())


def column_test(operator: Operator, kind: pa.DataType, *values: Any, negated: bool = False) -> ColumnTest:
    return ColumnTest(("v",), operator, pa.array(values, kind), negated)


COLUMNS: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "long": (pa.int64(), [None, -1, 0, 5, 6, 2**62], 5),
    "double": (pa.float64(), [None, -1.5, -0.0, 0.0, 1.0, NAN, math.inf, -math.inf], 0.0),
    "float": (pa.float32(), [None, -1.5, 0.5, NAN], 0.5),
    "text": (pa.string(), [None, "", "a", "ab", "abc", "b", "\U0010ffff", "é"], "ab"),
    "bytes": (pa.binary(), [None, b"", b"a", b"a\x00", b"ab", b"\x7f", b"\x80", b"\xff\xff"], b"ab"),
    "boolean": (pa.bool_(), [None, True, False], True),
    "day": (pa.date32(), [None, dt.date(1, 1, 1), dt.date(2020, 1, 1), dt.date(9999, 12, 31)], dt.date(2020, 1, 1)),
    "decimal": (pa.decimal128(9, 2), [None, Decimal("-1.50"), Decimal("1.50"), Decimal("1.51")], Decimal("1.50")),
}


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("operator", [*ORDERED, Operator.ONE_OF, Operator.NULL])
@pytest.mark.parametrize("name", COLUMNS)
def test_records_pass_as_in_sql_for_every_type_and_operator(name: str, operator: Operator, negated: bool) -> None:
    kind, values, wanted = COLUMNS[name]
    test = column_test(operator, kind, *([] if operator is Operator.NULL else [wanted]), negated=negated)
    batch = pa.record_batch({"v": pa.array(values, kind)})

    found = batch.filter(RecordFilter(((test,),)).of_record()).column(0).to_pylist()

    assert list(map(str, found)) == [str(value) for value in values if passes(value, test)]


def test_nan_passes_no_comparison() -> None:
    batch = pa.record_batch({"v": pa.array([1.0, NAN])})
    test = column_test(Operator.ABOVE, pa.float64(), 5.0)

    assert batch.filter(RecordFilter(((test,),)).of_record()).num_rows == 0


def bounds_of(values: list[Any], kind: pa.DataType, *, in_log: bool) -> ColumnBounds:
    """Say of a set what the log says, in which there are no bounds beside a NaN, or what a footer says."""
    known = [value for value in values if value is not None]
    numbers = [value for value in known if not (isinstance(value, float) and math.isnan(value))]
    said = bool(numbers) and not (in_log and len(numbers) < len(known))
    return ColumnBounds(
        pa.array([min(numbers) if said else None], kind),
        pa.array([max(numbers) if said else None], kind),
        pa.array([len(known) < len(values)]),
        pa.array([bool(known)]),
    )


def sets_and_tests() -> st.SearchStrategy[tuple[pa.DataType, list[Any], ColumnTest]]:
    def of(name: str) -> st.SearchStrategy[tuple[pa.DataType, list[Any], ColumnTest]]:
        kind, values, _ = COLUMNS[name]
        wanted = [value for value in values if value is not None and str(value) != "nan"]
        test = st.builds(
            lambda operator, value, negated: column_test(operator, kind, value, negated=negated),
            st.sampled_from([*ORDERED, Operator.ONE_OF]),
            st.sampled_from(wanted),
            st.booleans(),
        )
        nulls = st.booleans().map(lambda negated: column_test(Operator.NULL, kind, negated=negated))
        return st.tuples(st.just(kind), st.lists(st.sampled_from(values), min_size=1, max_size=4), test | nulls)

    return st.sampled_from(sorted(COLUMNS)).flatmap(of)


@given(sets_and_tests(), st.booleans())
def test_bounds_never_leave_out_a_set_in_which_a_value_passes(
    drawn: tuple[pa.DataType, list[Any], ColumnTest], in_log: bool
) -> None:
    kind, values, test = drawn
    bounds = bounds_of(values, kind, in_log=in_log)

    (may,) = RecordFilter(((test,),)).of_bounds({("v",): bounds}, 1).to_pylist()

    assert may or not any(passes(value, test) for value in values)


@pytest.mark.parametrize(
    ("test", "may"),
    [
        (column_test(Operator.EQUAL, pa.int64(), 4), [False, True, True, False]),
        (column_test(Operator.ABOVE, pa.int64(), 9), [False, False, True, False]),
        (column_test(Operator.AT_LEAST, pa.int64(), 9), [False, True, True, False]),
        (column_test(Operator.BELOW, pa.int64(), 1), [False, False, True, False]),
        (column_test(Operator.AT_MOST, pa.int64(), 1), [True, False, True, False]),
        (column_test(Operator.ONE_OF, pa.int64(), 4, 0), [True, True, True, False]),
        (column_test(Operator.ONE_OF, pa.int64(), 40, 50), [False, False, True, False]),
        (column_test(Operator.NULL, pa.int64()), [False, True, True, True]),
        (column_test(Operator.NULL, pa.int64(), negated=True), [True, True, True, False]),
        (column_test(Operator.EQUAL, pa.int64(), 4, negated=True), [True, True, True, False]),
    ],
)
def test_bounds_leave_out_what_they_can(test: ColumnTest, may: list[bool]) -> None:
    bounds = ColumnBounds(
        pa.array([1, 3, None, None], pa.int64()),
        pa.array([2, 9, None, None], pa.int64()),
        pa.array([False, True, True, True]),
        pa.array([True, True, True, False]),
    )

    assert RecordFilter(((test,),)).of_bounds({("v",): bounds}, 4).to_pylist() == may


def test_alternatives_are_enough_each() -> None:
    low, high = (column_test(Operator.EQUAL, pa.int64(), value) for value in (1, 9))
    batch = pa.record_batch({"v": pa.array([1, 5, 9, None])})

    assert batch.filter(RecordFilter(((low,), (high,))).of_record()).column(0).to_pylist() == [1, 9]
    assert batch.filter(RecordFilter(((low, high),)).of_record()).num_rows == 0
    assert batch.filter(RecordFilter(()).of_record()).num_rows == 0


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, pa.int64()),
        (1, pa.bool_()),
        (2**40, pa.int32()),
        (1.5, pa.int64()),
        (NAN, pa.float64()),
        (0.1, pa.float32()),
        (2**53 + 1, pa.float64()),
        ("1", pa.int64()),
        ("\ud800", pa.string()),
        (Decimal("1.505"), pa.decimal128(9, 2)),
        (dt.datetime(2020, 1, 1), pa.date32()),  # noqa: DTZ001  it has no zone
        (dt.date(2020, 1, 1), pa.timestamp("us", "UTC")),
        (dt.datetime(2020, 1, 1), pa.timestamp("us", "UTC")),  # noqa: DTZ001
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pa.timestamp("us")),
        ("a", pa.binary()),
        (bytearray(b"a"), pa.binary()),
        (b"a", pa.string()),
        (None, pa.int64()),
    ],
)
def test_value_is_none_of_a_type_when_it_is_not_exactly_one(value: Any, kind: pa.DataType) -> None:
    assert literal(value, kind) is None
