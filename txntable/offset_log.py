"""The offset log O: a keyed table of groups' offsets (PROTOCOL.md §8).

Owns the columns of its rows.  Rows are read and refused here from the first format on; what
writes them comes with consumer groups.
"""

from __future__ import annotations

import pyarrow as pa

from coordinator.group_offsets import OffsetRow
from txntable.errors import UnsupportedFormatError
from txntable.log.actions import Add, Commit
from txntable.log.keyed_table import KEY, KIND, POSITION, ROW, Columns, check_copies, row_text
from txntable.log.table_state import TableState

OFFSET_KIND = "offset"
OFFSET_LOG_COLUMNS = pa.schema(
    [
        pa.field(KIND, pa.string()),
        pa.field(KEY, pa.string()),
        pa.field("_group", pa.string()),
        pa.field("_topic", pa.string()),
        pa.field("_partition", pa.int32()),
        pa.field("_offset", pa.int64()),
        pa.field(POSITION, pa.int64()),
        pa.field(ROW, pa.string()),
    ]
)


def _columns(row: OffsetRow) -> Columns:
    return {
        KIND: OFFSET_KIND,
        KEY: row.key,
        "_group": row.group,
        "_topic": row.topic,
        "_partition": str(row.partition),
        "_offset": None if row.committed is None else str(row.committed.offset),
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def offset_row_of(add: Add) -> OffsetRow:
    """Return the offset row that an action says.

    Raises
    ------
    UnsupportedFormatError
        A kind of row that this version does not know.
    DamagedDataError
        Its columns contradict its content.
    """
    kind = add.partition_values.get(KIND)
    if kind != OFFSET_KIND:
        raise UnsupportedFormatError("the offset log has rows of a newer format; upgrade txntable", kind=kind)
    row = OffsetRow.from_json(row_text(add))
    check_copies(add, _columns(row))
    return row


class OffsetLogFold:
    """The offsets of all groups, by (group, topic, partition)."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, str, int], OffsetRow] = {}

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded."""
        self.offsets = {}
        for add in table.files:
            self._take(add)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        for action in commit.actions:
            if isinstance(action, Add):
                self._take(action)
            elif (path := getattr(action, "path", None)) is not None and (old := table.files.get(path)) is not None:
                row = offset_row_of(old)
                self.offsets.pop((row.group, row.topic, row.partition), None)

    def _take(self, add: Add) -> None:
        row = offset_row_of(add)
        self.offsets[row.group, row.topic, row.partition] = row
