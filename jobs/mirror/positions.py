"""Where a mirror goes on: decided from what it has stored, and from what its source still has.

Owns the rule that nothing is passed over silently and nothing is sent twice: positions that are gone, records that the
source deleted before they were mirrored, a source that was created again, all are refused with what to do.  The source
is Kafka's topic or ours, and the positions are the other side's.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from txntable.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError

_SAY = "say with --at PARTITION=OFFSET where it goes on"


@dataclass(frozen=True, slots=True)
class Position:
    """What a mirror has stored of one partition, together with the records before it.

    Attributes
    ----------
    offset : int
        The next record to mirror.
    origin : str
        In which topic the offset counts: :attr:`Source.origin`.
    """

    offset: int
    origin: str


@dataclass(frozen=True, slots=True)
class Source:
    """The topic that is mirrored, as it is now.

    Attributes
    ----------
    topic : str
        Its name.
    origin : str
        Names it, and no topic that is created under its name later.
    starts, ends : Mapping of int to int
        Of each partition: its first offset, and the offset before which everything is decided.
    """

    topic: str
    origin: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class MirrorRun:
    """What one transaction of a mirror carried.

    Attributes
    ----------
    read : Mapping of int to (int, int)
        The source's offsets by partition, from and before; empty: there was nothing new.
    """

    read: Mapping[int, tuple[int, int]]

    def __str__(self) -> str:
        ranges = " ".join(f"{partition}={start}..{end}" for partition, (start, end) in sorted(self.read.items()))
        return f"mirrored offsets={sum(end - start for start, end in self.read.values())} {ranges}"


def resumed(source: Source, stored: Mapping[int, Position], *, target_is_empty: bool) -> dict[int, int]:
    """Return where each partition of the source goes on.

    Parameters
    ----------
    source : Source
        What is mirrored.
    stored : Mapping of int to Position
        What the target has; a partition that was added to the source since has none, and goes on from offset 0.
    target_is_empty : bool
        Whether nothing was ever written there: only then a mirror without positions begins, with what there is.

    Raises
    ------
    OffsetOutOfRangeError
        Records are gone that were not mirrored, or the source ends before the position, or the positions are gone.
    UnknownTopicOrPartitionError
        The positions are another topic's.
    """
    if not stored:
        if target_is_empty:
            return dict(source.starts)
        raise OffsetOutOfRangeError(
            f"the target has records and no positions of this mirror: they expired, or others wrote there; {_SAY}",
            topic=source.topic,
        )
    others = sorted({position.origin for position in stored.values()} - {source.origin})
    if others:
        raise UnknownTopicOrPartitionError(
            f"the topic is not the one that was mirrored, it was created again; use a new target, or {_SAY}",
            topic=source.topic,
            found=source.origin,
            mirrored=", ".join(others),
        )
    found = {partition: stored[partition].offset if partition in stored else 0 for partition in source.starts}
    for partition, offset in found.items():
        _check(source, partition, offset)
    return found


def sought(source: Source, stored: Mapping[int, Position], asked: Mapping[int, int]) -> dict[int, int]:
    """Return the positions after some were set by hand.

    Raises
    ------
    InvalidRequestError
        The source has no such partition, or one without a position would stay so.
    OffsetOutOfRangeError
        It has no such offset.
    """
    known = {partition: position.offset for partition, position in stored.items() if position.origin == source.origin}
    found = {partition: offset for partition, offset in known.items() if partition in source.starts} | dict(asked)
    unknown, unsaid = asked.keys() - source.starts.keys(), source.starts.keys() - found.keys()
    if unknown or unsaid:
        raise InvalidRequestError(
            "say --at PARTITION=OFFSET for every partition without a position, and for no other than the topic has",
            topic=source.topic,
            unknown=sorted(unknown) or None,
            without_position=sorted(unsaid) or None,
        )
    for partition in asked:
        _check(source, partition, found[partition])
    return found


def _check(source: Source, partition: int, offset: int) -> None:
    start, end = source.starts[partition], source.ends[partition]
    if offset < start:
        raise OffsetOutOfRangeError(
            f"records are gone from the source that were not mirrored; {_SAY}, those before it stay unmirrored",
            topic=source.topic,
            partition=partition,
            position=offset,
            earliest=start,
        )
    if offset > end:
        raise OffsetOutOfRangeError(
            f"the source ends before the position: it has lost records; {_SAY}",
            topic=source.topic,
            partition=partition,
            position=offset,
            latest=end,
        )


def ranges(positions: Mapping[int, int], ends: Mapping[int, int], most: int | None) -> dict[int, tuple[int, int]]:
    """Return what the next transaction reads of each partition, at most so many offsets of each.

    Parameters
    ----------
    positions, ends : Mapping of int to int
        From where, and at most up to where; a partition without an end is not read.
    most : int or None
        ``None``: everything.
    """
    found = {}
    for partition, start in positions.items():
        end = ends.get(partition, start)
        bounded = end if most is None else min(end, start + most)
        if start < bounded:
            found[partition] = (start, bounded)
    return found
