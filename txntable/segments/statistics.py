"""Delta's statistics of a segment, from its Parquet footer (PROTOCOL.md §5.2).

Owns what other people's queries prune by.  The rule: a bound that is missing costs time, a wrong
one costs rows.  So a lower bound may only be too low, an upper one only too high.  And there are readers
that take one missing bound among others for a null that nothing is equal to: a column that cannot
be said takes all bounds of its side with it.  Pure; must not know of storage.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LARGEST_LEAVES = 32
LARGEST_STRING = 32
# Characters of an upper bound that begins with so many of the last character that it cannot be cut before.
LARGEST_UNCUT_STRING = 256
# Parquet's writer leaves bounds of more than 4096 bytes out of a footer.
LARGEST_FOOTER_BYTES = 4096
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHARACTER = 0x10FFFF
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  arithmetic on naive values; the zone is written by hand
_EPOCH_DAY = _EPOCH.date()
_TIMESTAMP = "_timestamp"

# No escapes but those that JSON demands: there are readers that decode a pair of them to another character.
_quote = json.JSONEncoder(ensure_ascii=False).encode
# A value as JSON text, or None: cannot be said.
JsonText = str | None
Translation = Callable[[Any, pa.DataType, bool], JsonText]
# JSON texts by name, and what has names inside.
_Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without columns inside.

    Attributes
    ----------
    path : tuple of str
        The names from the outermost column to it.
    index : int
        Its number among the file's Parquet columns.
    place : int
        Its number as Delta counts: a list or a map is one column.
    kind : pyarrow.DataType
        Its type.
    repeated : bool
        Whether it is inside a list or a map: then it has no bounds.
    translate : callable or None
        (raw bound, type, whether it is the upper one) -> JSON text; ``None``: the type has no bounds.
    """

    path: tuple[str, ...]
    index: int
    place: int
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
    place = -1
    before: tuple[str, ...] = ()
    for column in schema:
        for path, owner, kind, repeated in _walk((column.name,), column.type, None):
            place += owner != before
            before = owner
            found.append(Leaf(path, len(found), place, kind, repeated, _translation(kind)))
    return found


def _walk(
    path: tuple[str, ...], kind: pa.DataType, owner: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], pa.DataType, bool]]:
    """Yield path, what Delta counts, type, and whether it is repeated; `owner` is the list or map that it is in."""
    if pa.types.is_struct(kind):
        for part in kind.fields:
            yield from _walk((*path, part.name), part.type, owner)
    elif pa.types.is_map(kind):
        yield from _walk((*path, "key_value", "key"), kind.key_type, owner or path)
        yield from _walk((*path, "key_value", "value"), kind.item_type, owner or path)
    elif pa.types.is_list(kind):
        yield from _walk((*path, "list", "element"), kind.value_type, owner or path)
    else:
        yield path, owner or path, kind, owner is not None


def _translation(kind: pa.DataType) -> Translation | None:
    return next((translate for is_of, translate in _TRANSLATIONS if is_of(kind)), None)


@dataclass(slots=True)
class Observed:
    """What a writer saw in its rows and no footer tells.

    Attributes
    ----------
    with_nan : set of tuple of str
        Paths of leaves with a NaN somewhere.
    long_texts : dict of tuple of str to tuple of bytes
        Lowest and highest value of a text leaf, over all row groups in which it has a value of more than
        :data:`LARGEST_FOOTER_BYTES` bytes.
    """

    with_nan: set[tuple[str, ...]] = field(default_factory=set)
    long_texts: dict[tuple[str, ...], tuple[bytes, bytes]] = field(default_factory=dict)

    def note_texts(self, path: tuple[str, ...], low: bytes, high: bytes) -> None:
        """Take the bounds of one more row group."""
        before = self.long_texts.get(path, (low, high))
        self.long_texts[path] = (min(low, before[0]), max(high, before[1]))


def delta_statistics(footer: pq.FileMetaData, columns: Sequence[Leaf], observed: Observed | None = None) -> str:
    """Return the statistics of a file as Delta's ``add.stats``.

    Parameters
    ----------
    footer : pyarrow.parquet.FileMetaData
        Of the file.
    columns : sequence of Leaf
        :func:`leaves` of the file's schema, which has canonical types.
    observed : Observed, optional
        What the footer does not tell; default: nothing of the kind was there.

    Returns
    -------
    str
        JSON with ``numRecords``, ``minValues``, ``maxValues`` and ``nullCount`` of the first 32 columns and
        of the format's own.  Where a column's bound of a side cannot be said, that side is left out; without
        ``maxValues``, ``txntable`` has the one of ``_timestamp``.
    """
    observed = observed or Observed()
    low, high, nulls = _Side(), _Side(), _Side()
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    for leaf in columns:
        if leaf.repeated or (leaf.place >= LARGEST_LEAVES and not leaf.path[0].startswith("_")):
            continue
        bounds = _bounds(groups, leaf, observed.long_texts.get(leaf.path))
        if bounds.nulls is not None:
            nulls.put(leaf, str(bounds.nulls))
        if leaf.translate is None:
            continue
        # Whether NaN is above every number, below, or neither, readers do not agree.
        known = leaf.path not in observed.with_nan
        empty = bounds.nulls is not None and bounds.nulls == footer.num_rows
        for side, raw, upper in ((low, bounds.low, False), (high, bounds.high, True)):
            said = leaf.translate(raw, leaf.kind, upper) if known and raw is not None else None
            side.put(leaf, said, needed=not empty)
    return _stats(footer.num_rows, low, high, nulls)


