"""Predicates that Spark pushes to a read, as tests of records and as offsets.

Owns which of Spark's predicates we answer ourselves, and that our answer is Spark's: nulls, NaN, -0.0, text by its
bytes.  What is not certainly the same is given back, and Spark tests it.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from txntable.segments.record_filter import ColumnTest, Operator, literal
from txntable.segments.segment_reader import OFFSET_COLUMN, PARTITION_COLUMN
from txntable.spark.scan.offset_bounds import OffsetBounds

_OPERATORS: Mapping[type[Filter], Operator] = {
    EqualTo: Operator.EQUAL,
    EqualNullSafe: Operator.EQUAL,
    LessThan: Operator.BELOW,
    LessThanOrEqual: Operator.AT_MOST,
    GreaterThan: Operator.ABOVE,
    GreaterThanOrEqual: Operator.AT_LEAST,
    In: Operator.ONE_OF,
    StringStartsWith: Operator.BEGINS,
    StringEndsWith: Operator.ENDS,
    StringContains: Operator.CONTAINS,
}
_OF_TEXT = (Operator.BEGINS, Operator.ENDS, Operator.CONTAINS)


def column_test(predicate: Filter, schema: pa.Schema) -> ColumnTest | None:
    """Return a predicate as a test; ``None``: Spark is to test it.

    Parameters
    ----------
    predicate : Filter
        As Spark pushes it.
    schema : pyarrow.Schema
        The columns that Spark reads; of a column inside of another, nothing is tested.
    """
    negated = isinstance(predicate, Not)
    inner: Any = predicate.child if isinstance(predicate, Not) else predicate
    match getattr(inner, "attribute", None):
        case (str(column),) if schema.get_field_index(column) >= 0:
            return _test(inner, column, schema.field(column).type, negated)
        case _:
            return None


def _test(predicate: Any, column: str, kind: pa.DataType, negated: bool) -> ColumnTest | None:
    match predicate:
        case IsNull() | EqualNullSafe(value=None):
            return ColumnTest(column, Operator.NULL, pa.nulls(0), negated)
        case IsNotNull():
            return ColumnTest(column, Operator.NULL, pa.nulls(0), not negated)
        case _:
            return _comparison(predicate, column, kind, negated)


def _comparison(predicate: Any, column: str, kind: pa.DataType, negated: bool) -> ColumnTest | None:
    operator = _OPERATORS.get(type(predicate))
    if (
        operator is None
        # Where it is negated nulls pass, too.
        or (negated and isinstance(predicate, EqualNullSafe))
        # Of many numbers Spark tells -0.0 from 0.0, of few it does not.
        or (operator is Operator.ONE_OF and pa.types.is_floating(kind))
        or (operator in _OF_TEXT and not pa.types.is_string(kind))
    ):
        return None
    found = [literal(value, kind) for value in (predicate.value if operator is Operator.ONE_OF else [predicate.value])]
    if any(value is None for value in found):
        return None
    return ColumnTest(column, operator, pa.array(found, kind), negated, nan_is_highest=True)


def narrowed(ranges: Mapping[int, OffsetBounds], test: ColumnTest) -> dict[int, OffsetBounds]:
    """Return the offsets that a test may leave, by partition; all of them when it says nothing of them."""
    values = test.values.to_pylist()
    if test.column not in (PARTITION_COLUMN, OFFSET_COLUMN) or test.negated or not values:
        return dict(ranges)
    lowest, highest = min(values), max(values)
    match test.operator:
        case Operator.EQUAL | Operator.ONE_OF:
            return _within(ranges, test.column, lowest, highest)
        case Operator.ABOVE:
            return _within(ranges, test.column, lowest + 1, None)
        case Operator.AT_LEAST:
            return _within(ranges, test.column, lowest, None)
        case Operator.BELOW:
            return _within(ranges, test.column, None, highest - 1)
        case _:
            return _within(ranges, test.column, None, highest)


def _within(
    ranges: Mapping[int, OffsetBounds], column: str, lowest: int | None, highest: int | None
) -> dict[int, OffsetBounds]:
    if column == PARTITION_COLUMN:
        return {
            partition: wanted
            for partition, wanted in ranges.items()
            if (lowest is None or partition >= lowest) and (highest is None or partition <= highest)
        }
    return {
        partition: OffsetBounds(
            wanted.start if lowest is None else max(wanted.start, lowest),
            wanted.end if highest is None else min(wanted.end, highest + 1),
        )
        for partition, wanted in ranges.items()
    }
