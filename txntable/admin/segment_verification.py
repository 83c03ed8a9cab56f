"""Verifying segments: every file that a topic's logs name, read whole and compared with its row (PROTOCOL.md §10).

Owns which files those are, and what is said of one that differs.  Writes nothing; memory is bounded by a few pieces of
files and the rows of one topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from txntable.errors import DamagedDataError
from txntable.partition.batch import batch_of
from txntable.partition.projection import SEGMENTS_PREFIX
from txntable.segments.segment_check import check_file
from txntable.segments.segment_columns import segment_columns
from txntable.segments.segment_digest import is_known
from txntable.storage.object_store import ObjectStore
from txntable.storage.side_by_side import threads
from txntable.topics.topic_log import TopicLog

# Of rows at a time: their files are read side by side.
_ROWS_AT_ONCE = 256
_EVERYTHING = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A file that a log names, and what it says of its bytes.

    Attributes
    ----------
    path : str
        Relative to the warehouse's root.
    size : int
        Bytes.
    digest : str or None
        As in the row's tag; ``None``: it says nothing.
    """

    path: str
    size: int
    digest: str | None


@dataclass(frozen=True, slots=True)
class SegmentFinding:
    """A file that is not the one that its row names, or of which that cannot be told.

    Attributes
    ----------
    topic, path : str
        Which; the path is relative to the warehouse's root.
    problem : str
        What is wrong with it.
    """

    topic: str
    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class SegmentVerification:
    """What a verification has read, and found.

    Attributes
    ----------
    segments, bytes : int
        How many files, and how large they are together.
    findings : tuple of SegmentFinding
        Empty: every file is the one that was written.
    """

    segments: int
    bytes: int
    findings: tuple[SegmentFinding, ...]


def verify_topic(store: ObjectStore, topic: TopicLog) -> SegmentVerification:
    """Read every segment that a topic's logs name now.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    topic : TopicLog
        The topic.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    StoreUnavailableError
        Try again.
    """
    topic.settings()
    named = _named(topic)
    with threads(max(1, store.parallel_writes)) as pool:
        found = [problem for part in _parts(named) for problem in pool.map(lambda one: _problem(store, one), part)]
    differing = [(one, problem) for one, problem in zip(named, found, strict=True) if problem is not None]
    if differing:
        # What was taken away meanwhile, and vacuumed, is named no more.
        still = {one.path for one in _named(topic)}
        differing = [(one, problem) for one, problem in differing if one.path in still]
    findings = tuple(SegmentFinding(topic.name, one.path, problem) for one, problem in differing)
    return SegmentVerification(len(named), sum(one.size for one in named), findings)


def _named(topic: TopicLog) -> list[NamedSegment]:
    """Return the segments of S, and those of P that S does not name any more."""
    root = topic.segments.root
    with topic.segments.lock, topic.public.lock:
        topic.segments.refresh()
        topic.public.refresh()
        named: dict[str, NamedSegment] = {}
        for add in topic.segments.table.files:
            if add.partition_values["_control"] is None:
                named[add.path] = NamedSegment(f"{root}/{add.path}", add.size, batch_of(add).digest)
        columns = segment_columns(topic.public.table.files.to_table(), public=True)
        for partition in set(columns.partition.tolist()):
            for planned in columns.between(partition, 0, _EVERYTHING):
                path = planned.path.removeprefix(SEGMENTS_PREFIX)
                if path not in named:
                    named[path] = NamedSegment(f"{root}/{path}", planned.size, planned.digest)
    return [named[path] for path in sorted(named)]


def _parts(named: Sequence[NamedSegment]) -> Iterator[Iterable[NamedSegment]]:
    for first in range(0, len(named), _ROWS_AT_ONCE):
        yield named[first : first + _ROWS_AT_ONCE]


def _problem(store: ObjectStore, one: NamedSegment) -> str | None:
    try:
        check_file(store, one.path, one.size, one.digest)
    except DamagedDataError as error:
        return error.message
    if one.digest is None or not is_known(one.digest):
        return "its row has no digest that this version can check: only the size was compared"
    return None
