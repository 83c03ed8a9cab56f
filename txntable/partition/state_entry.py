"""State entries: producer state that outlives the segments it came from (PROTOCOL.md §5.5).

``state/p00003.parquet`` holds, in its tag, the complete producer state of all offsets below
`through` of one partition.  It is written anew only by commits that remove segments or markers.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from txntable.errors import DamagedDataError
from txntable.layout import state_path
from txntable.log.actions import Add
from txntable.log.constant_file import CONSTANT_FILE, CONSTANT_STATS
from txntable.partition.batch import TAG_VERSION, decode_tag
from txntable.partition.markers import Control
from txntable.partition.producer_state import BatchMetadata, ProducerEntry


@dataclass(frozen=True, slots=True)
class StateEntry:
    """Producer state of one partition, complete below `through`."""

    partition: int
    through: int
    producers: Mapping[int, ProducerEntry]


def state_add(entry: StateEntry, modification_ms: int) -> Add:
    """Return the row of S for a state entry."""
    producers = [
        {
            "id": producer_id,
            "epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_timestamp": producer.last_timestamp_ms,
            "last_offset": producer.last_offset,
            "batches": [[b.first_sequence, b.last_sequence, b.base_offset, b.last_offset] for b in producer.batches],
        }
        for producer_id, producer in sorted(entry.producers.items())
    ]
    tag = {"v": TAG_VERSION, "through": entry.through, "producers": producers}
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
        The row can not be read.
    UnsupportedFormatError
        It is of a newer version.
    """
    tag = decode_tag(path, tag_text, {"v", "through", "producers"}, set())
    try:
        producers = {
            row["id"]: ProducerEntry(
                row["epoch"],
                tuple(BatchMetadata(*numbers) for numbers in row["batches"]),
                row["last_timestamp"],
                row["coordinator_epoch"],
                row["last_offset"],
            )
            for row in tag["producers"]
        }
        return StateEntry(int(values["_partition"] or ""), tag["through"], producers)
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedDataError("a state entry can not be read; restore the log from a backup", path=path) from error
