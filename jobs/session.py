"""The Spark session of a job: started quietly, stopped at the end, its process gone.

Owns where the JVM writes what it has to say (a log file, named when the start fails).  Must not
know what the session is for.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txntable.cli.output import note
from txntable.errors import MissingDependencyError
from txntable.spark.session import build_session

STANDARD_ERROR = 2


@contextmanager
def spark_session(application: str) -> Iterator[SparkSession]:
    """Give a Spark session with Delta to the block.

    Parameters
    ----------
    application : str
        Its name in Spark.

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
        yield running.newSession()
        return
    note("starting Spark")
    spark = _start(application)
    try:
        yield spark
    finally:
        spark.stop()


def _start(application: str) -> SparkSession:
    """Start the JVM with its standard error in a file: it and the resolver of its jars are talkative."""
    handle, name = tempfile.mkstemp(prefix="txntable-spark-", suffix=".log")
    log = Path(name)
    try:
        with _standard_error_into(handle):
            spark = build_session(application)
    except PySparkException as error:
        raise MissingDependencyError(
            "spark did not start; the first start needs the network for Delta's jars: see the log",
            log=log,
            cause=str(error).splitlines()[0],
        ) from error
    except BaseException:
        log.unlink()
        raise
    finally:
        os.close(handle)
    # The JVM keeps writing to the file that has no name any more; it goes with the process.
    with suppress(OSError):
        log.unlink()
    return spark


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
