"""Filters as pyarrow and deltalake write them, ``[("delay", ">", 15), ("carrier", "in", ["UA"])]``, as tests.

Owns that a filter which cannot be read, or compares a column with what it cannot hold, is refused: never a filter
that is passed over.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.column_path import field_at, names_in, path_of
from txntable.format.near_names import column_hint
from txntable.segments.record_filter import ColumnTest, Operator, RecordFilter, literal

Term = tuple[str, str, Any]
Filters = Sequence[Term] | Sequence[Sequence[Term]]
"""Terms that all pass, or alternatives of such."""

_OPERATORS: Mapping[str, tuple[Operator, bool]] = {
    "=": (Operator.EQUAL, False),
    "==": (Operator.EQUAL, False),
    "!=": (Operator.EQUAL, True),
    "<": (Operator.BELOW, False),
    "<=": (Operator.AT_MOST, False),
    ">": (Operator.ABOVE, False),
    ">=": (Operator.AT_LEAST, False),
    "in": (Operator.ONE_OF, False),
    "not in": (Operator.ONE_OF, True),
    "is": (Operator.NULL, False),
    "is not": (Operator.NULL, True),
}

_INEXACT = "a column is compared with a value that is not exactly one of its type; write "
_AS_PYTHON = _INEXACT + "it as Python has that type"
_AS_TIME = _INEXACT + "a datetime with its time zone, which in JSON is text with its offset: 2026-11-01T00:00:00Z"
_AS_BYTES = _INEXACT + "bytes: b'...'; a filter in JSON has none, and leaves this term to the query"
_AS_DECIMAL = _INEXACT + 'a Decimal, which in JSON is text: "0.5"'
_NESTED = (
    "nothing is compared with a list, a map or a struct; name what is inside of a struct as outer.inner, and choose"
    " by lists and maps among what was read"
)
_NULL = 'no value is compared with null; ask ("column", "is", None) or ("column", "is not", None)'
_NAN = "nothing equals NaN, or is above or below it; read the column, and choose among what was read"


def record_filter(filters: Filters, schema: pa.Schema) -> RecordFilter:
    """Return filters as tests.

    Parameters
    ----------
    filters : Filters
        As users write them; one term, or alternative, at least.
    schema : pyarrow.Schema
        The topic's columns and the records' own.

    Raises
    ------
    InvalidRequestError
        A term is none, or its value is none of the column's type: the message names it.
    SchemaMismatchError
        There is no such column.
    """
    if isinstance(filters, str) or not isinstance(filters, Sequence) or not filters:
        raise _unreadable(filters)
    alternatives = [filters] if all(isinstance(term, tuple) for term in filters) else list(filters)
    if not all(isinstance(each, list | tuple) and each for each in alternatives):
        raise _unreadable(filters)
    return RecordFilter(tuple(tuple(_test(term, schema) for term in each) for each in alternatives))


def _test(term: Any, schema: pa.Schema) -> ColumnTest:
    if not isinstance(term, tuple) or len(term) != 3 or not isinstance(term[1], str) or term[1] not in _OPERATORS:
        raise _unreadable(term)
    column, sign, value = term
    path = path_of(schema, column) if isinstance(column, str) else None
    if path is None:
        raise SchemaMismatchError(
            "the topic has no such column; filter by some that it has" + column_hint([column], list(names_in(schema))),
            column=shown(column),
            known=",".join(schema.names),
        )
    operator, negated = _OPERATORS[sign]
    kind = field_at(schema, path).type
    if operator is Operator.NULL:
        if value is not None:
            raise _unreadable(term)
        return ColumnTest(path, operator, pa.array([], kind), negated)
    if value is None:
        raise InvalidRequestError(_NULL, column=column, operator=sign)
    several = operator is Operator.ONE_OF
    if several and (isinstance(value, str | bytes) or not isinstance(value, list | tuple | set | frozenset)):
        raise _unreadable(term)
    found = [literal(each, kind) for each in (value if several else [value])]
    if several and any(each is None for each in value):
        raise InvalidRequestError(_NULL, column=column, operator=sign)
    if any(each is None for each in found):
        is_nan = any(isinstance(each, float) and isnan(each) for each in (value if several else [value]))
        raise InvalidRequestError(
            _NAN if is_nan else _wanted(kind),
            column=column,
            type=str(kind),
            value=shown(value),
        )
    return ColumnTest(path, operator, pa.array(found, kind), negated)


def _wanted(kind: pa.DataType) -> str:
    if pa.types.is_nested(kind):
        return _NESTED
    if pa.types.is_decimal(kind):
        return _AS_DECIMAL
    if pa.types.is_binary(kind):
        return _AS_BYTES
    return _AS_TIME if pa.types.is_timestamp(kind) and kind.tz is not None else _AS_PYTHON


def _unreadable(found: Any) -> InvalidRequestError:
    return InvalidRequestError(
        "a filter is a list of (column, operator, value), which all pass, or a list of such lists, of which one does;"
        " the operators is and is not take None",
        operators=", ".join(_OPERATORS),
        found=shown(found),
    )
