"""Delta's statistics of a segment, from its Parquet footer.

Owns what other people's queries prune by.  The rule: a bound that is missing costs time, a wrong
one costs rows.  So a lower bound may only be too low, an upper one only too high, and whatever
can not be said exactly enough in Delta's JSON is left out.  Pure; must not know of storage.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LARGEST_LEAVES = 32
LARGEST_STRING = 32
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHARACTER = 0x10FFFF
# Digits that survive the way through a double: JSON readers differ in how they read a decimal.
_EXACT_DIGITS = 15
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  arithmetic on naive values; the zone is written by hand
_EPOCH_DAY = _EPOCH.date()

# A value as JSON has it, or None: can not be said.
JsonValue = int | float | str | None
Translation = Callable[[Any, pa.DataType, bool], JsonValue]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without columns inside.

    Attributes
    ----------
    path : tuple of str
        The names from the outermost column to it.
    index : int
        Its number among the file's Parquet columns.
    kind : pyarrow.DataType
        Its type.
    repeated : bool
        Whether it is inside a list or a map: then it has no bounds.
    translate : callable or None
        (raw bound, type, whether it is the upper one) -> as JSON has it; ``None``: the type has no bounds.
    """

    path: tuple[str, ...]
    index: int
    kind: pa.DataType
    repeated: bool
    translate: Translation | None


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the footer says about one leaf; raw Parquet values, ``None`` where it does not say."""

    low: Any
    high: Any
    nulls: int | None


def leaves(schema: pa.Schema) -> list[Leaf]:
    """Return the leaves of a schema in the order of Parquet's columns."""
    found: list[Leaf] = []
    for field in schema:
        for path, kind, repeated in _walk((field.name,), field.type, False):
            found.append(Leaf(path, len(found), kind, repeated, _translation(kind)))
    return found


def _walk(
    path: tuple[str, ...], kind: pa.DataType, repeated: bool
) -> Iterator[tuple[tuple[str, ...], pa.DataType, bool]]:
    if pa.types.is_struct(kind):
        for field in kind.fields:
            yield from _walk((*path, field.name), field.type, repeated)
    elif pa.types.is_map(kind):
        yield from _walk((*path, "key_value", "key"), kind.key_type, True)
        yield from _walk((*path, "key_value", "value"), kind.item_type, True)
    elif pa.types.is_list(kind):
        yield from _walk((*path, "list", "element"), kind.value_type, True)
    else:
        yield path, kind, repeated


def _translation(kind: pa.DataType) -> Translation | None:
    return next((translate for is_of, translate in _TRANSLATIONS if is_of(kind)), None)


def delta_statistics(
    footer: pq.FileMetaData, columns: Sequence[Leaf], with_nan: Collection[tuple[str, ...]] = ()
) -> str:
    """Return the statistics of a file as Delta's ``add.stats``.

    Parameters
    ----------
    footer : pyarrow.parquet.FileMetaData
        Of the file.
    columns : sequence of Leaf
        :func:`leaves` of the file's schema, which has canonical types.
    with_nan : collection of tuple of str
        Paths of leaves with a NaN somewhere: footers do not tell, and for Spark NaN is above
        every number.

    Returns
    -------
    str
        JSON with ``numRecords``, and ``minValues``, ``maxValues``, ``nullCount`` of the first 32
        leaves and of the format's own columns.
    """
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    for leaf in columns:
        if leaf.repeated or (leaf.index >= LARGEST_LEAVES and not leaf.path[0].startswith("_")):
            continue
        bounds = _bounds(groups, leaf)
        if bounds.nulls is not None:
            _put(nulls, leaf.path, bounds.nulls)
        if leaf.translate is None or leaf.path in with_nan or bounds.low is None or bounds.high is None:
            continue
        _put(lows, leaf.path, leaf.translate(bounds.low, leaf.kind, False))
        _put(highs, leaf.path, leaf.translate(bounds.high, leaf.kind, True))
    stats = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    return json.dumps(stats, separators=(",", ":"), allow_nan=False)


def _put(values: dict[str, Any], path: tuple[str, ...], value: JsonValue) -> None:
    if value is None:
        return
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _bounds(groups: Sequence[pq.RowGroupMetaData], leaf: Leaf) -> _Bounds:
    lows: list[Any] = []
    highs: list[Any] = []
    nulls: int | None = 0
    complete = True
    for group in groups:
        chunk = group.column(leaf.index)
        found = chunk.statistics
        counted = found.null_count if found is not None and found.has_null_count else None
        nulls = None if nulls is None or counted is None else nulls + counted
        if found is not None and found.has_min_max:
            lows.append(_ordered(found.min_raw, leaf.kind))
            highs.append(_ordered(found.max_raw, leaf.kind))
        elif counted != chunk.num_values:
            complete = False  # values without bounds: all may be outside of the other groups'
    if not complete or not lows:
        return _Bounds(None, None, nulls)
    return _Bounds(min(lows), max(highs), nulls)


def _ordered(raw: Any, kind: pa.DataType) -> Any:
    """Return a raw value that compares as the values do: a wide decimal is stored as signed bytes."""
    if pa.types.is_decimal128(kind) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _integer_bound(raw: int, _kind: pa.DataType, _upper: bool) -> int:
    return int(raw)


def _float_bound(raw: float, _kind: pa.DataType, _upper: bool) -> float | None:
    # 0.0 also for -0.0: they are equal, and not every reader knows.
    return raw + 0.0 if math.isfinite(raw) else None


def _string_bound(raw: bytes, _kind: pa.DataType, upper: bool) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if len(text) <= LARGEST_STRING:
        return text
    return cut_upwards(text[:LARGEST_STRING]) if upper else text[:LARGEST_STRING]


def cut_upwards(prefix: str) -> str | None:
    """Return the shortest-changed text above everything that begins with `prefix`; ``None``: there is none."""
    for end in range(len(prefix), 0, -1):
        following = ord(prefix[end - 1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CHARACTER:
            return prefix[: end - 1] + chr(following)
    return None


def _date_bound(days: int, _kind: pa.DataType, _upper: bool) -> str | None:
    try:
        return (_EPOCH_DAY + dt.timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _timestamp_bound(microseconds: int, kind: pa.DataType, upper: bool) -> str | None:
    # Delta's JSON has milliseconds: down for a lower bound, up for an upper one.
    milliseconds = -(-microseconds // 1000) if upper else microseconds // 1000
    try:
        moment = _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return f"{moment.isoformat(timespec='milliseconds')}{'' if kind.tz is None else 'Z'}"


def _decimal_bound(unscaled: int, kind: pa.DataType, _upper: bool) -> int | float | None:
    if len(str(abs(unscaled))) > _EXACT_DIGITS:
        return None
    return float(Decimal(unscaled).scaleb(-kind.scale)) if kind.scale else unscaled


# Booleans and bytes have no bounds in Delta.
_TRANSLATIONS: tuple[tuple[Callable[[pa.DataType], bool], Translation], ...] = (
    (pa.types.is_integer, _integer_bound),
    (pa.types.is_floating, _float_bound),
    (pa.types.is_string, _string_bound),
    (pa.types.is_date32, _date_bound),
    (pa.types.is_timestamp, _timestamp_bound),
    (pa.types.is_decimal128, _decimal_bound),
)
