"""Which fields Delta's actions have here, of which types, and which paths they may name (PROTOCOL.md §4.1).

Owns the refusal of what a foreign hand put into a log: a field that this format does not have, another type, a number
that is none, and above all a path that leads out of its table.  Pure: must not know what an action means.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.coordinator.row_json import LARGEST_NUMBER, Fields
from txntable.errors import DamagedDataError
from txntable.log.distinct_paths import are_distinct

TEXT = (str, NoneType)
_TEXTS = frozenset(TEXT)
ADD: Fields = {"path": str, "partitionValues": dict, "size": int, "modificationTime": int, "dataChange": bool}
ADD_MORE: Fields = {"stats": TEXT, "tags": (dict, NoneType)}
REMOVE: Fields = {"path": str, "deletionTimestamp": int, "dataChange": bool}
REMOVE_MORE: Fields = {
    "extendedFileMetadata": (bool, NoneType),
    "partitionValues": (dict, NoneType),
    "size": (int, NoneType),
}
TXN: Fields = {"appId": str, "version": int}
TXN_MORE: Fields = {"lastUpdated": (int, NoneType)}
METADATA: Fields = {"id": str, "schemaString": str, "partitionColumns": list, "configuration": dict, "createdTime": int}
METADATA_MORE: Fields = {"name": TEXT, "description": TEXT, "format": (dict, NoneType)}
PROTOCOL: Fields = {"minReaderVersion": int, "minWriterVersion": int}
PROTOCOL_MORE: Fields = {"readerFeatures": (list, NoneType), "writerFeatures": (list, NoneType)}
COMMIT_INFO: Fields = {
    "commitId": str,
    "log": str,
    "previous": TEXT,
    "chain": TEXT,
    "inCommitTimestamp": int,
    "operation": str,
}
COMMIT_INFO_MORE: Fields = {
    "timestamp": int,
    "operationParameters": dict,
    "operationMetrics": dict,
    "engineInfo": str,
    "txnId": str,
    "repairs": int,
}

LARGEST_PATH = 512
"""Characters of a file's path in a log: with the warehouse's prefix it is a key that every store takes."""
LAST_MOMENT_MS = 253_402_300_799_999
"""The end of the year 9999: Delta's readers show times as dates."""
_LONGEST_NAME = 255
_PATH = rf"[A-Za-z0-9._-]{{1,{_LONGEST_NAME}}}(?:/[A-Za-z0-9._-]{{1,{_LONGEST_NAME}}})*"
# Names of any length: Arrow compiles a pattern at each call, and takes a millisecond for one that counts so far.
_NAMES = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*"
_UPWARDS = r"(?:^|/)\.{1,2}(?:/|$)"
_whole_path = re.compile(_PATH).fullmatch
_is_id = re.compile(r"[0-9a-f]{32}").fullmatch
_goes_upwards = re.compile(_UPWARDS).search


def check_file_path(path: str) -> str:
    """Return a file's path as a log names it, relative to the table's root.

    Raises
    ------
    DamagedDataError
        It is absolute, a URL, goes upwards, or has characters that this format never writes: none of ours.
    """
    if len(path) > LARGEST_PATH or _whole_path(path) is None or _goes_upwards(path):
        raise DamagedDataError(
            "a log names a file that cannot be one of its table's; restore the log from a backup",
            file=reprlib.repr(path),
        )
    return path


def check_file_paths(paths: pa.ChunkedArray) -> None:
    """Refuse a column of paths that :func:`check_file_path` would not take, or with one of them twice or missing.

    Raises
    ------
    DamagedDataError
        The message names the first.
    """
    # Of what passes, all characters are one byte.
    lengths = pc.binary_length(paths)
    has_long_ones = (pc.max(lengths).as_py() or 0) > _LONGEST_NAME
    fine = pc.match_substring_regex(paths, f"^{_PATH if has_long_ones else _NAMES}$")
    if pc.any(pc.or_(pc.starts_with(paths, "."), pc.match_substring(paths, "/."))).as_py():
        fine = pc.and_(fine, pc.invert(pc.match_substring_regex(paths, _UPWARDS)))
    fine = pc.fill_null(pc.and_(fine, pc.less_equal(lengths, LARGEST_PATH)), False)
    if pc.any(pc.invert(fine)).as_py():
        odd = paths.filter(pc.invert(fine))[0].as_py()
        check_file_path(odd if isinstance(odd, str) else "")
        raise DamagedDataError("a log names a file that cannot be one of its table's", file=reprlib.repr(odd))
    if not are_distinct(paths):
        raise DamagedDataError("a checkpoint names a file twice; restore it from a backup")


