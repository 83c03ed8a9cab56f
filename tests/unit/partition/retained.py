"""A history whose segments have sizes and times, and of which the beginning can go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, data_rows, topic_settings
from txntable.log.table_state import TableState
from txntable.partition.log_start import LogStartDecision, decide_deletion_of_records, decide_retention
from txntable.partition.offsets import log_start
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.segments.segment import StagedSegment
from txntable.topics.topic_log import TopicLog

NOW_MS = 1_000_000_000


@dataclass
class Retained(History):
    """A history whose segments have sizes and times, and of which records can go."""

    sizes: list[int] = field(default_factory=list)
    ages_ms: list[int] = field(default_factory=list)

    def staged(self, partition: int, records: int) -> StagedSegment:
        size = self.sizes.pop(0) if self.sizes else 100
        newest_ms = NOW_MS - (self.ages_ms.pop(0) if self.ages_ms else 0)
        return replace(super().staged(partition, records), size=size, max_timestamp_ms=newest_ms)

    @property
    def state(self) -> tuple[PartitionLogs, TableState, TableState]:
        """S's fold and state, and P's state."""
        topic = self.topic
        return topic.segments.fold, topic.segments.table, topic.public.refresh()

    def retain(self, now_ms: int = NOW_MS) -> LogStartDecision:
        """Let retention take what it takes, in one commit."""
        return self._write(decide_retention(*self.state, now_ms))

    def delete(self, before: Mapping[int, int]) -> LogStartDecision:
        """Delete the records before an offset."""
        return self._write(decide_deletion_of_records(*self.state, before, NOW_MS))

    def _write(self, decision: LogStartDecision) -> LogStartDecision:
        if decision.actions:
            self.commit(lambda table: decision.actions)
        for segment in decision.segments:
            del self.segments[segment.path], self.records[segment.path]
            self.settled.pop(segment.path, None)
        return decision

    def start(self, partition: int = 0) -> int:
        return log_start(self.topic.segments.table.numbers, TOPIC_ID, partition)

    def end(self, partition: int = 0) -> int:
        return high_watermark(self.topic.segments.table, TOPIC_ID, partition)

    def lso(self, partition: int = 0) -> int:
        segments = self.topic.segments
        return last_stable_offset(segments.fold, segments.table, TOPIC_ID, partition)

    def bases(self, partition: int = 0) -> list[int]:
        """The base offsets of the live segments of a partition."""
        return self._offsets(partition, "_base_offset")

    def lasts(self, partition: int) -> list[int]:
        """Their last offsets."""
        return self._offsets(partition, "_last_offset")

    def _offsets(self, partition: int, column: str) -> list[int]:
        values = [add.partition_values for add in data_rows(self.topic.segments.table)]
        return sorted(int(v[column] or "") for v in values if v["_partition"] == str(partition))


def retained(config: Mapping[str, str] | None = None) -> Retained:
    """A topic that has just been created."""
    history = Retained(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(replace(topic_settings(), config=dict(config or {})))
    return history


def plain_segments(history: Retained, count: int) -> None:
    """Segments of ten records, published."""
    for _ in range(count):
        history.append(None, [(0, 10)], transactional=False)
    history.publish()
