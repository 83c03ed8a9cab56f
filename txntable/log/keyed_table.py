"""Keyed tables: one row for each key, the latest counts (PROTOCOL.md §3.3).

A row is an ``add`` of a fixed path whose partition values hold everything; a change adds the same
path again, so that Delta's own reconciliation keeps the latest and a checkpoint *is* the
compaction.  ``_row`` is the truth, the other columns are copies for SQL: a mismatch is damage.

Owns the columns common to both keyed tables and the constant file behind each row.  Must not
know what a row means.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from txntable.errors import DamagedDataError
from txntable.format.layout import key_path
from txntable.format.schema import to_delta_schema
from txntable.log.actions import Action, Add, Metadata, Remove, guard_protocol
from txntable.log.constant_file import CONSTANT_FILE, CONSTANT_STATS
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore

KIND, KEY, ROW, POSITION = "_kind", "_key", "_row", "_position"
Columns = Mapping[str, str | None]


def keyed_add(columns: Columns, modification_ms: int) -> Add:
    """Return the action that writes one row.

    Parameters
    ----------
    columns : Mapping[str, str or None]
        Every partition column of the table, as Delta writes it.
    modification_ms : int
        The store's time.
    """
    path = key_path(columns[KIND] or "", columns[KEY] or "")
    return Add(path, columns, len(CONSTANT_FILE), modification_ms, True, CONSTANT_STATS)


def keyed_remove(add: Add, deletion_ms: int) -> Remove:
    """Return the action that lets a row expire; its file stays."""
    return Remove(add.path, deletion_ms, True, add.partition_values, add.size)


def find_row(table: TableState, kind: str, key: str) -> Add | None:
    """Return the live row of a key, or ``None``."""
    return table.files.get(key_path(kind, key))


def row_text(path: str, values: Columns) -> str:
    """Return the JSON of the row that is at `path`, with these partition values.

    Raises
    ------
    DamagedDataError
        There is none.
    """
    text = values.get(ROW)
    if not text:
        raise DamagedDataError("a keyed row has no content; restore the log from a backup", path=path)
    return text


def check_copies(path: str, values: Columns, expected: Columns) -> None:
    """Refuse a row whose columns say something else than its JSON, or that is at the path of another.

    Raises
    ------
    DamagedDataError
        The message names the columns that differ.
    """
    differing = _differing(expected, values)
    if differing or path != key_path(expected[KIND] or "", expected[KEY] or ""):
        raise DamagedDataError(
            "a keyed row's columns contradict its content; restore the log from a backup",
            path=path,
            columns=",".join(differing) or None,
        )


def _differing(expected: Columns, found: Columns) -> list[str]:
    if expected == found:
        return []
    # One that is null is not one that is missing.
    return sorted(
        name
        for name in {*expected, *found}
        if name not in expected or name not in found or expected[name] != found[name]
    )


def ensure_key_files(store: ObjectStore, root: str, table: TableState, adds: list[Add]) -> None:
    """Write the constant file of every row that is not live yet, before the commit that names it.

    Parameters
    ----------
    store : ObjectStore
        The store.
    root : str
        The table's root.
    table : TableState
        As far as known: a live row has its file.
    adds : list of Add
        The rows that are about to be committed.
    """
    for add in adds:
        if add.path not in table.files:
            store.put(f"{root}/{add.path}", CONSTANT_FILE)


def keyed_schema(columns: pa.Schema) -> pa.Schema:
    """Return the columns of a keyed table: the data column of the constant file, and its partition columns."""
    return pa.schema([pa.field("_constant", pa.int32()), *columns])


def creation_actions(
    name: str, table_id: str, columns: pa.Schema, properties: Mapping[str, str], now_ms: int
) -> list[Action]:
    """Return version 0 of a keyed table.

    Parameters
    ----------
    name, table_id : str
        For Delta's metadata.
    columns : pyarrow.Schema
        The partition columns; the data column ``_constant`` is added.
    properties : Mapping[str, str]
        The table's configuration.
    now_ms : int
        The store's time.
    """
    schema = to_delta_schema(keyed_schema(columns))
    metadata = Metadata(table_id, name, schema, tuple(columns.names), dict(properties), now_ms)
    return [guard_protocol(), metadata]