def check_file_columns(adds: pa.Table) -> None:
    """Refuse the columns of a checkpoint's live files when a row lacks a value, or has one that cannot be.

    Parameters
    ----------
    adds : pyarrow.Table
        Columns of :data:`txntable.log.table_state.ADD_SCHEMA`.

    Raises
    ------
    DamagedDataError
        The message names the column.
    """
    for name, highest in (("size", LARGEST_NUMBER), ("modificationTime", LAST_MOMENT_MS)):
        bounds = pc.min_max(adds[name]).as_py()
        if not 0 <= (bounds["min"] or 0) <= (bounds["max"] or 0) <= highest:
            raise DamagedDataError("a checkpoint has a file with a number that cannot be", column=name)
    for name in ("size", "modificationTime", "dataChange", "partitionValues"):
        if adds[name].null_count:
            raise DamagedDataError("a checkpoint has a file that lacks a value", column=name)
    if not adds.num_rows:
        return
    maps = adds["partitionValues"].combine_chunks()
    bounds = maps.offsets.to_numpy()
    keys = maps.keys.slice(bounds[0], bounds[-1] - bounds[0]).dictionary_encode()
    rows = np.repeat(np.arange(len(maps)), np.diff(bounds))
    pairs = rows * (len(keys.dictionary) + 1) + keys.indices.to_numpy(zero_copy_only=False)
    # All but in order already, which this sort is fast at.
    pairs = np.sort(pairs, kind="stable")
    if np.any(pairs[1:] == pairs[:-1]):
        raise DamagedDataError("a checkpoint has a file with a partition value twice", column="partitionValues")


def texts(values: Mapping[str, Any], what: str) -> dict[str, str | None]:
    """Return partition values, of which each is a text or null.

    Raises
    ------
    DamagedDataError
        One is not, or a name is none.
    """
    if not (_TEXTS.issuperset(map(type, values.values())) and all(type(name) is str for name in values)):
        odd = [value for name, value in values.items() if type(name) is not str or type(value) not in _TEXTS]
        raise DamagedDataError("a value that must be a text is none", field=what, value=reprlib.repr(odd[0]))
    return dict(values)


def texts_only(values: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return values by name, such as a table's properties, each of which is a text; raises as :func:`texts`."""
    found = {name: value for name, value in texts(values, what).items() if value is not None}
    if len(found) != len(values):
        raise DamagedDataError("a value that must be a text is none", field=what)
    return found


def names(values: list[Any] | None, what: str) -> tuple[str, ...]:
    """Return a list of names; none where there is no list.

    Raises
    ------
    DamagedDataError
        One is no text.
    """
    found = tuple(values or ())
    if not all(isinstance(name, str) for name in found):
        raise DamagedDataError("a list of names has something else in it", field=what)
    return found


def check_ids(info: Mapping[str, Any]) -> None:
    """Refuse a ``commitInfo`` that names an entry by anything but a commit id.

    Raises
    ------
    DamagedDataError
        One is no 32 hex digits in lower case.
    """
    for name in ("commitId", "log", "previous"):
        value = info[name]
        if value is not None and _is_id(value) is None:
            raise DamagedDataError(
                "a commit id in a log is none; restore the log from a backup", field=name, value=reprlib.repr(value)
            )


def check_number_names(names: Iterable[str], known: re.Pattern[str]) -> None:
    """Refuse a named number that a table does not have.

    Parameters
    ----------
    names : iterable of str
        Of the ``txn`` actions of an entry, or of a state.
    known : re.Pattern
        Matches every name of the table as a whole, and nothing else.

    Raises
    ------
    DamagedDataError
        The message names it.
    """
    for name in names:
        if known.fullmatch(name) is None:
            raise DamagedDataError(
                "a log has a named number that its table does not have; restore the log from a backup",
                name=reprlib.repr(name),
            )


def moment_ms(value: int, what: str) -> int:
    """Return a time in ms since 1970.

    Raises
    ------
    DamagedDataError
        It is before 1970, or later than any calendar.
    """
    if not 0 <= value <= LAST_MOMENT_MS:
        raise DamagedDataError("a time in a log is none", field=what, value=value)
    return value


def size(value: int, what: str) -> int:
    """Return a number of bytes, a version, or what a named number is.

    Raises
    ------
    DamagedDataError
        It is negative.
    """
    if value < 0:
        raise DamagedDataError("a number in a log is negative", field=what, value=value)
    return value
