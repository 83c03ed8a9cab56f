"""The segments that only older versions of a public table name: vacuum keeps them for its retention (PROTOCOL.md §5.7).

Owns which these are: what an entry takes away that can still be read, not longer ago than P's retention.  What was
taken away at or below the checkpoint that P begins with, no version that can be read names: a purge may have deleted
it.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from txntable.log.actions import Action, Remove
from txntable.log.table_state import TableState
from txntable.partition.projection import SEGMENTS_PREFIX
from txntable.segments.segment_columns import digest_in


@dataclass(frozen=True, slots=True)
class RetainedSegment:
    """A file that older versions name.

    Attributes
    ----------
    path : str
        Relative to S's root.
    size : int
        Bytes, as its row said.
    digest : str or None
        As its row said; ``None``: it did not.
    """

    path: str
    size: int
    digest: str | None


class RetainedSegments:
    """What the entries of one P have taken away, as far as they were read."""

    def __init__(self) -> None:
        self._removed: dict[str, RetainedSegment] = {}

    def observe(self, actions: Iterable[Action], table: TableState) -> None:
        """Take an entry's actions, before they are folded on `table`."""
        for action in actions:
            if isinstance(action, Remove) and (row := table.files.get(action.path)) is not None:
                path = action.path.removeprefix(SEGMENTS_PREFIX)
                self._removed[path] = RetainedSegment(path, row.size, digest_in(row.tag))

    def due(self, table: TableState, now_ms: int) -> list[RetainedSegment]:
        """Return the files that nobody may have deleted yet, by path.

        Parameters
        ----------
        table : TableState
            P's, after the entries that were observed.
        now_ms : int
            ms since 1970, by any clock: where the log's own time is later, that counts.
        """
        since_ms = max(now_ms, table.timestamp_ms) - table.deleted_files_retention_ms
        return [one for path, one in sorted(self._removed.items()) if self._is_kept(path, table, since_ms)]

    @staticmethod
    def _is_kept(path: str, table: TableState, since_ms: int) -> bool:
        gone = table.tombstones.get(SEGMENTS_PREFIX + path)
        return gone is not None and gone.deletion_ms >= since_ms
