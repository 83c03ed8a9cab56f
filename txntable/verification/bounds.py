"""Whether the statistics of a row are true of the records of its segment (PROTOCOL.md §5.2).

Owns the comparison of Delta's bounds with values, by type: what a filter would miss.  The bounds were made from a
footer; here they are held against the records themselves.  Pure.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txntable.verification.damage import DamageKind
from txntable.verification.log_replay import Problem

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  arithmetic on naive values, as the statistics are made
_DAY = _EPOCH.date()
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(slots=True)
class _Seen:
    """What the records of one leaf showed so far, in numbers and texts that compare as the values do."""

    low: Any = None
    high: Any = None
    nulls: int = 0
    with_nan: bool = False

    def take(self, column: pa.Array) -> None:
        self.nulls += column.null_count
        if pa.types.is_floating(column.type):
            is_nan = pc.is_nan(column)
            self.with_nan = self.with_nan or bool(pc.any(is_nan).as_py())
            column = column.filter(pc.invert(is_nan))
        found = pc.min_max(_comparable(column)).as_py()
        if found["min"] is not None:
            self.low = found["min"] if self.low is None else min(self.low, found["min"])
            self.high = found["max"] if self.high is None else max(self.high, found["max"])


def _comparable(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


@dataclass(slots=True)
class BoundsCheck:
    """The statistics of one row, and what its records show of them.

    Parameters
    ----------
    stats : str
        Delta's statistics, JSON.
    """

    stats: str
    _said: Mapping[str, Any] = field(init=False)
    _seen: dict[tuple[str, ...], _Seen] = field(init=False, default_factory=dict)
    _types: dict[tuple[str, ...], pa.DataType] = field(init=False, default_factory=dict)
    _records: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        # Floats as their text: a bound is compared by the type of its column.
        self._said = json.loads(self.stats, parse_float=str)
        if not isinstance(self._said, Mapping):
            raise ValueError("statistics are an object")

    def take(self, batch: pa.RecordBatch) -> None:
        """Look at some of the records: the columns of the file, under their names."""
        self._records += batch.num_rows
        for name in batch.schema.names:
            for path, column in _leaves((name,), batch.column(name)):
                self._types[path] = column.type
                self._seen.setdefault(path, _Seen()).take(column)

    def problems(self) -> Iterator[Problem]:
        """Yield what the statistics say, and the records do not."""
        if self._said.get("numRecords") != self._records:
            yield DamageKind.SEGMENT_ROW, f"statistics say {self._said.get('numRecords')} records, of {self._records}"
        for path, count in _values(self._said.get("nullCount") or {}):
            seen = self._seen.get(path)
            if seen is not None and seen.nulls != count:
                yield DamageKind.SEGMENT_ROW, f"{'.'.join(path)} has {seen.nulls} nulls, statistics say {count}"
        sides = (("minValues", "low"), ("maxValues", "high"))
        for side, attribute in sides:
            for path, said in _values(self._said.get(side) or {}):
                if (seen := self._seen.get(path)) is not None:
                    yield from self._bound(path, said, seen, attribute)
        others = self._said.get("txntable") or {}
        if isinstance(others, Mapping) and "_timestamp" in others and ("_timestamp",) in self._seen:
            yield from self._bound(("_timestamp",), others["_timestamp"], self._seen[("_timestamp",)], "high")

    def _bound(self, path: tuple[str, ...], said: Any, seen: _Seen, attribute: str) -> Iterator[Problem]:
        found = getattr(seen, attribute)
        bound = _bound_of(self._types[path])(said)
        if seen.with_nan:
            yield DamageKind.BOUND, f"{'.'.join(path)} has a NaN, and a bound: {said}"
        elif found is not None and (bound > found if attribute == "low" else bound < found):
            word = "lower" if attribute == "low" else "upper"
            yield DamageKind.BOUND, f"the {word} bound of {'.'.join(path)} leaves records out: {str(said)[:80]}"


def _leaves(path: tuple[str, ...], column: pa.Array) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    """Yield what has bounds or counts; of a list or a map there are none."""
    kind = column.type
    if pa.types.is_struct(kind):
        for index, part in enumerate(kind.fields):
            yield from _leaves((*path, part.name), pc.struct_field(column, [index]))
    elif pa.types.is_binary(kind):
        yield path, pc.binary_length(column)
    elif not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        yield path, column


def _values(said: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield from _values(value, (*path, name))
        else:
            yield (*path, name), value


def _bound_of(kind: pa.DataType) -> Callable[[Any], Any]:
    return next((read for is_of, read in _READINGS if is_of(kind)), lambda said: said)


def _microseconds(text: str) -> int:
    return (dt.datetime.fromisoformat(text).replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def _days(text: str) -> int:
    return (dt.date.fromisoformat(text) - _DAY).days


_READINGS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_floating, float),
    (pa.types.is_decimal, lambda said: Decimal(str(said))),
    (pa.types.is_timestamp, _microseconds),
    (pa.types.is_date, _days),
)
