"""Tombstones: records that say that their key has no value any more (PROTOCOL.md §5.8).

Owns what one is: a record of a keyed topic of which every column is null that is no key column; in a
topic with Kafka's columns the value alone counts, as there.  Pure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from txntable.coordinator.row_json import parse_json
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings

_KAFKA_VALUE = "value"


def value_columns(settings: TopicSettings) -> tuple[str, ...]:
    """Return the columns that are null in a tombstone; empty: the topic can have none."""
    if settings.schema == KAFKA_SCHEMA:
        return (_KAFKA_VALUE,)
    columns = [field for field in settings.schema if field.name not in settings.key]
    return tuple(field.name for field in columns) if all(field.nullable for field in columns) else ()


def is_tombstone(batch: pa.RecordBatch, settings: TopicSettings) -> npt.NDArray[np.bool_]:
    """Return for each record whether it is a tombstone.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        With the topic's columns.
    settings : TopicSettings
        The topic.
    """
    names = value_columns(settings)
    found = np.full(batch.num_rows, bool(names))
    for name in names:
        found &= batch.column(name).is_null().to_numpy(zero_copy_only=False)
    return found


def may_hold_tombstones(stats: str | None, settings: TopicSettings) -> bool:
    """Return whether a segment may hold tombstones, by its statistics; columns that they leave out may be null.

    Parameters
    ----------
    stats : str or None
        Delta's statistics.
    settings : TopicSettings
        The topic.
    """
    names = value_columns(settings)
    if not names:
        return False
    try:
        counts = parse_json(stats or "{}").get("nullCount", {})
        return all(counts.get(name, 1) != 0 for name in names)
    except (ValueError, AttributeError):
        # Statistics only spare work: what they do not say is looked for in the file.
        return True
