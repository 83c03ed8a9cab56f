"""Working on rewrite tasks on Spark's executors: what heavy compactions run on.

Owns how tasks become Spark's: a large one is one of Spark's, small neighbours share one.  The results are those of
:func:`txntable.compaction.rewriter.rewriter_here`, whose code runs there.  A task that is lost or runs twice leaves
files that no log names: only what the driver has collected is registered.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from txntable.compaction.rewriter import Rewriter, TopicWork, run_task
from txntable.compaction.spec import RewriteResult, RewriteTask
from txntable.log.log_view import LogContext
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.writing.distributed_tasks import TASKS_AT_ONCE, distribute
from txntable.spark.writing.store_cache import opened
from txntable.storage.store_clock import StoreClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Less is not worth a Spark task of its own.
_SHARE_BYTES = 64 * 1024 * 1024
# Of small ones: each source is a request or two, whatever its size.
_SHARE_SOURCES = 1_000


def spark_rewriter(spark: SparkSession, at_once: int = TASKS_AT_ONCE) -> Rewriter:
    """Return what works on tasks on Spark's executors; these have this package installed.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    at_once : int
        The most Spark tasks under way.  Each takes the memory of a row group and a batch (some 200 MiB) in its Python
        worker, a compaction by key that of its keys, too.
    """

    def rewrite(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        for results in distribute(spark, partial(_run_share, work), list(shares(tasks)), at_once):
            yield from results

    return rewrite


def _run_share(work: TopicWork, share: Sequence[RewriteTask]) -> list[RewriteResult]:
    store, environment = opened(work.store), SystemEnvironment()
    context = LogContext(store, environment, StoreClock(store, environment))
    return [run_task(context, work, task) for task in share]


def shares(tasks: Sequence[RewriteTask]) -> Iterator[list[RewriteTask]]:
    """Yield the tasks, in order, by as many as one Spark task works on."""
    share: list[RewriteTask] = []
    size = sources = 0
    for task in tasks:
        more = len(task.sources)
        if share and (size + task.size > _SHARE_BYTES or sources + more > _SHARE_SOURCES):
            yield share
            share, size, sources = [], 0, 0
        share.append(task)
        size, sources = size + task.size, sources + more
    if share:
        yield share
