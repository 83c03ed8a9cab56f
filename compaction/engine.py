"""What a compaction's tasks run on: Spark where there is much to rewrite, else this process.

Owns the choice, topic by topic, and that Spark is not even looked for before it is wanted.  Must not know of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import StrEnum

from txntable.compaction.rewriter import Rewriter, TopicWork
from txntable.compaction.spec import RewriteResult, RewriteTask
from txntable.errors import MissingDependencyError

# One core of this process takes minutes for more: Spark has started by then.
_WORTH_SPARK_BYTES = 2 * 1024**3

Say = Callable[[str], object]


class Engine(StrEnum):
    """What works on the tasks."""

    AUTO = "auto"
    SPARK = "spark"
    HERE = "here"


def chosen_rewriter(engine: Engine, here: Rewriter, on_spark: Callable[[], Rewriter], say: Say) -> Rewriter:
    """Return what works on the tasks of each topic.

    Parameters
    ----------
    engine : Engine
        ``AUTO``: Spark for topics with much to rewrite, unless Spark is missing; this process for others.
    here : Rewriter
        Of this process.
    on_spark : callable
        Returns Spark's; called when there is work for it.
    say : callable
        Is told for each topic with work what was chosen.
    """

    def choose(work: TopicWork, tasks: Sequence[RewriteTask]) -> Rewriter:
        size = sum(task.size for task in tasks)
        told = f"{work.segments.settings.name}: {size / 1024**3:.2f} GiB to rewrite"
        # One task cannot be shared out.
        if engine is Engine.SPARK or (engine is Engine.AUTO and size >= _WORTH_SPARK_BYTES and len(tasks) > 1):
            try:
                rewriter = on_spark()
            except MissingDependencyError as error:
                if engine is Engine.SPARK:
                    raise
                told = f"{told}; {error}"
            else:
                say(f"{told}, on Spark")
                return rewriter
        say(f"{told}, in this process")
        return here

    def rewrite(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        if tasks:
            yield from choose(work, tasks)(work, tasks)

    return rewrite
