"""Compacting the topics of a warehouse: retention, plan, rewrite, register (PROTOCOL.md §5.8).

Owns the order of a run, and that what fails in one topic does not stop the others.  A run may die at any
moment: what it registered holds, what it did not is named by no log, and the next run goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import takewhile

from txntable.compaction.planner import DEFAULT_MEMORY_BYTES, PlanRules, plan_topic
from txntable.compaction.rewriter import Rewriter, TopicWork, rewriter_here
from txntable.compaction.spec import RewriteResult, RewriteTask, TopicReport, TopicSpec
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.errors import InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.topic_policy import config_number
from txntable.log.actions import Commit, CommitInfo
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.log_start import decide_retention
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.rewriting import Rewrite, RewriteRequest
from txntable.segments.segment import SegmentPlan
from txntable.topics.retention import expire_records, trim
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

# Rows of S in one commit.
_MOST_ROWS = 5_000
# Results grow too old to be registered; and what is not registered is lost with this process.
_LONGEST_WAIT_MS = 3_600_000

# Topic, bytes rewritten so far, bytes to rewrite in all.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """How a run works.

    Attributes
    ----------
    memory_bytes : int
        How much memory the keys of a compaction by key may take at once, in each worker.
    commit_bytes : int
        Bytes of sources that are rewritten before what was done is registered.
    stop : callable
        Asked after each task and each topic; ``True``: what was done is registered, and the run ends.

    Raises
    ------
    InvalidRequestError
        A value is not positive.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    commit_bytes: int = 1024 * 1024 * 1024
    stop: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        if self.memory_bytes < 1 or self.commit_bytes < 1:
            raise InvalidRequestError(
                "memory_bytes and commit_bytes are at least 1",
                memory_bytes=self.memory_bytes,
                commit_bytes=self.commit_bytes,
            )


def compact(  # noqa: PLR0913  how to run, by name
    warehouse: Warehouse,
    topics: Sequence[str] | None = None,
    *,
    rewriter: Rewriter | None = None,
    options: CompactionOptions | None = None,
    execute: bool = True,
    progress: Progress | None = None,
) -> list[TopicReport]:
    """Let retention take what is too old, and rewrite what is worth it.

    Parameters
    ----------
    warehouse : Warehouse
        Open for writing; to look only, any.
    topics : sequence of str, optional
        Default: all.
    rewriter : Rewriter, optional
        What works on the tasks; default: this process.
    options : CompactionOptions, optional
        Memory and commits.
    execute : bool
        ``False``: the reports say what would be done (but for what only the keys tell), and no permission to write
        is needed; who has it writes the object that tells the store's time, as ever, and nothing else.
    progress : callable, optional
        Told topic, bytes done, bytes in all.

    Returns
    -------
    list of TopicReport
        One for each topic that was begun and is still there.  What failed is in its `failures`; another run does it.

    Raises
    ------
    UnknownTopicOrPartitionError
        One of `topics` does not exist.
    InvalidRequestError
        `topics` is a single name.
    """
    if isinstance(topics, str):
        raise InvalidRequestError("topics is a list of names; put the name into one", topics=shown(topics))
    # By their folders: to list the topics fails where the log of one of them cannot be read.
    names = topic_names(warehouse.store.folders(TOPICS_FOLDER)) if topics is None else list(dict.fromkeys(topics))
    chosen = rewriter or rewriter_here(warehouse.context)
    chosen_options = options or CompactionOptions()
    runs = [_TopicRun(warehouse, name, chosen_options, progress) for name in names]
    if topics is not None:
        for run in runs:
            run.topic.settings()
    going = takewhile(lambda _: not chosen_options.stop(), runs)
    reports = [run.run(chosen if execute else None) for run in going]
    return [report for report in reports if report is not None]


