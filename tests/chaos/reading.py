"""Scans of whole topics, at every level, with the bounds under which they were served, and the logs they went by."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence

from tests.chaos.life import Life, value_of
from tests.chaos.program import Program
from tests.checker.operations import Bounds, Level, Look, Place, Read, Seen
from tests.checker.recorder import Answer
from txntable.errors import OffsetOutOfRangeError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.isolation import IsolationLevel
from txntable.partition.topic_view import TopicView
from txntable.segments.segment_reader import OFFSET_COLUMN
from txntable.snapshot.snapshot import records_of

COLUMNS = ["value", "_partition", OFFSET_COLUMN, TIMESTAMP_COLUMN]
_LEVELS = (Level.SNAPSHOT, Level.COMMITTED, Level.SNAPSHOT, Level.UNCOMMITTED)
# So many records are read again in a second, at most: a long run's histories grow no faster than its topics.
_RECORDS_A_SECOND = 2_000


class Reading(Program):
    """Reads snapshots, and topics at the two other levels."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        # In turn: where a read takes half a minute, chance alone may not come to a snapshot.
        self.levels = itertools.cycle(_LEVELS)

    def turn(self) -> None:
        level = next(self.levels)
        try:
            records = read(self.life, level)
        except OffsetOutOfRangeError:
            # Retention has taken the snapshot of who was paused for longer.
            records = ()
        self.life.rest(100 + 2_000 * len(records) / _RECORDS_A_SECOND)


def read(life: Life, level: Level, *, final: bool = False) -> Sequence[Seen]:
    """Read all topics from their starts, and record it, and what is known of the logs then."""
    asked = frozenset(life.scenario.groups) if level is Level.SNAPSHOT else frozenset[str]()
    with life.recorder.calling(Read(level, groups=asked, final=final)) as call:
        found = (
            snapshot(life, call)
            if level is Level.SNAPSHOT
            else [(topic, *scan(life, topic, level)) for topic in life.scenario.topics]
        )
        records = tuple(seen for _, _, each in found for seen in each)
        call.saw(records=records, bounds={place: one for topic, view, _ in found for place, one in bounds(topic, view)})
    look(life)
    return records


def look(life: Life) -> None:
    """Write down which version of T, and of each topic's S and P, this process knows, and by which chain."""
    topics = [life.warehouse.topic_log(topic) for topic in life.scenario.topics]
    logs = [life.warehouse.transactions.log, *(log for topic in topics for log in (topic.segments, topic.public))]
    for log in logs:
        with log.lock:
            version, chain = log.table.version, log.table.chain
        if version is not None and chain is not None:
            with life.recorder.calling(Look(log.root, version, chain)):
                pass


Scan = tuple[TopicView, list[Seen]]


def snapshot(life: Life, call: Answer) -> list[tuple[str, TopicView, list[Seen]]]:
    """Read all topics, in any order, and the groups' offsets, as of one position."""
    pinned = life.warehouse.snapshot()
    found = []
    topics = life.chance.sample(list(life.scenario.topics), len(life.scenario.topics))
    if life.chance.random() < 0.5:
        # At once: where a read takes long, compaction goes beyond the position of what is looked at late.
        for topic in topics:
            pinned.view(topic)
    for topic in topics:
        rows = pinned.read_arrow(topic, columns=COLUMNS).read_all().to_pylist()
        found.append((topic, pinned.view(topic), seen_in(topic, rows)))
    offsets: dict[tuple[str, Place], int] = {}
    for group in life.scenario.groups:
        for each, one in pinned.committed_offsets(group).items():
            offsets[group, (each.topic, each.partition)] = one.offset
    call.saw(position=pinned.position, offsets=offsets)
    return found


def scan(life: Life, topic: str, level: Level) -> Scan:
    """Read one topic at a level without a position."""
    reader = life.warehouse.topic_reader(topic)
    reader.catch_up()
    view = reader.view(IsolationLevel(level.value))
    return view, seen_in(topic, records_of(reader, view, (COLUMNS, None), (None, None)).read_all().to_pylist())


def seen_in(topic: str, rows: Sequence[dict]) -> list[Seen]:
    """Return rows as a history has them."""
    return [
        Seen((topic, row["_partition"]), row[OFFSET_COLUMN], value_of(row["value"], _ms(row[TIMESTAMP_COLUMN])))
        for row in rows
    ]


def _ms(time: dt.datetime) -> int:
    return round(time.timestamp() * 1000)


def bounds(topic: str, view: TopicView) -> list[tuple[Place, Bounds]]:
    """Return the bounds of each partition of a view."""
    return [
        ((topic, partition), Bounds(one.start, one.last_stable_offset, one.high_watermark))
        for partition, one in view.bounds.items()
    ]