@dataclass(slots=True)
class _Side:
    """One of the objects in the statistics; not `complete`: a column that it should have cannot be said."""

    values: _Values = field(default_factory=dict)
    complete: bool = True

    def put(self, leaf: Leaf, text: JsonText, *, needed: bool = False) -> None:
        values = self.values
        # Also for a struct of which nothing can be said: for a reader it would be null itself.
        for name in leaf.path[:-1]:
            values = values.setdefault(name, {})
        if text is not None:
            values[leaf.path[-1]] = text
        elif needed and len(leaf.path) == 1:
            self.complete = False


def _stats(records: int, low: _Side, high: _Side, nulls: _Side) -> str:
    members: _Values = {"numRecords": str(records)}
    if low.complete and low.values:
        members["minValues"] = low.values
    if high.complete and high.values:
        members["maxValues"] = high.values
    elif _TIMESTAMP in high.values:
        members["txntable"] = {_TIMESTAMP: high.values[_TIMESTAMP]}
    members["nullCount"] = nulls.values
    return _object(members)


def _object(values: Mapping[str, Any]) -> str:
    members = (
        f"{_quote(name)}:{value if isinstance(value, str) else _object(value)}" for name, value in values.items()
    )
    return "{" + ",".join(members) + "}"


def _bounds(groups: Sequence[pq.RowGroupMetaData], leaf: Leaf, long_texts: tuple[bytes, bytes] | None) -> _Bounds:
    if len(groups) == 1 and long_texts is None:
        return _bounds_in(groups[0], leaf)
    lows: list[Any] = [] if long_texts is None else [long_texts[0]]
    highs: list[Any] = [] if long_texts is None else [long_texts[1]]
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
        elif counted != chunk.num_values and long_texts is None:
            complete = False  # values without bounds: all may be outside of the other groups'
    if not complete or not lows:
        return _Bounds(None, None, nulls)
    return _Bounds(min(lows), max(highs), nulls)


def _bounds_in(group: pq.RowGroupMetaData, leaf: Leaf) -> _Bounds:
    found = group.column(leaf.index).statistics
    if found is None:
        return _Bounds(None, None, None)
    nulls = found.null_count if found.has_null_count else None
    if not found.has_min_max:
        return _Bounds(None, None, nulls)
    return _Bounds(_ordered(found.min_raw, leaf.kind), _ordered(found.max_raw, leaf.kind), nulls)


def _ordered(raw: Any, kind: pa.DataType) -> Any:
    """Return a raw value that compares as the values do: a wide decimal is stored as signed bytes."""
    if isinstance(raw, bytes) and pa.types.is_decimal128(kind):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _integer_bound(raw: int, _kind: pa.DataType, _upper: bool) -> str:
    return str(int(raw))


def _boolean_bound(raw: bool, _kind: pa.DataType, _upper: bool) -> str:
    return "true" if raw else "false"


def _float_bound(raw: float, _kind: pa.DataType, upper: bool) -> JsonText:
    if raw == 0:
        # Both zeros are equal, and not every reader knows.
        return "0.0" if upper else "-0.0"
    return repr(raw) if math.isfinite(raw) else None


def _string_bound(raw: bytes, _kind: pa.DataType, upper: bool) -> JsonText:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if len(text) <= LARGEST_STRING:
        return _quote(text)
    if not upper:
        return _quote(text[:LARGEST_STRING])
    cut = cut_upwards(text[:LARGEST_STRING])
    if cut is None and len(text) <= LARGEST_UNCUT_STRING:
        cut = text
    elif cut is None:
        cut = cut_upwards(text[:LARGEST_UNCUT_STRING])
    return None if cut is None else _quote(cut)


def cut_upwards(prefix: str) -> str | None:
    """Return the shortest-changed text above everything that begins with `prefix`; ``None``: there is none."""
    for end in range(len(prefix), 0, -1):
        following = ord(prefix[end - 1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CHARACTER:
            return prefix[: end - 1] + chr(following)
    return None


def _date_bound(days: int, _kind: pa.DataType, _upper: bool) -> JsonText:
    try:
        return f'"{(_EPOCH_DAY + dt.timedelta(days=days)).isoformat()}"'
    except OverflowError:
        return None


def _timestamp_bound(microseconds: int, kind: pa.DataType, upper: bool) -> JsonText:
    # Delta's JSON has milliseconds: down for a lower bound, up for an upper one.
    milliseconds = -(-microseconds // 1000) if upper else microseconds // 1000
    zone = "" if kind.tz is None else "Z"
    try:
        return f'"{_in_milliseconds(milliseconds)}{zone}"'
    except OverflowError:
        pass
    try:
        # Above the last millisecond that four digits of a year can say; readers take microseconds.
        return f'"{(_EPOCH + dt.timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")}{zone}"'
    except OverflowError:
        return None


# The records of a transaction have a few times in common.
@lru_cache(maxsize=64)
def _in_milliseconds(milliseconds: int) -> str:
    return (_EPOCH + dt.timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")


def _decimal_bound(unscaled: int, kind: pa.DataType, _upper: bool) -> str:
    # All digits and no exponent: there are readers to whom a decimal with one is a null.
    digits = str(abs(unscaled)).zfill(kind.scale + 1)
    whole, fraction = (digits[: -kind.scale], digits[-kind.scale :]) if kind.scale else (digits, "")
    return f"{'-' if unscaled < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


# Bytes have no bounds in Delta.
_TRANSLATIONS: tuple[tuple[Callable[[pa.DataType], bool], Translation], ...] = (
    (pa.types.is_integer, _integer_bound),
    (pa.types.is_boolean, _boolean_bound),
    (pa.types.is_floating, _float_bound),
    (pa.types.is_string, _string_bound),
    (pa.types.is_date32, _date_bound),
    (pa.types.is_timestamp, _timestamp_bound),
    (pa.types.is_decimal128, _decimal_bound),
)