class _TopicRun:
    """The compaction of one topic."""

    def __init__(self, warehouse: Warehouse, name: str, options: CompactionOptions, progress: Progress | None) -> None:
        self.topic: TopicLog = warehouse.topic_log(name)
        self._warehouse, self._options, self._progress = warehouse, options, progress
        self._counts = Counter[str]()
        self._failures: list[str] = []

    def run(self, rewriter: Rewriter | None) -> TopicReport | None:
        """Compact; without a rewriter: look what would be done.  ``None``: there is no such topic."""
        try:
            if rewriter is None:
                self._preview()
            else:
                self._compact(rewriter)
        except UnknownTopicOrPartitionError:
            # Deleted, by now or long ago, or never quite created.
            return None
        except (TxnTableError, OSError) as error:
            self._failures.append(f"{error.code} {error}" if isinstance(error, TxnTableError) else str(error))
        report = TopicReport(self.topic.name, **self._counts, failures=tuple(self._failures))
        if rewriter is None:
            return replace(report, written_segments=None, written_bytes=None, dropped_records=None)
        return report

    def _compact(self, rewriter: Rewriter) -> None:
        self.topic.catch_up()
        self._counts["expired_segments"] = expire_records(self.topic).segments
        # What a deletion of records has cut is not there for readers: it waits for no snapshot's sake.
        trim(self.topic, range(self.topic.settings().partitions))
        spec, work = self._plan(self.topic.context.clock.now_ms())
        self._take_away(spec)
        self._rewrite(spec, work, rewriter)

    def _preview(self) -> None:
        topic = self.topic
        now_ms = topic.context.clock.shown_ms()
        with topic.segments.lock, topic.public.lock:
            topic.settings()
            then, self._counts["expired_segments"] = _without_expired(topic, now_ms)
            spec, _ = self._plan(now_ms, then)
        self._counts["merged_segments"] = sum(len(task.sources) for task in spec.tasks)
        self._counts["read_bytes"] = spec.size
        self._counts["aborted_segments"], self._counts["settled_segments"] = len(spec.aborted), len(spec.settled)

    def _plan(self, now_ms: int, then: tuple[PartitionLogs, TableState] | None = None) -> tuple[TopicSpec, TopicWork]:
        """Decide on S as it is, or as it will be `then`."""
        topic = self.topic
        rules = PlanRules(self._warehouse.settings().snapshot_retention_ms, self._options.memory_bytes)
        with topic.segments.lock, topic.public.lock:
            if then is None:
                topic.settings()
            logs, table = then or (topic.segments.fold, topic.segments.table)
            settings = live_settings(logs)
            spec = plan_topic(logs, table, topic.public.ensure_fresh(), rules, now_ms)
        self._counts["young_segments"] = spec.young
        segment_bytes = config_number("segment.bytes", settings.config)
        plan = SegmentPlan(topic.segments.root, settings, None, now_ms)
        return spec, TopicWork(topic.context.store.spec, plan, segment_bytes)

    def _take_away(self, spec: TopicSpec) -> None:
        """Remove what was aborted, settle what stays: no file is touched.  And markers that nothing needs go."""
        parts = [(path, True) for path in spec.aborted] + [(path, False) for path in spec.settled]
        for start in range(0, max(len(parts), 1), _MOST_ROWS):
            part = parts[start : start + _MOST_ROWS]
            aborted = tuple(path for path, is_aborted in part if is_aborted)
            settled = tuple(path for path, is_aborted in part if not is_aborted)
            self.topic.rewrite(RewriteRequest(spec.topic_id, (), aborted, settled))
            self._counts["aborted_segments"] += len(aborted)
            self._counts["settled_segments"] += len(settled)

    def _rewrite(self, spec: TopicSpec, work: TopicWork, rewriter: Rewriter) -> None:
        """Register results as they come in: whoever works on several tasks at once goes on meanwhile."""
        done = bytes_waiting = sources_waiting = 0
        waiting: list[tuple[RewriteTask, RewriteResult]] = []
        clock = self.topic.context.clock
        began_ms = clock.now_ms()
        with closing(rewriter(work, spec.tasks)) as results:
            for task, result in zip(spec.tasks, results, strict=False):
                waiting.append((task, result))
                if result.failure is not None and not self._is_overtaken(task):
                    self._failures.append(result.failure)
                done, bytes_waiting = done + task.size, bytes_waiting + task.size
                sources_waiting += len(task.sources)
                if self._progress is not None:
                    self._progress(self.topic.name, done, spec.size)
                if self._options.stop():
                    break
                full = bytes_waiting >= self._options.commit_bytes or sources_waiting >= _MOST_ROWS
                if full or clock.now_ms() - began_ms >= _LONGEST_WAIT_MS:
                    self._register(spec.topic_id, waiting)
                    waiting, bytes_waiting, sources_waiting = [], 0, 0
                    began_ms = clock.now_ms()
        self._register(spec.topic_id, waiting)

    def _is_overtaken(self, task: RewriteTask) -> bool:
        """Return whether a task failed because others have taken its sources meanwhile: vacuum may have theirs."""
        with self.topic.segments.lock:
            files = self.topic.segments.refresh().files
            overtaken = any(source.path not in files for source in task.sources)
        self._counts["lost"] += overtaken
        return overtaken

    def _register(self, topic_id: str, worked: Sequence[tuple[RewriteTask, RewriteResult]]) -> None:
        sizes = {source.path: source.size for task, _ in worked for source in task.sources}
        lost: set[int] = set()
        all_held: set[Rewrite] = set()
        for part in _parts([rewrite for _, result in worked for rewrite in result.rewrites]):
            asked = tuple(rewrite for rewrite in part if rewrite.partition not in lost)
            held = set(self.topic.rewrite(RewriteRequest(topic_id, asked)))
            all_held |= held
            # What comes later in a partition rests on what came before: a tombstone on the values that it ended.
            lost.update(rewrite.partition for rewrite in part if rewrite not in held)
            self._count_lost([rewrite for rewrite in part if rewrite not in held])
            for rewrite in held:
                self._counts["merged_segments"] += len(rewrite.sources)
                self._counts["written_segments"] += len(rewrite.outputs)
                self._counts["read_bytes"] += sum(sizes[path] for path in rewrite.sources)
                self._counts["written_bytes"] += sum(output.segment.size for output in rewrite.outputs)
        self._counts["dropped_records"] += sum(
            result.dropped_records for _, result in worked if all_held.issuperset(result.rewrites)
        )

    def _count_lost(self, rewrites: Sequence[Rewrite]) -> None:
        oldest_ms = self.topic.context.clock.now_ms() - LONGEST_UPLOAD_MS
        late = sum(any(output.segment.uploaded_at_ms < oldest_ms for output in one.outputs) for one in rewrites)
        if late:
            self._failures.append(
                f"{late} rewrites took longer than {LONGEST_UPLOAD_MS // 3_600_000} hours: work on more cores"
            )
        self._counts["lost"] += len(rewrites) - late


def _without_expired(topic: TopicLog, now_ms: int) -> tuple[tuple[PartitionLogs, TableState], int]:
    """Return S as it will be when retention has taken what is too old, and how many segments that takes."""
    logs, table, public = topic.segments.fold.overlay(), topic.segments.table.overlay(), topic.public.refresh()
    expired = 0
    while (decision := decide_retention(logs, table, public, now_ms)).actions:
        info = CommitInfo("", table.commit_id, table.timestamp_ms, "RETENTION", table.log or "")
        logs.apply(Commit(table.next_version, info, decision.actions), table)
        table.take(decision.actions)
        expired += len(decision.segments)
    return (logs, table), expired


def _parts(rewrites: Sequence[Rewrite]) -> Iterator[list[Rewrite]]:
    """Yield the rewrites, in order, by as many as one commit bears."""
    part: list[Rewrite] = []
    rows = 0
    for rewrite in rewrites:
        size = len(rewrite.sources) + len(rewrite.outputs)
        if part and rows + size > 2 * _MOST_ROWS:
            yield part
            part, rows = [], 0
        part.append(rewrite)
        rows += size
    if part:
        yield part
