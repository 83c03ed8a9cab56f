"""Which records of a topic are wanted, by the values of their columns: tests that bounds can answer, too.

Owns the tests, what they say of a record, and what they say of many records of which only bounds are known.  The
rules: of a record the answer is exact, and one that is unknown (a null) is no; of bounds it is "none of them" only
where that is certain.  Pure; must not know of storage, nor of Spark, but for how NaN is ordered there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Operator(Enum):
    """How a column is compared with a test's values."""

    EQUAL = "=="
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    ONE_OF = "in"
    NULL = "is null"


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What is known of a column in each of several sets of records; the arrays have a row for each set.

    Attributes
    ----------
    low, high : pyarrow.Array
        No value is below, none above; null: nothing is known.
    may_be_null, may_have_values : pyarrow.BooleanArray
        Whether a null may be there, or anything else.
    """

    low: pa.Array
    high: pa.Array
    may_be_null: pa.BooleanArray
    may_have_values: pa.BooleanArray


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """One comparison of a column.

    Attributes
    ----------
    path : tuple of str
        The names on the way to it: one of the topic's or ``_partition``, ``_offset``, ``_timestamp``, ``_commit``, and
        those inside of structs.
    operator : Operator
        How it is compared.
    values : pyarrow.Array
        Of the column's type; one, any number for ``ONE_OF``, none for ``NULL``; never a null or NaN.
    negated : bool
        Whether the records of which it is false are wanted instead.
    """

    path: tuple[str, ...]
    operator: Operator
    values: pa.Array
    negated: bool = False

    def of_record(self) -> pc.Expression:
        """Return what is true of the records that are wanted."""
        field = pc.field(*self.path)
        if self.operator is Operator.NULL:
            return field.is_valid() if self.negated else field.is_null()
        found = self._compared(field)
        if self.negated:
            # Whether a null is one of some values, Arrow answers with no.
            return ~found & field.is_valid()
        return found

    def _compared(self, field: pc.Expression) -> pc.Expression:
        match self.operator:
            case Operator.ONE_OF if pa.types.is_floating(self.values.type):
                # Arrow's sets tell -0.0 from 0.0.
                return reduce(or_, (field == value for value in self.values), pc.scalar(False))
            case Operator.ONE_OF:
                return field.isin(self.values)
            case _:
                return self._ordered(field, pc.scalar(self.values[0]))

    def _ordered(self, field: pc.Expression, value: pc.Expression) -> pc.Expression:
        match self.operator:
            case Operator.EQUAL:
                return field == value
            case Operator.BELOW:
                return field < value
            case Operator.AT_MOST:
                return field <= value
            case Operator.ABOVE:
                return field > value
            case _:
                return field >= value

    def of_bounds(self, bounds: ColumnBounds) -> pa.BooleanArray:
        """Return for each set of records whether one may be wanted."""
        if self.operator is Operator.NULL:
            return bounds.may_have_values if self.negated else bounds.may_be_null
        # A negation leaves everything but some values: bounds hardly ever tell.
        return bounds.may_have_values if self.negated else pc.and_(bounds.may_have_values, self._overlaps(bounds))

    def _overlaps(self, bounds: ColumnBounds) -> pa.BooleanArray:
        reaches_high = pa.repeat(pa.scalar(True), len(bounds.low))
        reaches_low = reaches_high
        least, most = self._range()
        if most is not None:
            comparison = pc.less if self.operator is Operator.BELOW else pc.less_equal
            reaches_low = pc.fill_null(comparison(bounds.low, most), True)
        if least is not None:
            comparison = pc.greater if self.operator is Operator.ABOVE else pc.greater_equal
            reaches_high = pc.fill_null(comparison(bounds.high, least), True)
        return pc.and_(reaches_low, reaches_high)

    def _range(self) -> tuple[pa.Scalar | None, pa.Scalar | None]:
        """Return the lowest and the highest value that pass; below a text's prefix's successor, where it begins so."""
        match self.operator:
            case Operator.EQUAL:
                return self.values[0], self.values[0]
            case Operator.BELOW | Operator.AT_MOST:
                return None, self.values[0]
            case Operator.ABOVE | Operator.AT_LEAST:
                return self.values[0], None
            case Operator.ONE_OF if len(self.values):
                extremes = pc.min_max(self.values)
                return extremes["min"], extremes["max"]
            case _:
                return None, None


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Tests of which all of one alternative pass; without an alternative nothing does.

    Attributes
    ----------
    alternatives : tuple of tuple of ColumnTest
        One of them is enough.
    """

    alternatives: tuple[tuple[ColumnTest, ...], ...]

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """Return the ways to the columns that are compared."""
        return sorted({test.path for tests in self.alternatives for test in tests})

    @property
    def columns(self) -> list[str]:
        """Return the names of the outermost columns that are compared, or hold those."""
        return sorted({path[0] for path in self.paths})

    def of_record(self) -> pc.Expression:
        """Return what is true of the records that are wanted."""
        everything = pc.scalar(True)
        each = [reduce(and_, (test.of_record() for test in tests), everything) for tests in self.alternatives]
        return reduce(or_, each, ~everything)

    def of_bounds(self, bounds: Mapping[tuple[str, ...], ColumnBounds], sets: int) -> pa.BooleanArray:
        """Return for each set of records whether one may be wanted.

        Parameters
        ----------
        bounds : Mapping of paths to ColumnBounds
            By column; of one that is not there nothing is known.
        sets : int
            How many there are.
        """
        everything = pa.repeat(pa.scalar(True), sets)
        found = pa.repeat(pa.scalar(False), sets)
        for tests in self.alternatives:
            known = (test.of_bounds(bounds[test.path]) for test in tests if test.path in bounds)
            found = pc.or_(found, reduce(pc.and_, known, everything))
        return found


def literal(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value as one of a column's type; ``None``: it is not exactly one of these, or they have no order.

    Parameters
    ----------
    value : Any
        As Python has it.
    kind : pyarrow.DataType
        The column's.
    """
    if not _is_of(value, kind):
        return None
    try:
        found = pa.scalar(value, kind)
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError):
        return None
    # NaN is like nothing, and a narrower float may be another number.
    return found if not pa.types.is_floating(kind) or found.as_py() == value else None


def _is_of(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return isinstance(value, dt.datetime) and (value.tzinfo is None) == (kind.tz is None)
    return any(is_of(kind) and type(value) in types for is_of, types in _TYPES)


_TYPES: Sequence[tuple[Any, tuple[type, ...]]] = (
    (pa.types.is_boolean, (bool,)),
    (pa.types.is_integer, (int,)),
    (pa.types.is_floating, (float, int)),
    (pa.types.is_string, (str,)),
    (pa.types.is_binary, (bytes,)),
    (pa.types.is_date32, (dt.date,)),
    (pa.types.is_decimal128, (Decimal, int)),
)
