"""How long a table remembers removed files: Delta's own properties, in the one form that we write (PROTOCOL.md §4.5).

Owns their names and their encoding.  Every table has a retention of its own: nobody travels in time on a
topic's partition logs, and each tombstone kept is one more row of every checkpoint.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from txntable.errors import DamagedDataError

DELETED_FILES_PROPERTY = "delta.deletedFileRetentionDuration"
_LOG_PROPERTY = "delta.logRetentionDuration"
_INTERVAL = re.compile(r"interval (\d+) seconds")
# What Delta takes where a table says nothing.
_DELTAS_DEFAULT_MS = 7 * 86_400_000


def retention_properties(retention_ms: int) -> dict[str, str]:
    """Return the properties of a table whose removed files and old versions stay for so many milliseconds."""
    retention = f"interval {retention_ms // 1000} seconds"
    return {DELETED_FILES_PROPERTY: retention, _LOG_PROPERTY: retention}


def deleted_files_retention_ms(configuration: Mapping[str, str]) -> int:
    """Return how long tombstones are kept, in milliseconds, as a table's properties say.

    Raises
    ------
    DamagedDataError
        The property has not the form in which it is written.
    """
    interval = configuration.get(DELETED_FILES_PROPERTY)
    if interval is None:
        return _DELTAS_DEFAULT_MS
    match = _INTERVAL.fullmatch(interval)
    if match is None:
        raise DamagedDataError(
            "a table's retention cannot be read; restore its metadata", **{DELETED_FILES_PROPERTY: interval}
        )
    return int(match[1]) * 1000
