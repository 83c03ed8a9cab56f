"""The partition values of many rows at once, as columns (PROTOCOL.md §5.2).

Owns the way around a look-up row by row: a map column is keys and items side by side, so one comparison
of all keys finds a column of all rows.  Pure.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.coordinator.row_json import LARGEST_NUMBER
from txntable.errors import DamagedDataError

_WHOLE = "^[0-9]{1,19}$"
_whole = re.compile(r"[0-9]{1,19}").fullmatch


def whole_number(text: str | None) -> int:
    """Return the number that a partition value says.

    Raises
    ------
    ValueError
        It is null, negative or no number: Python's ``int()`` reads more than other readers do.
    """
    if text is None or _whole(text) is None or (number := int(text)) > LARGEST_NUMBER:
        raise ValueError("no whole number of 64 bits")
    return number


def whole_numbers(values: pa.StringArray, paths: pa.ChunkedArray, name: str) -> pa.Int64Array:
    """Return the numbers that a partition column says, null where it is null.

    Parameters
    ----------
    values : pyarrow.StringArray
        As :func:`partition_column` returns them.
    paths : pyarrow.ChunkedArray
        Of the rows, for the message.
    name : str
        Of the column, for the message.

    Raises
    ------
    DamagedDataError
        One is no number as :func:`whole_number` reads it; the message names its row.
    """
    odd = pc.fill_null(pc.invert(pc.match_substring_regex(values, _WHOLE)), False)
    if pc.any(odd).as_py():
        path = paths.filter(odd)[0].as_py()
        raise DamagedDataError("a row of a topic has a column that is no number", column=name, path=path)
    return pc.cast(values, pa.int64())


def check_columns(values: Mapping[str, object], names: frozenset[str], path: str) -> None:
    """Refuse a row with a partition column too many, or without one: that it is null is said.

    Parameters
    ----------
    values : Mapping
        The row's partition values.
    names : frozenset of str
        The table's partition columns.
    path : str
        Of the row, for the message.

    Raises
    ------
    DamagedDataError
        The message names the columns.
    """
    if values.keys() != names:
        raise DamagedDataError(
            "a row has other partition columns than its table; restore the log from a backup",
            path=path,
            columns=reprlib.repr(sorted(values.keys() ^ names)),
        )


def check_all_columns(rows: pa.Table, names: frozenset[str]) -> None:
    """Refuse live files of which one is none by :func:`check_columns`; none has a column twice."""
    if not rows.num_rows:
        return
    maps = rows["partitionValues"].combine_chunks()
    bounds = np.asarray(maps.offsets.to_numpy())
    keys = maps.keys.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))
    known = pc.is_in(keys, value_set=pa.array(sorted(names))).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(np.diff(bounds) != len(names))
    if not np.all(known):
        odd = np.append(odd, np.searchsorted(bounds - bounds[0], np.flatnonzero(~known), side="right") - 1)
    if len(odd):
        row = int(odd.min())
        check_columns(dict(rows["partitionValues"][row].as_py()), names, rows["path"][row].as_py())


def partition_column(rows: pa.Table, name: str) -> pa.StringArray:
    """Return a partition column of a table's live files.

    Parameters
    ----------
    rows : pyarrow.Table
        Columns of :data:`txntable.log.table_state.ADD_SCHEMA`.
    name : str
        Of the partition column.

    Returns
    -------
    pyarrow.StringArray
        A value for each row; null where it is null, or not there at all.
    """
    if not rows.num_rows:
        return pa.array([], pa.string())
    maps = rows["partitionValues"].combine_chunks()
    # The keys and items of a map array are those of the whole that it may be a slice of.
    bounds = np.asarray(maps.offsets.to_numpy())
    first, end = int(bounds[0]), int(bounds[-1])
    keys, items = maps.keys.slice(first, end - first), maps.items.slice(first, end - first)
    places = np.flatnonzero(pc.equal(keys, name).to_numpy(zero_copy_only=False))
    owners = np.searchsorted(bounds, places + first, side="right") - 1
    if len(owners) == rows.num_rows and bool(np.all(np.diff(owners) == 1)):
        return items.take(pa.array(places))
    place_of = np.full(rows.num_rows, -1, dtype=np.int64)
    place_of[owners[::-1]] = places[::-1]
    return items.take(pa.array(place_of, mask=place_of < 0))
