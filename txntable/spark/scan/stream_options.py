"""The options of ``read_stream``: those of Delta's streams, and no others.

Owns their names.  Delta passes over one that it does not know, so Kafka's ``startingOffsets``, or a misspelt
``startingVersion``, would read everything without a word.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.errors import InvalidRequestError
from txntable.format.near_names import about_nearest

STREAM_OPTIONS = (
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "excludeRegex",
    "failOnDataLoss",
    "ignoreChanges",
    "ignoreDeletes",
    "ignoreFileDeletion",
    "skipChangeCommits",
    "readChangeFeed",
    "readChangeData",
    "withEventTimeOrder",
    "schemaTrackingLocation",
    "schemaLocation",
    "streamingSourceTrackingId",
    "allowSourceColumnDrop",
    "allowSourceColumnRename",
    "allowSourceColumnTypeChange",
)
"""As Delta writes them; it does not mind their case."""
_FILE_SYSTEMS = ("fs.", "dfs.")
_OF_KAFKA = {
    "startingoffsets": "startingVersion ('latest': only new records) or startingTimestamp says where it begins",
    "maxoffsetspertrigger": "maxFilesPerTrigger or maxBytesPerTrigger bounds a micro-batch",
}


def check_stream_options(given: Mapping[str, str]) -> None:
    """Refuse what Delta would pass over.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        One is unknown; the message names it.
    """
    known = {name.lower() for name in STREAM_OPTIONS}
    names = [str(name) for name in given]
    unknown = [name for name in names if name.lower() not in known and not name.lower().startswith(_FILE_SYSTEMS)]
    if not unknown:
        return
    lowered = unknown[0].lower()
    meant = _OF_KAFKA.get(lowered) or about_nearest(lowered, STREAM_OPTIONS)
    raise InvalidRequestError(
        "delta's streams have no such option, and would pass over it; leave it out, or take one of those known"
        + (f"; {meant}" if meant else ""),
        unknown=",".join(unknown),
        known=",".join(STREAM_OPTIONS),
    )
