"""Predicates that Spark pushes to a read, as tests of records and as offsets.

Owns which of Spark's predicates we answer ourselves, and that our answer is Spark's: nulls, NaN, -0.0, text by its
bytes.  What is not certainly the same is given back, and Spark tests it.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from txntable.segments.record_filter import Operator, ColumnTest, literal
from txntable.segments.segment_reader import OFFSET_COLUMN, PARTITION_COLUMN
from txntable.spark.scan.offset_bounds import OffsetBounds

_COMPARISONS: Mapping[type[Filter], Operator] = {
    EqualTo: Operator.EQUAL,
    LessThan: Operator.BELOW,
    LessThanOrEqual: Operator.AT_MOST,
    GreaterThan: Operator.ABOVE,
    GreaterThanOrEqual: Operator.AT_LEAST,
}
_OF_TEXT: Mapping[type[Filter], Operator] = {
    StringStartsWith: Operator.BEGINS,
    StringEndsWith: Operator.ENDS,
    StringContains: Operator.CONTAINS,
}


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
        case IsNull():
            return ColumnTest(column, Operator.NULL, pa.nulls(0), negated)
        case IsNotNull():
            return ColumnTest(column, Operator.NULL, pa.nulls(0), not negated)
        case EqualNullSafe(value=None):
            return ColumnTest(column, Operator.NULL, pa.nulls(0), negated)
        # Where it is negated nulls pass, too.
        case EqualNullSafe(value=value) if not negated:
            return _comparison(column, Operator.EQUAL, [value], kind, negated)
        # Of many numbers Spark tells -0.0 from 0.0, of few it does not.
        case In(value=values) if not pa.types.is_floating(kind):
            return _comparison(column, Operator.ONE_OF, values, kind, negated)
        case StringStartsWith() | StringEndsWith() | StringContains() if pa.types.is_string(kind):
            return _comparison(column, _OF_TEXT[type(predicate)], [predicate.value], kind, negated)
        case _ if type(predicate) in _COMPARISONS:
            return _comparison(column, _COMPARISONS[type(predicate)], [predicate.value], kind, negated)
        case _:
            return None


def _comparison(
    column: str, operator: Operator, values: Sequence[Any], kind: pa.DataType, negated: bool
) -> ColumnTest | None:
    found = [literal(value, kind) for value in values]
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
