"""A job of Spark that writes a DataFrame's files by Spark's own Parquet writer, each where it stays.

Owns the calls of the JVM.  Delta's copy of the writer is called, with Delta's commit protocol, which puts each file
under a name of its own and tells which attempts count: what retried, speculative and failed tasks leave are files that
nobody is told of.  No Delta table is made or committed to.  The job is one of Spark's SQL executions, so that its page,
listeners, and whoever cancels by a tag of the session see it as any other write.  Must not know what a segment is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started

from txntable.runtime.environment import SystemEnvironment
from txntable.spark.classic_session import PARQUET, java_class, java_object
from txntable.spark.writing.spark_file_settings import PARQUET_PREFIX, SESSION_SETTINGS
from txntable.spark.writing.spark_session_facts import (
    COMMIT_PROTOCOL,
    DATASET,
    EXECUTION,
    FILE_FORMAT_WRITER,
    OUTPUT,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PY4J_LOG = "py4j.clientserver"
_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True, slots=True)
class FileJob:
    """How files are written.

    Attributes
    ----------
    folder : str
        Where to, as Spark's file systems know it.
    description : str
        What Spark shows.
    hadoop : Mapping[str, str]
        Settings of Hadoop and Parquet; all others of Parquet are taken away.
    options : Mapping[str, str]
        Of Spark's writer.
    """

    folder: str
    description: str
    hadoop: Mapping[str, str]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file of an attempt that counts."""

    name: str
    size: int


class PlannedFrame:
    """A DataFrame as a job will run it, in a session of our own.

    Parameters
    ----------
    dataframe : DataFrame
        Of a classic session.
    """

    def __init__(self, dataframe: DataFrame) -> None:
        self._spark = dataframe.sparkSession
        self._jvm: Any = self._spark._jvm  # noqa: SLF001  PySpark has no public name for it
        # A copy with the user's settings and tags: what is set on it stays here.
        self._session: Any = self._spark._jsparkSession.cloneSession()  # noqa: SLF001  the same
        for name, value in SESSION_SETTINGS.items():
            self._session.conf().set(name, value)
        logical = dataframe._jdf.logicalPlan()  # noqa: SLF001  the same
        self._execution: Any = java_object(self._jvm, DATASET).ofRows(self._session, logical).queryExecution()

    def guessed_bytes(self) -> int:
        """Return how large Spark takes the rows for, before they are written; what it does not know is very large."""
        return int(str(self._execution.optimizedPlan().stats().sizeInBytes()))

    def write(self, job: FileJob) -> list[MadeFile]:
        """Run the job; return the files that count, in no order.

        Raises
        ------
        PySparkException, Py4JError
            The job failed, or was cancelled: what it left are files that nobody is told of.
        """
        committer = java_class(self._jvm, COMMIT_PROTOCOL)("delta", job.folder, self._none(), self._none())
        body = _Body(lambda: self._write(committer, job))
        gateway = self._spark.sparkContext._gateway  # noqa: SLF001  PySpark has no public name for it
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        with _described(self._spark, job.description), _cancelled_together(self._spark), _told_once(body):
            try:
                java_object(self._jvm, EXECUTION).withNewExecutionId(
                    self._execution, self._jvm.scala.Option.apply(job.description), body
                )
            except (PySparkException, Py4JError) as error:
                # What the job said, not that a call of ours has failed.
                raise body.error or error from None
        statuses = committer.addedStatuses()
        found = (statuses.apply(index) for index in range(statuses.size()))
        return [MadeFile(unquote(status.path()), int(status.size())) for status in found]

    def _write(self, committer: Any, job: FileJob) -> None:
        plan = self._execution.executedPlan()
        columns = self._sequence([_nullable(column) for column in _each(plan.output())])
        utils = self._jvm.PythonUtils
        java_class(self._jvm, FILE_FORMAT_WRITER).write(
            self._session,
            plan,
            java_class(self._jvm, PARQUET)(),
            committer,
            java_class(self._jvm, OUTPUT)(job.folder, utils.toScalaMap({}), columns),
            self._hadoop(job.hadoop),
            self._sequence([]),
            self._none(),
            self._sequence([]),
            utils.toScalaMap(dict(job.options)),
            0,
        )

    def _hadoop(self, wanted: Mapping[str, str]) -> Any:
        found = self._session.sessionState().newHadoopConf()
        for name in list(found.getPropsWithPrefix(PARQUET_PREFIX)):
            found.unset(f"{PARQUET_PREFIX}{name}")
        for name, value in wanted.items():
            found.set(name, value)
        return found

    def _sequence(self, values: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(values))

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()


class _Body:
    """What runs inside of an execution, as a function of Scala."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self.error: BaseException | None = None

    def apply(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.error = error
            raise

    class Java:
        """Which interface of the JVM this is."""

        implements = ("scala.Function0",)


@contextmanager
def _told_once(body: _Body) -> Iterator[None]:
    """Keep py4j from logging what the caller is told anyway."""

    def is_news(record: logging.LogRecord) -> bool:
        return body.error is None or record.exc_info is None or record.exc_info[1] is not body.error

    log = logging.getLogger(_PY4J_LOG)
    log.addFilter(is_news)
    try:
        yield
    finally:
        log.removeFilter(is_news)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _nullable(column: Any) -> Any:
    """Return a column of a plan as segments have it: null allowed at every depth."""
    return column.withDataType(column.dataType().asNullable()).withNullability(True)


@contextmanager
def _described(spark: SparkSession, description: str) -> Iterator[None]:
    """Let Spark show a description of a block's jobs, where the user has set none."""
    context = spark.sparkContext
    if context.getLocalProperty(_DESCRIPTION) is not None:
        yield
        return
    context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        with suppress(PySparkException, Py4JError):
            # Null takes it away, of which PySpark's type does not know.
            context._jsc.setLocalProperty(_DESCRIPTION, None)  # noqa: SLF001


@contextmanager
def _cancelled_together(spark: SparkSession) -> Iterator[None]:
    """Let no job of a block go on after it, and all of them end when the user's session is interrupted."""
    context = spark.sparkContext
    tag = f"txntable-{SystemEnvironment().new_id()}"
    tags = (tag, spark._jsparkSession.sessionJobTag())  # noqa: SLF001  PySpark has no public name for it
    for each in tags:
        context.addJobTag(each)
    try:
        yield
    except BaseException:
        with suppress(PySparkException, Py4JError):
            context.cancelJobsWithTag(tag)
        raise
    finally:
        with suppress(PySparkException, Py4JError):
            for each in tags:
                context.removeJobTag(each)
