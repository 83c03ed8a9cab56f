"""Random histories of one topic's partition logs, written through the real decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st

from tests.unit.log.world import World
from txntable.errors import TxnTableError
from txntable.log.actions import Action, Add, Remove
from txntable.log.outcome import Committed
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.expiration import decide_expiry, idle_producers
from txntable.partition.markers import Control
from txntable.partition.offsets import next_offset
from txntable.partition.projection import project
from txntable.partition.stable_offset import last_stable_offset
from txntable.partition.state_entry import StateEntry, state_add
from txntable.segment import StagedSegment
from txntable.topic import TopicSettings
from txntable.topic_creation import decide_creation
from txntable.topic_log import TopicLog

TOPIC_ID = "a" * 32
RETENTION_MS = 30 * 86_400_000


steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "commit", "abort", "plain", "once", "compact", "expire", "publish"]),
        st.integers(0, 2),
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=3),
    ),
    max_size=25,
)


def topic_settings(partitions: int = 3, topic_id: str = TOPIC_ID) -> TopicSettings:
    """A topic with one column."""
    return TopicSettings("t", topic_id, partitions, pa.schema([pa.field("x", pa.int64(), nullable=False)]))


@dataclass
class History:
    """Appends, markers and removals on one topic, and what a naive reader expects of them."""

    topic: TopicLog
    position: int = 0
    time_ms: int = 5
    tick_ms: int = 0
    names: int = 0
    segments: dict[str, tuple[ProducerEpoch | None, bool]] = field(default_factory=dict)
    outcomes: dict[tuple[int, int], tuple[Control, int]] = field(default_factory=dict)
    owed: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    sequences: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def create(self, settings: TopicSettings | None = None) -> None:
        """Create the topic."""
        logs = self.topic.segments
        wanted = settings or topic_settings()
        self.commit(lambda table: decide_creation(logs.fold, table, wanted, "0" * 32, (0, RETENTION_MS)))

    def commit(self, decide: Callable[[TableState], Sequence[Action]]) -> None:
        """Write to S; time passes before each commit."""
        self.time_ms += self.tick_ms
        outcome = self.topic.segments.commit("TEST", decide)
        assert isinstance(outcome, Committed)

    def staged(self, partition: int, records: int) -> StagedSegment:
        """An uploaded segment."""
        self.names += 1
        path = f"p{partition:05d}/{TOPIC_ID}-n-{self.names}.parquet"
        return StagedSegment(path, partition, records, 100, f'{{"numRecords":{records}}}', 1, 2, None, 3)

    def append(self, producer: ProducerEpoch | None, parts: Sequence[tuple[int, int]], *, transactional: bool) -> None:
        """Append segments of (partition, records); the next sequences of the producer."""
        segments = []
        for partition, records in parts:
            first = None
            if producer is not None:
                key = (producer.producer_id, producer.epoch, partition)
                first = self.sequences.get(key, 0)
                self.sequences[key] = first + records
            segments.append(SequencedSegment(self.staged(partition, records), first))
        request = AppendRequest(TOPIC_ID, producer, transactional, tuple(segments))
        self.commit(lambda table: decide_append(self.topic.segments.fold, table, request, self.time_ms).actions)
        for item in segments:
            self.segments[item.segment.path] = (producer, transactional)
        if transactional and producer is not None:
            owner = (producer.producer_id, producer.epoch)
            self.owed[owner] = self.owed.get(owner, frozenset()) | {partition for partition, _ in parts}

    def decide(self, producer: ProducerEpoch, control: Control) -> None:
        """End a transaction, with a marker in every enrolled partition and one more."""
        self.position += 1
        key = (producer.producer_id, producer.epoch)
        partitions = self.owed.pop(key, frozenset()) | {0}
        owed = OwedMarker(*key, control, self.position, self.time_ms, partitions)
        self.commit(lambda table: decide_markers(self.topic.segments.fold, table, TOPIC_ID, [owed], self.position))
        self.outcomes[key] = (control, self.position)

    def compact(self, path: str) -> None:
        """Remove a decided segment, carrying the producer state of its partition."""
        logs = self.topic.segments

        def decide(table: TableState) -> Sequence[Action]:
            add = table.files.get(path)
            assert add is not None
            partition = int(add.partition_values["_partition"] or "")
            producers = {pid: e for (p, pid), e in logs.fold.producers.items() if p == partition}
            entry = StateEntry(partition, next_offset(table.numbers, TOPIC_ID, partition), producers)
            return [Remove(path, 9, False, add.partition_values, add.size), state_add(entry, 9)]

        self.commit(decide)
        del self.segments[path]

    def expire(self, expiration_ms: int) -> int:
        """Let the partitions forget who is idle; how many producers that were."""
        logs, expired = self.topic.segments, idle_producers(self.topic.segments.fold, self.time_ms, expiration_ms)
        if expired:
            self.commit(lambda table: decide_expiry(logs.fold, table, expired, self.time_ms))
        return len(expired)

    def publish(self) -> None:
        """Project, as any writer does."""
        self.topic.project()

    def visible(self) -> dict[str, int]:
        """What the public table must hold: a naive comparison of sets."""
        wanted = {}
        for path, (producer, transactional) in self.segments.items():
            if not transactional or producer is None:
                wanted[path] = 0
                continue
            control, position = self.outcomes.get((producer.producer_id, producer.epoch), (Control.ABORT, 0))
            if control is Control.COMMIT:
                wanted[path] = position
        return wanted


def new_history(partitions: int = 3) -> History:
    """A topic that has just been created."""
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(topic_settings(partitions))
    return history


def play(history: History, moves: list, epochs: dict[int, int] | None = None) -> None:
    """Make the moves of `steps`, by three producers with transactions and three without."""
    epochs = {7: 0, 8: 0, 9: 0} if epochs is None else epochs
    for move, who, parts in moves:
        producer = ProducerEpoch(7 + who, epochs[7 + who])
        match move:
            case "append":
                history.append(producer, parts, transactional=True)
            case "commit" | "abort":
                history.decide(producer, Control.COMMIT if move == "commit" else Control.ABORT)
                epochs[7 + who] += 1
            case "plain":
                history.append(ProducerEpoch(100 + who, 0), parts, transactional=False)
            case "once":
                history.append(None, parts, transactional=False)
            case "publish":
                history.publish()
            case "expire":
                history.expire(40)
            case "compact":
                compact_first_decided(history)


def compact_first_decided(history: History) -> None:
    """Remove the lowest segment of the first partition that starts with a decided one."""
    logs, table = history.topic.segments.fold, history.topic.segments.table
    for add in sorted(data_rows(table), key=lambda a: int(a.partition_values["_base_offset"] or "")):
        partition = int(add.partition_values["_partition"] or "")
        last = int(add.partition_values["_last_offset"] or "")
        if last < last_stable_offset(logs, table, TOPIC_ID, partition):
            history.compact(add.path)
            return


def data_rows(table: TableState) -> list[Add]:
    """The segments that are live in S."""
    return [add for add in table.files if add.partition_values["_control"] is None]


def published(topic: TopicLog) -> dict[str, int]:
    """What the public table holds."""
    return {
        add.path.removeprefix("_segments/"): int(add.partition_values["_commit"] or "")
        for add in topic.public.refresh().files
    }


def full_projection(topic: TopicLog, public: TableState) -> list[Action]:
    """A projection by a client that has just opened the logs."""
    fresh = TopicLog(topic.context, topic.name)
    fresh.segments.refresh()
    return project(fresh.segments.fold, fresh.segments.table, public, 11)


def refusal(call: Callable[[], object]) -> str | None:
    """The code of the error that a call raises."""
    try:
        call()
    except TxnTableError as error:
        return error.code
    return None
