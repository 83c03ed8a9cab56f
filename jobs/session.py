"""The Spark session of a job: started quietly, stopped at the end, its process gone.

Owns where the JVM writes what it has to say (a log file, named when the start fails), and that the
JVM ends before the job does: a job leaves no process behind, whatever interrupts it.  Spark is told
how to reach the warehouse's store.  Must not know what the session is for.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from txntable.cli.interruption import SIGNALS, Terminated
from txntable.cli.progress import waiting
from txntable.errors import MissingDependencyError
from txntable.spark.s3a import s3a_settings
from txntable.spark.session import add_hadoop_settings, build_session
from txntable.storage.object_store import StoreSpec

STANDARD_ERROR = 2
SECONDS_TO_END = 10
"""What the JVM gets to delete its temporary files and end by itself."""


@contextmanager
def spark_session(
    application: str, store: StoreSpec | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a Spark session with Delta to the block.

    Parameters
    ----------
    application : str
        Its name in Spark.
    store : StoreSpec, optional
        The warehouse's, where Spark itself reads it.
    settings : Mapping[str, str], optional
        Spark's, of a session that is started; one that runs has its own.

    Yields
    ------
    SparkSession
        With settings of its own.  In a process that has a session already, that one's context is used and left
        running.

    Raises
    ------
    MissingDependencyError
        Java or Spark is missing, or the JVM does not start; the message says what to do.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        if store is not None:
            add_hadoop_settings(running, s3a_settings(store.url, store.options))
        try:
            with _quiet_libraries():
                yield running.newSession()
        finally:
            _activate(running)
        return
    with waiting("starting Spark (the first time its jars are fetched: 26 MB)"):
        spark = _start(application, store, settings)
    try:
        with _quiet_libraries():
            yield spark
    finally:
        spark.stop()
        _end_jvm()


def _activate(session: SparkSession) -> None:
    """Let a session be this thread's again: Spark looks for data sources, among others, in the active one."""
    # What PySpark itself does where it makes a DataFrame; it has no public name for it.
    SparkSession._activeSession = session  # noqa: SLF001
    jvm: Any = session._jvm  # noqa: SLF001
    jvm.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001


def _start(application: str, store: StoreSpec | None, settings: Mapping[str, str] | None) -> SparkSession:
    """Start the JVM with its standard error in a file: it and the resolver of its jars are talkative."""
    handle, name = tempfile.mkstemp(prefix="txntable-spark-", suffix=".log")
    log = Path(name)
    try:
        with _interrupts_later(), _standard_error_into(handle):
            spark = build_session(application, store=store, settings=settings)
    except PySparkException as error:
        raise MissingDependencyError(
            "spark did not start; the first start fetches jars from the network: see the log",
            log=log,
            cause=str(error).splitlines()[0],
        ) from error
    except BaseException:
        _end_jvm()
        log.unlink()
        raise
    finally:
        os.close(handle)
    # The JVM keeps writing to the file that has no name any more; it goes with the process.
    with suppress(OSError):
        log.unlink()
    return spark


def _end_jvm() -> None:
    """End the JVM of this process, if there is one, and wait until it is gone."""
    # PySpark has no public name for the process it started, and by itself only ends it after this one.
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return
    process = gateway.proc
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Whoever wants a session after this one gets a JVM of its own.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep PySpark and py4j from logging what they raise all the same: a refused query, a Ctrl-C."""

    def is_not_py4js(record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname

    root, refusals = logging.getLogger(), PySparkLogger.getLogger("SQLQueryContextLogger")
    # py4j logs with the root logger itself; a filter here sees nothing of what other loggers hand up.
    root.addFilter(is_not_py4js)
    level = refusals.level
    refusals.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root.removeFilter(is_not_py4js)
        refusals.setLevel(level)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Keep the first Ctrl-C or SIGTERM until the block ends; a second one is not kept.

    A JVM whose Python goes away while it says hello never ends: nobody knows its process yet, and it
    waits for connections without the thread that would see its standard input close.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        kept.append(number)
        if len(kept) > 1:
            raise KeyboardInterrupt

    # One that is ignored, or ends the process without Python's doing, stays so.
    taken = [number for number in SIGNALS if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, keep) for number in taken}
    try:
        yield
    finally:
        for number, earlier in before.items():
            # The session brings a handler of its own for Ctrl-C, which cancels its jobs: that one stays.
            if signal.getsignal(number) is keep:
                signal.signal(number, earlier)
    if kept:
        raise Terminated if kept[0] == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def _standard_error_into(handle: int) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(STANDARD_ERROR)
    os.dup2(handle, STANDARD_ERROR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
