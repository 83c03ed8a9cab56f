"""Running a function on many values, each in a Spark task of its own; results in order, as they come in.

Owns what travels: the function and the value to an executor, the result or an error of ours back.  Each value is a
job with one task: so the first results are there while later tasks run, and Spark keeps its cores busy by itself.
What retried, speculative and cancelled tasks leave behind is the function's to make harmless.  Works over Spark
Connect: nothing here touches the JVM.  Must not know what the function does.
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txntable.errors import RetriableError, TxnTableError
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.writing.python_worker import settle_worker

Task = TypeVar("Task")
Result = TypeVar("Result")

TASKS_AT_ONCE = 64
"""As many cores as are used at most, by default: each costs the driver a thread."""
_TRIES = 3
_RESULT_DDL = "result binary"
# How long a job may take to hear that nobody wants it, before it is told again.
_SECONDS_TO_HEAR = 1
_LONGEST_CAUSE = 500
_NO_CAUSE = ("at ", "An error occurred while calling")
# Its last line is the first that is not indented.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(?P<told>\S.*)")


def distribute(
    spark: SparkSession, work: Callable[[Task], Result], tasks: Sequence[Task], at_once: int = TASKS_AT_ONCE
) -> Generator[Result, None, None]:
    """Yield what a function makes of each task, in their order.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    work : callable
        Task -> result, both of which pickle, as the function itself.  It runs on executors, for a task perhaps
        several times, also at the same time.  An error of ours that it raises reaches the caller; where the error
        says "call again", when that did not help.
    tasks : sequence
        What is to be done.
    at_once : int
        The most Spark tasks under way.

    Yields
    ------
    object
        The next result; later ones may wait already.  When the caller stops early, or a task failed, what is under
        way is cancelled.

    Raises
    ------
    TxnTableError
        Of a task.
    RetriableError
        Spark gave a task up; the message says why.
    """
    jobs = _Jobs(spark)
    with ThreadPoolExecutor(at_once, "txntable-task", jobs.enter_thread) as threads:
        futures = [threads.submit(_result, jobs, work, task) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            jobs.cancel(futures)


class _Jobs:
    """The jobs of one distribution, which are cancelled together, whatever else the user's session does.

    A classic session's tags are seen by the thread only that has set them: there, the jobs get a session of their own.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._tag = f"txntable-{SystemEnvironment().new_id()}"
        self._is_ours = hasattr(spark, "newSession")
        self.session = spark.newSession() if self._is_ours else spark
        self._turn = threading.Lock()

    def enter_thread(self) -> None:
        self.session.addTag(self._tag)

    def run(self, work: Callable[[Task], Result], task: Task) -> Result | TxnTableError:
        try:
            # One after the other, so that Spark gets them in this order, and runs them so.
            with self._turn:
                job = self.session.range(0, 1, 1, 1).mapInArrow(_on_executor(work, task), _RESULT_DDL)
            (row,) = job.collect()
        except (PySparkException, Py4JError) as error:
            raise RetriableError("spark gave a task up; see its log, then run it again", cause=_cause(error)) from error
        answer: Result | TxnTableError = pickle.loads(row["result"])
        return answer

    def cancel(self, futures: Sequence[Future[Any]]) -> None:
        """Return when none of the futures is under way."""
        running = [future for future in futures if not future.cancel()]
        # Again and again: a job that is about to begin hears nothing.
        while wait(running, 0).not_done:
            if self._is_ours:
                self.session.interruptAll()
            else:
                self.session.interruptTag(self._tag)
            wait(running, _SECONDS_TO_HEAR)


def _result(jobs: _Jobs, work: Callable[[Task], Result], task: Task) -> Result:
    """Run a job with one task; again where that may help, for Spark itself tries nothing twice where it is local."""
    tries = 0
    while True:
        tries += 1
        answer = jobs.run(work, task)
        if not isinstance(answer, TxnTableError):
            return answer
        if not answer.retriable or tries == _TRIES:
            raise answer


def _on_executor(work: Callable[[Task], Result], task: Task) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for _ in batches:
            yield pa.record_batch({"result": pa.array([_packed(work, task)], pa.binary())})

    return run


def _packed(work: Callable[[Task], object], task: Task) -> bytes:
    """Return a result, or an error of ours: raised, it would reach the user as text of two languages."""
    try:
        return pickle.dumps(work(task))
    except TxnTableError as error:
        facts = {name: str(value) for name, value in error.facts.items()}
        return pickle.dumps(type(error)(error.message, **facts))


def _cause(error: Exception) -> str:
    """Return what a person needs of an error of Spark's: the last line of Python's traceback, or Java's message."""
    text = str(error)
    python = _TRACEBACK.search(text)
    if python is not None:
        return python["told"][:_LONGEST_CAUSE]
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith(_NO_CAUSE)]
    return lines[0][:_LONGEST_CAUSE] if lines else type(error).__name__
