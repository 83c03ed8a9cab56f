"""How far everything is behind: readers behind writers, public tables behind topics, groups behind both.

Owns the numbers that metrics and live screens show.  Reads only, from a reader's permissions: each topic's S and P, and
O.  The time is this machine's: asking for the store's is a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from txntable.admin.topic_upkeep import behind_since_ms
from txntable.admin.unreadable import Within, raising, topic_place
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.offsets.offset_log import OffsetLog
from txntable.partition.append import live_settings
from txntable.partition.offsets import log_start
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_log import TopicLog


@dataclass(frozen=True, slots=True)
class PartitionEnds:
    """Where a partition begins, and where its readers stop.

    Attributes
    ----------
    topic_partition : TopicPartition
        Which.
    log_start_offset, last_stable_offset, high_watermark : int
        Its offsets.
    """

    topic_partition: TopicPartition
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int

    @property
    def last_stable_offset_lag(self) -> int:
        """How many offsets open transactions hold back: Kafka's ``LastStableOffsetLag``."""
        return self.high_watermark - self.last_stable_offset


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind in a partition.

    Attributes
    ----------
    group_id : str
        The group.
    topic_partition : TopicPartition
        Where.
    offset : int
        What it has committed.
    lag : int
        From there to the last stable offset, where committed reading ends; never below 0.
    """

    group_id: str
    topic_partition: TopicPartition
    offset: int
    lag: int


@dataclass(frozen=True, slots=True)
class WarehouseLags:
    """How far everything is behind, as of one look.

    Attributes
    ----------
    partitions : tuple of PartitionEnds
        Of all topics, ascending.
    publication_ms : tuple of tuple of str and int
        Topic, and for how long its public table has lacked what it should show; 0: it shows all.
    groups : tuple of GroupLag
        Ascending by group, topic and partition.
    """

    partitions: tuple[PartitionEnds, ...]
    publication_ms: tuple[tuple[str, int], ...]
    groups: tuple[GroupLag, ...]


def warehouse_lags(
    names: Sequence[str], topic_log: Callable[[str], TopicLog], offsets: OffsetLog, within: Within = raising
) -> WarehouseLags:
    """Look at topics and groups, once.

    Parameters
    ----------
    names : sequence of str
        The topics; one that is gone is passed over.
    topic_log : callable
        Topic name -> its logs.
    offsets : OffsetLog
        O.
    within : callable
        What becomes of an error of a topic, or of O; default: it is raised.

    Raises
    ------
    DamagedDataError, StoreUnavailableError, StorePermissionError
        A log cannot be read.
    """
    ends: dict[TopicPartition, PartitionEnds] = {}
    publication = []
    topic_ids = {}
    for name in names:
        topic = topic_log(name)
        with (
            suppress(UnknownTopicOrPartitionError),
            within(topic_place(name)),
            topic.segments.lock,
            topic.public.lock,
        ):
            topic.segments.refresh()
            topic_ids[name] = live_settings(topic.segments.fold).topic_id
            ends.update((each.topic_partition, each) for each in _ends(topic))
            topic.public.refresh()
            since_ms = behind_since_ms(topic)
            now_ms = topic.context.environment.instant().wall_ms
            publication.append((name, 0 if since_ms is None else max(0, now_ms - since_ms)))
    groups: tuple[GroupLag, ...] = ()
    with within(offsets.log.root):
        offsets.refresh()
        groups = tuple(_lags(offsets, ends, topic_ids))
    return WarehouseLags(tuple(ends[each] for each in sorted(ends)), tuple(sorted(publication)), groups)


def _ends(topic: TopicLog) -> Iterator[PartitionEnds]:
    logs, table = topic.segments.fold, topic.segments.table
    settings = live_settings(logs)
    for partition in range(settings.partitions):
        yield PartitionEnds(
            TopicPartition(topic.name, partition),
            log_start(table.numbers, settings.topic_id, partition),
            last_stable_offset(logs, table, settings.topic_id, partition),
            high_watermark(table, settings.topic_id, partition),
        )


def _lags(
    offsets: OffsetLog, ends: dict[TopicPartition, PartitionEnds], topic_ids: dict[str, str]
) -> Iterator[GroupLag]:
    with offsets.log.lock:
        for group in sorted(offsets.log.fold.offsets):
            for (name, partition), row in sorted(offsets.log.fold.offsets[group].items()):
                end, committed = ends.get(TopicPartition(name, partition)), row.committed
                if end is None or committed is None or committed.topic_id not in ("", topic_ids[name]):
                    continue
                lag = max(0, end.last_stable_offset - committed.offset)
                yield GroupLag(group, end.topic_partition, committed.offset, lag)
