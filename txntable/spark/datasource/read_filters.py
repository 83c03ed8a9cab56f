"""The option ``filters`` of a read by ``format("txntable")``: filters in JSON, as values of the columns' types.

Owns how JSON, which has fewer types than columns, says a date, a time or a decimal: as text.  What cannot be one stays
text, and is refused as any value of another type.  Pure.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from txntable.format.column_path import field_at, path_of
from txntable.segments.filter_terms import record_filter
from txntable.segments.record_filter import RecordFilter
from txntable.spark.scan.source_options import Option, unreadable

_SAID_AS_TEXT = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
_EXAMPLE = '[["delay", ">", 15], ["day", "=", "2026-11-20"]], or a list of such lists, of which one passes'


def read_filters(text: str, schema: pa.Schema) -> RecordFilter:
    """Return filters as tests of records.

    Parameters
    ----------
    text : str
        JSON: a list of ``[column, operator, value]``, which all pass, or a list of such lists, of which one does.
    schema : pyarrow.Schema
        The topic's columns and the records' own.

    Raises
    ------
    InvalidRequestError
        It is no such JSON, or a value is none of the column's type.
    SchemaMismatchError
        There is no such column.
    """
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise unreadable(Option.FILTERS, text, _EXAMPLE) from error
    if not isinstance(found, list):
        raise unreadable(Option.FILTERS, text, _EXAMPLE)
    terms = [_term(each, schema) if _is_term(each) else _alternative(each, schema) for each in found]
    return record_filter(terms, schema)


def _alternative(said: Any, schema: pa.Schema) -> Any:
    return [_term(each, schema) for each in said] if isinstance(said, list) else said


def _is_term(said: Any) -> bool:
    return isinstance(said, list) and bool(said) and isinstance(said[0], str)


def _term(said: Any, schema: pa.Schema) -> Any:
    """Return a term as people write it in Python; what is none stays as it is, to be refused."""
    if not _is_term(said) or len(said) != 3 or (path := path_of(schema, said[0])) is None:
        return tuple(said) if isinstance(said, list) else said
    column, sign, value = said
    kind = field_at(schema, path).type
    return column, sign, [_value(each, kind) for each in value] if isinstance(value, list) else _value(value, kind)


def _value(said: Any, kind: pa.DataType) -> Any:
    if not isinstance(said, str) or not any(is_said_as_text(kind) for is_said_as_text in _SAID_AS_TEXT):
        return said
    try:
        return pa.scalar(said).cast(kind).as_py()
    except pa.ArrowException:
        return said
