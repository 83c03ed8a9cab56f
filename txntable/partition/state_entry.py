"""State entries: producer state that outlives the segments it came from (PROTOCOL.md §5.5).

``state/p00003.parquet`` holds, in its tag, the complete producer state of all offsets below
`through` of one partition, and which compactions by key there were.  It is written anew only by
commits that remove segments or markers, settle rows, or let producers expire.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType

from txntable.coordinator.row_json import Fields, decode_object
from txntable.format.layout import state_path
from txntable.format.partition_values import whole_number
from txntable.log.actions import Add
from txntable.log.constant_file import CONSTANT_FILE, CONSTANT_STATS
from txntable.log.damage import reading
from txntable.partition.batch import TAG_VERSION, decode_tag, integers
from txntable.partition.markers import Control
from txntable.partition.producer_state import BatchMetadata, ProducerEntry

_PRODUCER: Fields = {
    "id": int,
    "epoch": int,
    "coordinator_epoch": (int, NoneType),
    "last_timestamp": int,
    "last_offset": int,
    "batches": list,
}
# More are told apart no longer: of two neighbours the later time counts for both.
MOST_CLEANINGS = 64


@dataclass(frozen=True, slots=True)
class Cleaning:
    """One compaction by key: of every offset below `through`, at the store's time `at_ms` (ms since 1970)."""

    through: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class StateEntry:
    """Producer state of one partition, complete below `through`, and its cleanings, the oldest first."""

    partition: int
    through: int
    producers: Mapping[int, ProducerEntry]
    cleaned: tuple[Cleaning, ...] = ()


def expired_through(cleaned: Sequence[Cleaning], horizon_ms: int) -> int:
    """Return the offset below which tombstones were first compacted at or before a time.

    Parameters
    ----------
    cleaned : sequence of Cleaning
        Of a partition, the oldest first.
    horizon_ms : int
        The store's time less ``delete.retention.ms``.
    """
    return max((one.through for one in cleaned if one.at_ms <= horizon_ms), default=0)


def after_cleaning(cleaned: Sequence[Cleaning], new: Cleaning, horizon_ms: int) -> tuple[Cleaning, ...]:
    """Return a partition's cleanings once there was one more; what no tombstone needs any more is left out.

    Parameters
    ----------
    cleaned : sequence of Cleaning
        So far, the oldest first.
    new : Cleaning
        One that goes no further than the last changes nothing.
    horizon_ms : int
        See :func:`expired_through`.
    """
    if cleaned and new.through <= cleaned[-1].through:
        return tuple(cleaned)
    expired = [one for one in cleaned if one.at_ms <= horizon_ms]
    kept = [*expired[-1:], *(one for one in cleaned if one.at_ms > horizon_ms), new]
    if len(kept) > MOST_CLEANINGS:
        # The one whose going makes the least difference: dropped always at one end, no cleaning would grow old.
        del kept[min(range(1, len(kept) - 1), key=lambda i: kept[i + 1].at_ms - kept[i - 1].at_ms)]
    return tuple(kept)


def state_add(entry: StateEntry, modification_ms: int) -> Add:
    """Return the row of S for a state entry."""
    producers = [
        {
            "id": producer_id,
            "epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_timestamp": producer.last_timestamp_ms,
            "last_offset": producer.last_offset,
            "batches": [
                [b.first_sequence, b.last_sequence, b.base_offset, b.last_offset, b.name] for b in producer.batches
            ],
        }
        for producer_id, producer in sorted(entry.producers.items())
    ]
    tag: dict[str, object] = {"v": TAG_VERSION, "through": entry.through, "producers": producers}
    if entry.cleaned:
        tag["cleaned"] = [[one.through, one.at_ms] for one in entry.cleaned]
    values: dict[str, str | None] = {
        "_partition": str(entry.partition),
        "_base_offset": None,
        "_last_offset": None,
        "_producer_id": None,
        "_producer_epoch": None,
        "_control": Control.STATE.value,
        "_marker": None,
    }
    return Add(
        state_path(entry.partition),
        values,
        len(CONSTANT_FILE),
        modification_ms,
        False,
        CONSTANT_STATS,
        json.dumps(tag, separators=(",", ":")),
    )


def state_entry_of(path: str, values: Mapping[str, str | None], tag_text: str | None) -> StateEntry:
    """Return the state entry that a row of S says.

    Raises
    ------
    DamagedDataError
        The row cannot be read.
    UnsupportedFormatError
        It is of a newer version.
    """
    tag = decode_tag(path, tag_text, {"through": int, "producers": list}, {"cleaned": list})
    with reading(path):
        rows = [decode_object(row, "producer", _PRODUCER, {}) for row in tag["producers"]]
        producers = {
            row["id"]: ProducerEntry(
                row["epoch"],
                tuple(_batch(values) for values in row["batches"]),
                row["last_timestamp"],
                row["coordinator_epoch"],
                row["last_offset"],
            )
            for row in rows
        }
        cleaned = tuple(Cleaning(*integers(numbers, 2)) for numbers in tag["cleaned"] or ())
        return StateEntry(whole_number(values["_partition"]), tag["through"], producers, cleaned)


def _batch(values: object) -> BatchMetadata:
    if not isinstance(values, list) or not values or not isinstance(values[-1], str):
        raise ValueError("a batch without its segment's name")
    first, last, base_offset, last_offset = integers(values[:-1], 4)
    return BatchMetadata(first, last, base_offset, last_offset, values[-1])
