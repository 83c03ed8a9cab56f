"""How the columns of a segment are encoded, chosen by its first rows (PROTOCOL.md §5.2).

A dictionary of values that hardly repeat costs time and space until Parquet's writer gives it up:
such columns go without one, and whole numbers as differences.  Every choice is one that any
Parquet reader can read; statistics and values are the same.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.schema import OFFSET_DELTA_COLUMN
from txntable.segments.statistics import Leaf

# Enough to tell a column of some thousand values from one of hundreds of thousands, and done in a millisecond.
_SAMPLE_ROWS = 16 * 1024
# Of fewer rows a dictionary is never smaller than its values, and its page takes as long as theirs.
FEW_ROWS = 8
# Fewer do not show whether the rows behind them repeat.
_TELLING_ROWS = 1024
_REPEATED = 0.75
_DIFFERENCES = "DELTA_BINARY_PACKED"
_OWN = (OFFSET_DELTA_COLUMN, TIMESTAMP_COLUMN)


@dataclass(frozen=True, slots=True)
class ColumnEncodings:
    """What Parquet's writer is told.

    Attributes
    ----------
    use_dictionary : tuple of str
        Columns that begin with a dictionary; paths with dots.
    column_encoding : Mapping[str, str]
        Of columns that have none and are not stored plainly.
    """

    use_dictionary: tuple[str, ...]
    column_encoding: Mapping[str, str]


def dictionary_encodings(leaves: Sequence[Leaf]) -> ColumnEncodings:
    """Return the encodings of segments too small to look at: a dictionary for each of the user's columns.

    None for what is in a list or a map: one record can have any number of them, and a reader could not tell a large
    value that is repeated from a bomb.
    """
    names = tuple(".".join(leaf.path) for leaf in leaves if leaf.path[0] not in _OWN and not leaf.repeated)
    return ColumnEncodings(names, dict.fromkeys(_OWN, _DIFFERENCES))


def plain_encodings() -> ColumnEncodings:
    """Return the encodings of segments of fewer than :data:`FEW_ROWS` rows: no dictionaries."""
    return ColumnEncodings((), dict.fromkeys(_OWN, _DIFFERENCES))


def choose_encodings(leaves: Sequence[Leaf], rows: pa.Table) -> ColumnEncodings:
    """Return the encodings for a segment that begins with `rows`.

    Parameters
    ----------
    leaves : sequence of Leaf
        Of the segment's schema.
    rows : pyarrow.Table
        Its first row group, at least one row.
    """
    usual = dictionary_encodings(leaves)
    if rows.num_rows < _TELLING_ROWS:
        return usual
    step = -(-rows.num_rows // _SAMPLE_ROWS)
    sample = rows.take(pa.array(np.arange(0, rows.num_rows, step)))
    plain = {
        leaf.path[0]: leaf.kind
        for leaf in leaves
        if len(leaf.path) == 1 and leaf.path[0] not in _OWN and not _repeats(sample.column(leaf.path[0]))
    }
    differences = {name: _DIFFERENCES for name, kind in plain.items() if _is_whole(kind)}
    kept = tuple(name for name in usual.use_dictionary if name not in plain)
    return ColumnEncodings(kept, {**usual.column_encoding, **differences})


def _repeats(column: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(column, mode="only_valid").as_py() <= _REPEATED * len(column))


def _is_whole(kind: pa.DataType) -> bool:
    """Return whether values are stored as 32 or 64 bit integers, decimals aside: not every reader expects those so."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))
