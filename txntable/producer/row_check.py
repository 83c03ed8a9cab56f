"""Checking single records when they are sent, so that nothing is refused later, when their caller is gone.

Owns the quick way: values of the exact Python type that their column always takes are looked at in
Python; everything else (decimals, maps, numbers of another library) is brought to the column's type
by Arrow at once, and refused where that would change it (:mod:`txntable.producer.altered_value`).  Both refuse
what :func:`txntable.format.conform.conform` refuses, and both copy what its owner could change after the send.  Pure.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.conform import conform
from txntable.format.delta_types import nullable_type
from txntable.format.near_names import column_hint
from txntable.format.topic import TopicSettings
from txntable.format.topic_policy import required_key_column
from txntable.producer.altered_value import alteration
from txntable.producer.record_size import fixed_size, value_sizes

# A value as it is kept, and its bytes; None: Arrow has to look at it.
_Taken = tuple[Any, int] | None
_Quick = Callable[[Any], _Taken]
_ARROW_REFUSES = (pa.ArrowException, OverflowError, ValueError, TypeError)


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A record that will be taken: its values in the order of the topic's columns, and its bytes."""

    values: tuple[Any, ...]
    size: int


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: pa.DataType
    nullable: bool
    quick: _Quick
    # The topic as if it had this column only.
    settings: TopicSettings


class RowCheck:
    """The check of one topic's records.

    Parameters
    ----------
    settings : TopicSettings
        The topic.
    """

    def __init__(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._names = frozenset(settings.schema.names)
        key = required_key_column(settings)
        self._columns = [
            _Column(
                field.name,
                nullable_type(field.type),
                field.nullable and field.name != key,
                _quick_check(field.type),
                replace(settings, schema=pa.schema([field]), key=(field.name,) if field.name == key else ()),
            )
            for field in settings.schema
        ]

    def check(self, row: Mapping[str, Any]) -> CheckedRow:
        """Return a record as it will be written.

        Parameters
        ----------
        row : Mapping
            Values by column; a nullable column may be left out.

        Raises
        ------
        SchemaMismatchError
            A column is unknown or missing, or a value is of another type.
        MissingKeyError
            The topic is compacted and the record has no key.
        InvalidRequestError
            The row is no mapping.
        """
        if not isinstance(row, Mapping):
            raise InvalidRequestError("a row must be a mapping of column names to values", found=type(row).__name__)
        if not row.keys() <= self._names:
            raise self._unknown_columns(row)
        values, size = [], 0
        for column in self._columns:
            value = row.get(column.name)
            if value is not None:
                value, bytes_of = column.quick(value) or _by_arrow(column, value)
                size += bytes_of
            elif not column.nullable:
                _by_arrow(column, None)
            values.append(value)
        return CheckedRow(tuple(values), size)

    def _unknown_columns(self, row: Mapping[str, Any]) -> SchemaMismatchError:
        unknown, known = sorted(map(str, set(row) - self._names)), self._settings.schema.names
        return SchemaMismatchError(
            "the record has columns that the topic does not have; give some that it has" + column_hint(unknown, known),
            topic=self._settings.name,
            columns=",".join(unknown),
            known=",".join(known),
        )


def _by_arrow(column: _Column, value: object) -> tuple[Any, int]:
    """Return a value as Arrow reads it, and its bytes; refuse what it does not read."""
    try:
        array = pa.array([value], column.type)
    except _ARROW_REFUSES as error:
        raise _misfit(column, str(error).lower()) from error
    altered = alteration(value, column.type, column.name)
    if altered is not None:
        path, reason = altered
        raise _misfit(column, reason, path)
    conform(pa.RecordBatch.from_arrays([array], names=[column.name]), column.settings)
    taken = value
    # A moment that Python has no type for was given as a number, which nobody changes.
    with contextlib.suppress(ValueError, OverflowError):
        taken = array[0].as_py()
    return taken, int(value_sizes([array], 1)[0])


def _misfit(column: _Column, reason: str, path: str | None = None) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"a value does not fit its column: {reason}",
        topic=column.settings.name,
        column=path or column.name,
        expected=str(column.type),
    )


def _quick_check(kind: pa.DataType) -> _Quick:
    return next((check(kind) for is_of, check in _CHECKS if is_of(kind)), lambda value: None)


def _exactly(python: type) -> Callable[[pa.DataType], _Quick]:
    def check(kind: pa.DataType) -> _Quick:
        width = fixed_size(kind) or 0
        return lambda value: (value, width) if type(value) is python else None

    return check


def _integer_check(kind: pa.DataType) -> _Quick:
    width, bound = kind.bit_width // 8, 1 << (kind.bit_width - 1)
    return lambda value: (value, width) if type(value) is int and -bound <= value < bound else None


def _moment_check(kind: pa.DataType) -> _Quick:
    width, zone = kind.bit_width // 8, None if kind.tz is None else dt.UTC
    return lambda value: (value, width) if type(value) is dt.datetime and value.tzinfo is zone else None


def _float_check(kind: pa.DataType) -> _Quick:
    width, largest = kind.bit_width // 8, np.finfo(kind.to_pandas_dtype()).max.item()

    def take(value: object) -> _Taken:
        is_kept = type(value) is float and (-largest <= value <= largest or not math.isfinite(value))
        return (value, width) if is_kept else None

    return take


def _take_bytes(value: object) -> _Taken:
    return (value, len(value)) if type(value) is bytes else None


def _take_text(value: object) -> _Taken:
    if type(value) is not str:
        return None
    if value.isascii():
        return value, len(value)
    try:
        return value, len(value.encode())
    except UnicodeEncodeError:
        return None


def _part_check(field: pa.Field) -> _Quick:
    """Return the check of a part of a value, which may be null."""
    quick = _quick_check(field.type)
    null: _Taken = (None, 0) if field.nullable else None
    return lambda value: null if value is None else quick(value)


def _list_check(kind: pa.DataType) -> _Quick:
    quick = _part_check(kind.value_field)

    def take(value: object) -> _Taken:
        if type(value) is not list:
            return None
        parts, size = [], 0
        for part in value:
            taken = quick(part)
            if taken is None:
                return None
            parts.append(taken[0])
            size += taken[1]
        return parts, size

    return take


def _struct_check(kind: pa.DataType) -> _Quick:
    checks = {field.name: _part_check(field) for field in kind.fields}

    def take(value: object) -> _Taken:
        if type(value) is not dict or not value.keys() <= checks.keys():
            return None
        parts, size = {}, 0
        for name, quick in checks.items():
            taken = quick(value.get(name))
            if taken is None:
                return None
            parts[name] = taken[0]
            size += taken[1]
        return parts, size

    return take


_CHECKS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], _Quick]], ...] = (
    (pa.types.is_string, lambda kind: _take_text),
    (pa.types.is_binary, lambda kind: _take_bytes),
    (pa.types.is_integer, _integer_check),
    (pa.types.is_boolean, _exactly(bool)),
    (pa.types.is_floating, _float_check),
    (pa.types.is_date32, _exactly(dt.date)),
    (pa.types.is_timestamp, _moment_check),
    (pa.types.is_list, _list_check),
    (pa.types.is_struct, _struct_check),
)
