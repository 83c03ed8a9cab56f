"""Working on rewrite tasks: the same code in this process and in another's, such as a Spark executor's.

The rules are those of PROTOCOL.md §5.8.

Owns what a worker needs to know of a topic, and the order of results.  Whoever distributes tasks
hands in a :data:`Rewriter`; :func:`rewriter_here` is the one of this process.  Must not know of Spark,
nor register anything: what a worker leaves behind is named by no log.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from txntable.compaction.latest import LatestRecords
from txntable.compaction.spec import RewriteResult, RewriteTask
from txntable.errors import DamagedDataError
from txntable.log.log_view import LogContext
from txntable.partition.rewriting import Rewrite
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.storage.object_store import ObjectStore, StoreSpec


@dataclass(frozen=True, slots=True)
class TopicWork:
    """What all tasks of a topic have in common; it travels to other processes.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's.
    segments : SegmentPlan
        What new segments are like.
    segment_bytes : int
        Size of a file at which the next one is begun.
    """

    store: StoreSpec
    segments: SegmentPlan
    segment_bytes: int


# Of the tasks, in their order, the results: in their order too, as they come in.
Rewriter = Callable[[TopicWork, Sequence[RewriteTask]], Generator[RewriteResult, None, None]]


def rewriter_here(context: LogContext) -> Rewriter:
    """Return what works on tasks in this process, one after the other."""

    def rewrite(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        for task in tasks:
            yield run_task(context, work, task)

    return rewrite


def run_task(context: LogContext, work: TopicWork, task: RewriteTask) -> RewriteResult:
    """Write the new segments of one task; one whose sources cannot be read fails without the others.

    Parameters
    ----------
    context : LogContext
        Of the process that works on it: its store, its clock, and names for the new segments.
    work : TopicWork
        The topic.
    task : RewriteTask
        What to rewrite.

    Raises
    ------
    StoreUnavailableError
        Run the task again.
    """
    store = context.store
    # Each task begins its uploads now: those of a long run must not be as old as the run.
    work = replace(work, segments=replace(work.segments, uploaded_at_ms=context.clock.now_ms()))
    plan = RewritePlan(work.segments, work.segment_bytes, context.environment.new_id)
    try:
        if task.by_key is None:
            return _merge(store, plan, task)
        return _clean(store, plan, task, LatestRecords(store, work.segments, task))
    except DamagedDataError as error:
        # Raised it would end the whole run, and every later one at the same place.
        return RewriteResult(failure=f"{error.code} {error}")


def _merge(store: ObjectStore, plan: RewritePlan, task: RewriteTask) -> RewriteResult:
    outputs = tuple(rewrite_segments(store, plan, task.sources))
    rewrite = Rewrite(task.partition, tuple(source.path for source in task.sources), outputs)
    return RewriteResult((rewrite,), sum(source.records or 0 for source in task.sources))


def _clean(store: ObjectStore, plan: RewritePlan, task: RewriteTask, latest: LatestRecords) -> RewriteResult:
    rewrites = []
    latest.find()
    highest = max((source.commit or 0 for source in task.sources), default=0)
    for group in latest.groups(plan.segment_bytes):
        outputs = tuple(rewrite_segments(store, plan, group, latest.choose)) if group else ()
        paths = tuple(source.path for source in group)
        rewrites.append(Rewrite(task.partition, paths, outputs, left_out_for=highest, drops=True))
    last = Rewrite(task.partition, (), (), by_key=task.by_key.through if task.by_key else None)
    return RewriteResult((*rewrites, last), latest.read_records, latest.dropped_records)
