"""Which records are to be erased, and what may tell of them (PROTOCOL.md §5.10).

Owns the condition: values of columns, any of those of one column, all of the columns; a column may be inside of
structs.  A record without one of the columns, or with a null there, is never sought.  Invariant: where statistics leave
it open, a file may hold one.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txntable.cli.column_value import BytesForm, parse_json, value_reader
from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.column_path import array_at, field_at, names_in, path_of
from txntable.format.key import is_key_type
from txntable.format.near_names import column_hint
from txntable.format.topic import TopicSettings

_NOT_FITTING = (ValueError, TypeError, ArithmeticError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class SoughtRecords:
    """The records of which each named column has one of its values.

    Attributes
    ----------
    where : Mapping[str, tuple]
        By column (:mod:`~txntable.format.column_path`), as they were given: values of its type, or texts as on
        the command line.
    """

    where: Mapping[str, tuple[object, ...]]

    def check(self, settings: TopicSettings) -> None:
        """Refuse a topic that cannot be asked.

        Raises
        ------
        SchemaMismatchError
            It lacks a column, or a column has a type that no key may have.
        InvalidRequestError
            A value is none of its column's.
        """
        for name, values in self.where.items():
            path = path_of(settings.schema, name)
            if path is None:
                known = list(names_in(settings.schema))
                raise SchemaMismatchError(
                    "the topic has no such column; name some of those it has" + column_hint([name], known),
                    topic=settings.name,
                    column=name,
                    known=",".join(known),
                )
            field = field_at(settings.schema, path)
            if not is_key_type(field.type):
                raise SchemaMismatchError(
                    "records are erased by columns whose types a key may have; name another one, or only topics where"
                    " it has one",
                    topic=settings.name,
                    column=name,
                    found=str(field.type),
                )
            for value in values:
                if _typed(value, field) is None:
                    raise InvalidRequestError(
                        "this is no value of the column; give one of its type, or name only topics where it is one",
                        topic=settings.name,
                        column=name,
                        expected=str(field.type),
                    )

    def is_of(self, schema: pa.Schema) -> bool:
        """Return whether a schema has all of the columns."""
        return all(path_of(schema, name) is not None for name in self.where)

    def columns_of(self, schema: pa.Schema) -> frozenset[str]:
        """Return which columns of a schema are read to tell which records are sought."""
        paths = (path_of(schema, name) for name in self.where)
        return frozenset(path[0] for path in paths if path is not None)

    def chosen(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return for each record of a batch, of whatever schema, whether it is sought."""
        found = pa.array([True]).take(pa.nulls(batch.num_rows, pa.int8()).fill_null(0))
        for name, values in self.where.items():
            path = path_of(batch.schema, name)
            typed = [] if path is None else _all_typed(values, field_at(batch.schema, path))
            if path is None or not typed:
                return pc.and_(found, False)
            column = array_at(batch, path)
            found = pc.and_(found, pc.is_in(column, value_set=pa.array(typed, column.type)))
        return found

    def may_be_in(self, stats: str | None, schema: pa.Schema) -> bool:
        """Return whether a file may hold such records, by what a log says of it.

        Parameters
        ----------
        stats : str or None
            Delta's statistics.
        schema : pyarrow.Schema
            Of the topic.
        """
        low, high = _sides(stats)
        for name, values in self.where.items():
            path = path_of(schema, name)
            typed = [] if path is None else _all_typed(values, field_at(schema, path))
            if path is None or not typed:
                continue
            least, most = _bound(low, path), _bound(high, path)
            if all(_is_outside(value, least, most) for value in typed):
                return False
        return True

    @property
    def texts(self) -> frozenset[bytes]:
        """The values that are texts or bytes: what else may hold them is looked through for them."""
        given = (value for values in self.where.values() for value in values)
        return frozenset(_bytes_of(value) for value in given if isinstance(value, str | bytes))


def sought_records(where: Mapping[str, object]) -> SoughtRecords:
    """Return the condition that a caller gives.

    Parameters
    ----------
    where : Mapping[str, object]
        By column: a value, or a list of values.

    Raises
    ------
    InvalidRequestError
        There is no column, or no value; or a value is null.
    """
    if not isinstance(where, Mapping) or not where:
        raise InvalidRequestError("say which records: a mapping of columns to values", where=shown(where))
    found: dict[str, tuple[object, ...]] = {}
    for name, given in where.items():
        several = isinstance(given, Sequence | set | frozenset) and not isinstance(given, str | bytes)
        values = tuple(given) if several and isinstance(given, Iterable) else (given,)
        if not isinstance(name, str) or not values or None in values:
            raise InvalidRequestError("a column has one value or more, none of them null", column=shown(name))
        found[name] = values
    return SoughtRecords(found)


def _all_typed(values: Iterable[object], field: pa.Field) -> list[Any]:
    if not is_key_type(field.type):
        return []
    return [typed for value in values if (typed := _typed(value, field)) is not None]


def _typed(value: object, field: pa.Field) -> Any:
    """Return a value as the column has it; ``None``: it is none of the column's."""
    kind = field.type
    try:
        if isinstance(value, str) and pa.types.is_large_binary(kind):
            return value.encode()
        if isinstance(value, str) and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            spelt = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
            return value_reader(field, BytesForm.TEXT)(parse_json(value) if spelt else value)
        return pa.scalar(value, kind).as_py() if _is_of(value, kind) else None
    except _NOT_FITTING:
        return None


def _is_of(value: object, kind: pa.DataType) -> bool:
    """Return whether a value is one of a type as it is: Arrow cuts 1.5 to 1, and a time to its day."""
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    if isinstance(value, Integral):
        return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))
    if isinstance(value, datetime):
        return bool(pa.types.is_timestamp(kind)) and (value.tzinfo is None) == (kind.tz is None)
    if isinstance(value, date):
        return bool(pa.types.is_date(kind))
    if isinstance(value, Decimal):
        return bool(pa.types.is_decimal(kind))
    return isinstance(value, str | bytes)


def _sides(stats: str | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        said = json.loads(stats or "{}")
        low, high = said.get("minValues", {}), said.get("maxValues", {})
    except (ValueError, RecursionError, AttributeError):
        return {}, {}
    return (low if isinstance(low, dict) else {}), (high if isinstance(high, dict) else {})


def _bound(side: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        side = side.get(name) if isinstance(side, dict) else None
    return side


def _is_outside(value: Any, low: Any, high: Any) -> bool:
    # Of other types, and where a bound is missing, nothing is concluded.
    kind = type(value)
    if kind not in (str, int):
        return False
    return (type(low) is kind and value < low) or (type(high) is kind and value > high)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
