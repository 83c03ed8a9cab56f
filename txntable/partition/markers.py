"""Markers: the row of S that ends one transaction in one topic (PROTOCOL.md §5.3).

A marker goes to every enrolled partition, with or without data: it is what stops an append that
was verified before the decision.  It ends exactly one epoch and raises the producer to the next.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.row_json import ROW_FORMAT, Fields, decode_object, decode_row
from txntable.format.layout import marker_path
from txntable.format.partition_values import whole_number
from txntable.log.actions import Add
from txntable.log.constant_file import CONSTANT_FILE, CONSTANT_STATS
from txntable.log.damage import reading

MARKER_VERSION = ROW_FORMAT
_FIELDS: Fields = {"ends": int, "position": int, "decided_at": int, "coordinator_epoch": int, "offsets": dict}


class Control(Enum):
    """What a row of S is when it is no data."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"
    STATE = "STATE"


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of one transaction in one topic.

    Attributes
    ----------
    path : str
        Relative to S's root.
    producer_id : int
        Whose transaction.
    ends : int
        The epoch that it ends: of the transaction's records.
    control : Control
        COMMIT or ABORT.
    position : int
        The decision position: T's version that decided.
    decided_at_ms : int
        In-commit time of that version.
    coordinator_epoch : int
        Of the lease that wrote it; 0: nobody's.
    offsets : Mapping[int, int]
        Enrolled partition -> the offset that the marker takes there.
    """

    path: str
    producer_id: int
    ends: int
    control: Control
    position: int
    decided_at_ms: int
    coordinator_epoch: int
    offsets: Mapping[int, int]

    @property
    def raises_to(self) -> int:
        """The producer's epoch from here on."""
        return self.ends + 1


def marker_add(topic_id: str, marker: Marker, modification_ms: int) -> Add:
    """Return the row of S for a marker; its file is the constant one."""
    value = {
        "v": MARKER_VERSION,
        "ends": marker.ends,
        "position": marker.position,
        "decided_at": marker.decided_at_ms,
        "coordinator_epoch": marker.coordinator_epoch,
        "offsets": {str(partition): offset for partition, offset in sorted(marker.offsets.items())},
    }
    values: dict[str, str | None] = {
        "_partition": None,
        "_base_offset": None,
        "_last_offset": None,
        "_producer_id": str(marker.producer_id),
        "_producer_epoch": str(marker.raises_to),
        "_control": marker.control.value,
        "_marker": json.dumps(value, separators=(",", ":")),
    }
    path = marker_path(topic_id, marker.producer_id, marker.ends)
    return Add(path, values, len(CONSTANT_FILE), modification_ms, True, CONSTANT_STATS)


def marker_of(path: str, values: Mapping[str, str | None]) -> Marker:
    """Return the marker that a row of S says.

    Raises
    ------
    DamagedDataError
        The row cannot be read.
    UnsupportedFormatError
        It is of a newer version.
    """
    with reading(path):
        value = decode_row(values["_marker"] or "", "marker", _FIELDS, {})
        if whole_number(values["_producer_epoch"]) != value["ends"] + 1:
            raise ValueError("epoch raised by other than one")
        return Marker(
            path=path,
            producer_id=whole_number(values["_producer_id"]),
            ends=value["ends"],
            control=Control(values["_control"]),
            position=value["position"],
            decided_at_ms=value["decided_at"],
            coordinator_epoch=value["coordinator_epoch"],
            offsets={
                whole_number(partition): offset
                for partition, offset in decode_object(
                    value["offsets"], "marker", dict.fromkeys(value["offsets"], int), {}
                ).items()
            },
        )
