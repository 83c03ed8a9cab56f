"""What a version of the public table tells people of itself, in Delta's own words (PROTOCOL.md §7).

Owns the bounds: the first line of an entry is short, and a projection may show any number of decisions.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from txntable.coordinator.batch_memory import BatchId
from txntable.log.actions import Action, Add, OperationDetails, Remove
from txntable.log.table_state import TableState
from txntable.partition.completion import OwedMarker
from txntable.partition.projection import SEGMENTS_PREFIX

MOST_DECISIONS = 8
"""That one version names."""
LONGEST_NAME = 48
"""Characters of an id that is named whole."""
LARGEST_PARAMETERS_BYTES = 300
"""As JSON: with ids, counts and digests around them, a first line has at most 1,024 bytes."""

# Its id and its epoch, as a row has them.
_Producer = tuple[str | None, str | None]
_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def projection_details(
    segments: TableState, public: TableState, actions: Sequence[Action], decided: Sequence[OwedMarker]
) -> OperationDetails:
    """Return what an entry of P says of a projection.

    Parameters
    ----------
    segments, public : TableState
        S's state, and P's before the entry.
    actions : sequence of Action
        Of the entry.
    decided : sequence of OwedMarker
        Decisions that the projecting process knows by name.
    """
    files = rows = size = removed = removed_size = 0
    shown: dict[_Producer, int] = {}
    for action in actions:
        if isinstance(action, Remove):
            removed += 1
            removed_size += action.size
        elif isinstance(action, Add) and action.path not in public.files:
            segment = segments.files.get(action.path.removeprefix(SEGMENTS_PREFIX))
            assert segment is not None  # P shows what is live in S
            # The projection has decoded and checked the row: here it is only looked into.
            tag, values = json.loads(segment.tag or "{}"), segment.partition_values
            files, rows, size = files + 1, rows + int(tag["records"]), size + action.size
            position = int(action.partition_values["_commit"] or 0)
            # A merged segment is of decisions that were shown before.
            if position and "decided" not in tag:
                shown[values["_producer_id"], values["_producer_epoch"]] = position
    counts = (files, rows, size, removed, removed_size)
    names = ("numFiles", "numOutputRows", "numOutputBytes", "numRemovedFiles", "numRemovedBytes")
    return OperationDetails(_parameters(shown, decided), dict(zip(names, map(str, counts), strict=True)))


def _parameters(shown: Mapping[_Producer, int], decided: Sequence[OwedMarker]) -> dict[str, str]:
    known: dict[_Producer, OwedMarker] = {(str(one.producer_id), str(one.ends)): one for one in decided}
    in_order = sorted(shown, key=lambda producer: (shown[producer], int(producer[0] or 0)))
    found = [(shown[producer], known.get(producer)) for producer in in_order]
    for count in range(min(len(found), MOST_DECISIONS), 0, -1):
        parameters = {
            "transactionalIds": _dumps(
                [None if one is None else _short(one.transactional_id) for _, one in found[:count]]
            ),
            "batchIds": _dumps([None if one is None else _short(one.batch_id) for _, one in found[:count]]),
            "positions": _dumps([position for position, _ in found[:count]]),
            **_more(len(found) - count),
        }
        if len(_dumps(parameters).encode()) <= LARGEST_PARAMETERS_BYTES:
            return parameters
    return _more(len(found))


def _more(count: int) -> dict[str, str]:
    return {"more": str(count)} if count else {}


def _short(name: BatchId | None) -> BatchId | None:
    return f"{name[: LONGEST_NAME - 1]}…" if isinstance(name, str) and len(name) > LONGEST_NAME else name
