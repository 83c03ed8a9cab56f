"""Making a Spark session that can read and write warehouses.

Owns the settings without which Delta and Python workers do not work; everything else is the
user's.  Only for programs that make their own session: the library takes any session with Delta.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from txntable.errors import MissingDependencyError
from txntable.spark import s3a
from txntable.storage.object_store import StoreSpec

try:
    from pyspark.sql import SparkSession
except ImportError as error:
    raise MissingDependencyError(
        "spark is not installed; pip install 'txntable[spark]', or run inside a runtime that brings it",
        missing=error.name,
    ) from error
try:
    from delta.pip_utils import configure_spark_with_delta_pip
except ImportError:
    # A managed runtime brings Delta's jars, and not always its Python package: that only fetches the jars.
    configure_spark_with_delta_pip = None  # type: ignore[assignment]

LEAST_JAVA = 17
_OF_HADOOP = "spark.hadoop."
_JOINTS = {
    "spark.jars.packages": ",",
    "spark.jars.excludes": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
# Spark has these; Delta's own metadata would fetch others beside them: 72 MB, and another Hadoop.
_SPARK_HAS = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.parquet:parquet-hadoop",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-api",
    "org.slf4j:slf4j-api",
    "org.roaringbitmap:RoaringBitmap",
    "com.fasterxml.jackson.core:jackson-databind",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8",
)
_SECRET_NAMES = "secret|password|token|access[._]?key|account[._]?key|customer[._]key|encryption[.]key|sas[._]key"
SETTINGS = {
    "spark.jars.excludes": ",".join((*_SPARK_HAS, *s3a.EXCLUDES)),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta spreads a table's file list over 50 tasks otherwise, more than most topics have files.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark's own does not know how Azure, Google and our storage options call their keys.
    "spark.redaction.regex": f"(?i){_SECRET_NAMES}|service[._]account",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""For whoever builds a session without :func:`build_session`, such as Spark Connect's server."""


def build_session(
    application: str,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log_level: str = "ERROR",
    store: StoreSpec | None = None,
) -> SparkSession:
    """Return a session with Delta, making it if there is none.

    Parameters
    ----------
    application : str
        The name that Spark shows.
    master : str, optional
        ``local[2]`` and the like; by default whatever spark-submit said, else ``local[*]``.
    settings : Mapping[str, str], optional
        Spark's, on top of what is needed.  The session's time zone is left to the user.
    log_level : str
        Of Spark's log.
    store : StoreSpec, optional
        Of a warehouse (``warehouse.store.spec``): in S3, Spark then reads and writes its bucket with the same storage
        options.  Of more buckets: :func:`txntable.spark.s3a.s3a_settings`, in `settings`.

    Raises
    ------
    MissingDependencyError
        There is no Java that Spark runs on, Delta is missing, or it is not known how this Spark reads S3.
    """
    require_java()
    # Spark would take another python3 from the PATH for its workers, without our libraries.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(application)
    if master is not None:
        builder = builder.master(master)
    chosen = _together(SETTINGS, {} if store is None else s3a.s3a_settings(store.url, store.options), settings or {})
    # The JVM's command line has the others, and who else is on this machine sees it.
    secrets = {name: chosen.pop(name) for name in list(chosen) if s3a.is_secret(name)}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    extra = [package for package in chosen.get("spark.jars.packages", "").split(",") if package]
    session: SparkSession = _with_delta(builder, extra).getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    add_hadoop_settings(session, secrets)
    return session


def add_hadoop_settings(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Give a session that runs the settings of Hadoop among some of Spark's; one that has a value keeps it.

    Parameters
    ----------
    session : SparkSession
        Classic; the settings are its context's, and so of all its sessions.
    settings : Mapping[str, str]
        As of :func:`txntable.spark.s3a.s3a_settings`: what begins with ``spark.hadoop.`` counts.
    """
    hadoop = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  PySpark has no public name for it
    for name, value in settings.items():
        if name.startswith(_OF_HADOOP):
            hadoop.setIfUnset(name.removeprefix(_OF_HADOOP), value)


def _with_delta(builder: SparkSession.Builder, packages: list[str]) -> SparkSession.Builder:
    """Let the JVM fetch Delta's jars and others; one that runs already has what it was started with."""
    if configure_spark_with_delta_pip is not None:
        configured: SparkSession.Builder = configure_spark_with_delta_pip(builder, extra_packages=packages)
        return configured
    if not s3a.has_jvm():
        raise MissingDependencyError("delta is not installed; pip install 'txntable[spark]'", missing="delta")
    return builder


def _together(*several: Mapping[str, str]) -> dict[str, str]:
    """Return settings of which the later ones win, and lists are joined."""
    found: dict[str, str] = {}
    for settings in several:
        for name, value in settings.items():
            joint = _JOINTS.get(name)
            before = found.get(name) if joint else None
            found[name] = f"{before}{joint}{value}" if before and value else value
    return found


def require_java() -> None:
    """Refuse to go on without a Java that Spark runs on, looking where Spark looks.

    Raises
    ------
    MissingDependencyError
        There is none, or it is too old; the message says how to get one.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = None if java is None else _java_version(java)
    if found is None or found < LEAST_JAVA:
        raise MissingDependencyError(
            f"spark needs java {LEAST_JAVA} or later; install one (debian: apt-get install openjdk-17-jre-headless, "
            "macos: brew install openjdk@17, conda: conda install openjdk=17) or set JAVA_HOME to it",
            found=found or "none",
            java=java,
        )


def _java_version(java: str) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    matched = _JAVA_VERSION.search(answer.stderr + answer.stdout)
    return None if matched is None else int(matched[1])
