"""Random histories of one topic's partition logs, written through the real decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from hypothesis import strategies as st

from tests.unit.log.world import World
from txntable.errors import TxnTableError
from txntable.format.topic import TopicSettings
from txntable.log.actions import Action, Add
from txntable.log.outcome import Committed, Unchanged
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.expiration import decide_expiry, idle_producers
from txntable.partition.markers import Control
from txntable.partition.projection import project
from txntable.partition.rewriting import Rewrite, RewriteDecision, RewriteRequest, decide_rewrite
from txntable.partition.stable_offset import last_stable_offset
from txntable.segments.segment import MergedSegment, StagedSegment
from txntable.topics.topic_creation import decide_creation
from txntable.topics.topic_log import TopicLog

TOPIC_ID = "a" * 32
RETENTION_MS = 30 * 86_400_000
DIGEST = f"sha256:{0:064x}"


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "commit", "abort", "plain", "once", "compact", "clean", "expire", "publish"]
        ),
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
    """Appends, markers and compactions on one topic, and what a naive reader expects of them."""

    topic: TopicLog
    position: int = 0
    time_ms: int = 5
    tick_ms: int = 0
    names: int = 0
    merges: int = 0
    segments: dict[str, tuple[ProducerEpoch | None, bool]] = field(default_factory=dict)
    # Of each segment: its partition and its offsets; of merged and settled ones also the highest decision inside.
    records: dict[str, tuple[int, frozenset[int]]] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)
    outcomes: dict[tuple[int, int], tuple[Control, int]] = field(default_factory=dict)
    owed: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    sequences: dict[tuple[int, int, int], int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=lambda: {7: 0, 8: 0, 9: 0})
    _left: dict[str, frozenset[int]] = field(default_factory=dict)

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
        return StagedSegment(
            path, partition, records, 100, f'{{"numRecords":{records}}}', 1, 2, None, self.time_ms, DIGEST
        )

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
            path = item.segment.path
            add = self.topic.segments.table.files.get(path)
            assert add is not None
            first, last = (int(add.partition_values[name] or "") for name in ("_base_offset", "_last_offset"))
            self.segments[path] = (producer, transactional)
            self.records[path] = (item.segment.partition, frozenset(range(first, last + 1)))
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

    # -- compaction -----------------------------------------------------------------------------

    def eligible(self, partition: int) -> list[str]:
        """The visible segments of a partition below its last stable offset, in offset order."""
        logs = self.topic.segments
        end = last_stable_offset(logs.fold, logs.table, TOPIC_ID, partition)
        mine = {path: offsets for path, (p, offsets) in self.records.items() if p == partition}
        below = [path for path in self.visible() if path in mine and min(mine[path]) < end]
        return sorted(below, key=lambda path: min(mine[path]))

    def aborted(self) -> list[str]:
        """The segments of aborted transactions."""
        return [
            path
            for path, (producer, transactional) in self.segments.items()
            if transactional
            and producer is not None
            and self.outcomes.get((producer.producer_id, producer.epoch), (None, 0))[0] is Control.ABORT
        ]

    def rewrite(self, request: RewriteRequest) -> RewriteDecision:
        """Write a compaction as any compactor does, and take note of what it does to segments."""
        logs = self.topic.segments
        found = RewriteDecision()

        def decide(table: TableState) -> Sequence[Action]:
            nonlocal found
            found = decide_rewrite(logs.fold, table, self.topic.public.table, request, self.time_ms)
            return found.actions

        self.time_ms += self.tick_ms
        assert isinstance(logs.commit("COMPACT", decide), Committed | Unchanged)
        positions = self.visible()
        for rewrite in found.done:
            self._note_rewrite(rewrite, positions)
        live = logs.table.files
        for path in request.settled:
            if path in live:
                self.settled[path] = positions[path]
        for path in [path for path in self.segments if path not in live]:
            del self.segments[path], self.records[path]
            self.settled.pop(path, None)
        return found

    def _note_rewrite(self, rewrite: Rewrite, positions: dict[str, int]) -> None:
        there = sorted(offset for path in rewrite.sources for offset in self.records[path][1])
        for output in rewrite.outputs:
            path = output.segment.path
            mine = frozenset(o for o in there if output.base_offset <= o <= output.last_offset)
            chosen = self._left.pop(path, mine)
            self.records[path] = (rewrite.partition, chosen)
            self.segments[path] = (None, False)
            self.settled[path] = max(positions[source] for source in rewrite.sources)

    def merged(self, partition: int, sources: Sequence[str], kept: int = 1_000_000) -> Rewrite:
        """The rewrite that a worker would hand in; of the records the newest `kept` stay."""
        there = sorted(offset for path in sources for offset in self.records[path][1])
        stay = there[-kept:] if kept else []
        if not stay:
            return Rewrite(partition, tuple(sources), (), left_out_for=self.position)
        # Numbered apart: what producers append has the same names with compactions as without.
        self.merges += 1
        merged = self.staged(partition, len(stay))
        self.names -= 1
        staged = replace(merged, path=merged.path.replace("-n-", f"-m{self.merges}-"))
        self._left[staged.path] = frozenset(stay)
        left_out_for = self.position if len(stay) < len(there) else 0
        output = MergedSegment(staged, stay[0], stay[-1])
        return Rewrite(partition, tuple(sources), (output,), left_out_for=left_out_for)

    def compact(self, partition: int, count: int, *, kept: int = 1_000_000) -> None:
        """Merge neighbours of a partition, settle the others, and take away what was aborted."""
        self.publish()
        eligible = self.eligible(partition)
        sources = eligible[count - 1 :][: count + 1]
        others = tuple(path for path in eligible if path not in sources)
        rewrites = (self.merged(partition, sources, kept),) if sources else ()
        if kept < 1_000_000 and sources:
            end = max(self.records[sources[-1]][1]) + 1
            rewrites = (*rewrites, Rewrite(partition, (), (), by_key=end))
        self.rewrite(RewriteRequest(TOPIC_ID, rewrites, tuple(self.aborted()), others))

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
            if path in self.settled:
                wanted[path] = self.settled[path]
                continue
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
    epochs = history.epochs if epochs is None else epochs
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
                history.compact(*parts[0])
            case "clean":
                history.compact(*parts[0], kept=who)


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
