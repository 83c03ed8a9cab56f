"""Which offsets a DataFrame holds: what users write, and the predicates that cut a table to it.

Owns how bounds become SQL: whole files by their partition columns, and single records only where a
bound runs through a file.  Where no bound leaves anything out there is no predicate at all, and with
any number of partitions each is one list of numbers.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from txntable.errors import InvalidRequestError
from txntable.partition.topic_view import TopicView
from txntable.segments.segment_columns import SegmentColumns

EARLIEST, LATEST = "earliest", "latest"
Offsets = Mapping[int, int | str] | str
"""By partition: an offset, ``"earliest"`` or ``"latest"``; or one of these words for all of them."""


@dataclass(frozen=True, slots=True)
class OffsetBounds:
    """The offsets of a partition that are wanted: from `start`, before `end`."""

    start: int
    end: int


def offset_bounds(view: TopicView, starting: Offsets | None, ending: Offsets | None) -> dict[int, OffsetBounds]:
    """Return the wanted offsets of every partition.

    Parameters
    ----------
    view : TopicView
        What can be read.
    starting, ending : Offsets, optional
        From these offsets, and before these; default, and for partitions that are not named: all that can be read.

    Raises
    ------
    InvalidRequestError
        An offset is neither a number nor one of the words.
    UnknownTopicOrPartitionError, OffsetOutOfRangeError
        There is no such partition, or the offset cannot be read.
    """
    starts, ends = _resolved(view, starting, EARLIEST), _resolved(view, ending, LATEST)
    return {partition: OffsetBounds(starts[partition], ends[partition]) for partition in view.bounds}


def _resolved(view: TopicView, given: Offsets | None, default: str) -> dict[int, int]:
    if given is not None and not isinstance(given, str | Mapping):
        raise InvalidRequestError(
            "offsets are a mapping of partitions, or 'earliest' or 'latest'; give one of them", offsets=repr(given)
        )
    each = dict.fromkeys(view.bounds, given if isinstance(given, str) else default)
    wanted: dict[int, int | str] = {**each, **({} if given is None or isinstance(given, str) else given)}
    return {partition: _offset(view, partition, offset) for partition, offset in wanted.items()}


def _offset(view: TopicView, partition: int, wanted: int | str) -> int:
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return view.check_offset(partition, wanted)
    if wanted in (EARLIEST, LATEST) and partition in view.bounds:
        bounds = view.bounds[partition]
        return bounds.start if wanted == EARLIEST else bounds.end
    if wanted in (EARLIEST, LATEST):
        return view.check_offset(partition, 0)
    raise InvalidRequestError(
        "an offset is a number, 'earliest' or 'latest'; give one of them",
        topic=view.settings.name,
        partition=partition,
        offset=repr(wanted),
    )


def range_predicates(columns: SegmentColumns, ranges: Mapping[int, OffsetBounds]) -> list[str]:
    """Return the conditions, in SQL, that leave those offsets of a table's records.

    Parameters
    ----------
    columns : SegmentColumns
        The files that are there.
    ranges : Mapping[int, OffsetBounds]
        Of every partition.

    Returns
    -------
    list of str
        On partition columns; then, only where a bound runs through a file, on offsets of records.
    """
    hidden_below, hidden_above, cut_below, cut_above = (False,) * 4
    for partition, wanted in ranges.items():
        first, stop = (int(row) for row in np.searchsorted(columns.partition, [partition, partition + 1]))
        if first == stop:
            continue
        base, last = columns.base_offset[first:stop], columns.last_offset[first:stop]
        hidden_below |= bool(base[0] < wanted.start)
        hidden_above |= bool(last[-1] >= wanted.end)
        # Files of a partition do not overlap: a bound runs through one of them at most.
        cut_below |= _runs_through(base, last, wanted.start)
        cut_above |= _runs_through(base, last, wanted.end)
    starts = _by_partition(each.start for each in _in_order(ranges))
    ends = _by_partition(each.end for each in _in_order(ranges))
    conditions = (
        (hidden_below, f"_last_offset >= {starts}"),
        (hidden_above, f"_base_offset < {ends}"),
        (cut_below, f"_base_offset + _offset_delta >= {starts}"),
        (cut_above, f"_base_offset + _offset_delta < {ends}"),
    )
    return [condition for needed, condition in conditions if needed]


def _runs_through(base: np.ndarray, last: np.ndarray, offset: int) -> bool:
    row = int(np.searchsorted(last, offset))
    return row < len(base) and bool(base[row] < offset)


def _in_order(ranges: Mapping[int, OffsetBounds]) -> Iterable[OffsetBounds]:
    return (ranges[partition] for partition in sorted(ranges))


def _by_partition(numbers: Iterable[int]) -> str:
    """Return the number of a row's partition as an expression that Spark folds into one literal."""
    return f"get(CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>), _partition)"
