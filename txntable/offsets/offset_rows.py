"""The rows of the offset log O as Delta's columns: offsets and groups (PROTOCOL.md §8).

Owns which kinds of row there are, and the translation between a row and its columns; ``_row`` is
the truth and the others are copies.  Pure.  Must not know what a row allows.
"""

from __future__ import annotations

import pyarrow as pa

from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_offsets import OffsetRow
from txntable.errors import UnsupportedFormatError
from txntable.log.actions import Add
from txntable.log.damage import reading
from txntable.log.keyed_table import KEY, KIND, POSITION, ROW, Columns, check_copies, row_text

OFFSET_KIND = "offset"
GROUP_KIND = "group"
_GROUP, _TOPIC, _PARTITION, _OFFSET = "_group", "_topic", "_partition", "_offset"
OFFSET_LOG_COLUMNS = pa.schema(
    [
        pa.field(KIND, pa.string()),
        pa.field(KEY, pa.string()),
        pa.field(_GROUP, pa.string()),
        pa.field(_TOPIC, pa.string()),
        pa.field(_PARTITION, pa.int32()),
        pa.field(_OFFSET, pa.int64()),
        pa.field(POSITION, pa.int64()),
        pa.field(ROW, pa.string()),
    ]
)


def columns_of(row: OffsetRow | GroupRow) -> Columns:
    """Return the columns of a row."""
    if isinstance(row, GroupRow):
        return {
            KIND: GROUP_KIND,
            KEY: row.key,
            _GROUP: row.group,
            _TOPIC: None,
            _PARTITION: None,
            _OFFSET: None,
            POSITION: str(row.position),
            ROW: row.to_json(),
        }
    return {
        KIND: OFFSET_KIND,
        KEY: row.key,
        _GROUP: row.group,
        _TOPIC: row.topic,
        _PARTITION: str(row.partition),
        _OFFSET: None if row.committed is None else str(row.committed.offset),
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def row_of(add: Add) -> OffsetRow | GroupRow:
    """Return the row that an action says.

    Raises
    ------
    UnsupportedFormatError
        A kind of row that this version does not know.
    DamagedDataError
        Its columns contradict its content.
    """
    kind = add.partition_values.get(KIND)
    with reading(add.path):
        if kind == OFFSET_KIND:
            row: OffsetRow | GroupRow = OffsetRow.from_json(row_text(add.path, add.partition_values))
        elif kind == GROUP_KIND:
            row = GroupRow.from_json(row_text(add.path, add.partition_values))
        else:
            raise UnsupportedFormatError("the offset log has rows of a newer format; upgrade txntable", kind=kind)
        check_copies(add.path, add.partition_values, columns_of(row))
        return row
