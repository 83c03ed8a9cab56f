"""The Spark session that compaction's tasks run in, started when the first topic wants it.

Owns that signals still end the job well once a session is there.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack

from txntable.compaction.rewriter import Rewriter
from txntable.compaction.spark_rewriter import spark_rewriter
from txntable.jobs.session import spark_session


def start_rewriter(sessions: ExitStack, parallelism: int) -> Rewriter:
    """Start Spark, and return what works on tasks there.

    Parameters
    ----------
    sessions : ExitStack
        Ends the session.
    parallelism : int
        The most Spark tasks at once.

    Raises
    ------
    MissingDependencyError
        Java is missing, or the JVM does not start; the message says what to do.
    """
    before = signal.getsignal(signal.SIGINT)
    spark = sessions.enter_context(spark_session("txntable compact"))
    # A new session takes Ctrl-C to itself, and cancels its jobs: whoever asks for a stop here has it otherwise.
    signal.signal(signal.SIGINT, before)
    return spark_rewriter(spark, parallelism)
