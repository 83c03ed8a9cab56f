"""What a Spark session tells of itself before a write: versions, classes, what the user has set.

Owns how the JVM is asked.  PySpark has no public names for most of it: whatever is not there is a fact like any other,
and never an error.  Must not know what follows from the facts (:mod:`txntable.spark.writing.writer_choice`).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from txntable.format.enum_option import member_of
from txntable.format.layout import WAREHOUSE_FILE
from txntable.spark.scan.reader import spark_url
from txntable.spark.writing.spark_file_settings import ENCRYPTION_SETTING
from txntable.spark.writing.store_cache import store_key
from txntable.spark.writing.writer_choice import SWITCH, SessionFacts, Wish
from txntable.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAM = "sql.streaming.queryId"
FILE_FORMAT_WRITER = "org.apache.spark.sql.delta.files.DeltaFileFormatWriter"
COMMIT_PROTOCOL = "org.apache.spark.sql.delta.files.DelayedCommitProtocol"
PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
OUTPUT = "org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec"
EXECUTION = "org.apache.spark.sql.execution.SQLExecution$"
DATASET = "org.apache.spark.sql.classic.Dataset$"
_CLASSES = (FILE_FORMAT_WRITER, COMMIT_PROTOCOL, PARQUET, OUTPUT, EXECUTION, DATASET)
_DELTA = "io.delta.package$"
_UNTOLD = (Py4JError, PySparkException, TypeError, AttributeError)
# By application and store: whether Spark's file systems read what ours does.
_reached: dict[tuple[str, str], bool] = {}
_asking = threading.Lock()


def session_facts(spark: SparkSession) -> SessionFacts:
    """Return what a session tells."""
    if not _is_classic(spark):
        return SessionFacts(is_classic=False)
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  the same
    return SessionFacts(
        is_classic=True,
        wish=member_of(Wish, str(spark.conf.get(SWITCH, Wish.AUTO.value)), SWITCH),
        versions=(spark.version, _delta_version(jvm)),
        has_classes=all(isinstance(java_class(jvm, name), JavaClass) for name in _CLASSES),
        encrypts=bool(hadoop.get(ENCRYPTION_SETTING) or spark.conf.get(ENCRYPTION_SETTING, None)),
        in_micro_batch=spark.sparkContext.getLocalProperty(_STREAM) is not None,
    )


def _is_classic(spark: SparkSession) -> bool:
    """Return whether each of our threads has one of the JVM, in which Spark's settings of the call are kept."""
    if "connect" in type(spark).__module__:
        return False
    return isinstance(spark.sparkContext._gateway, ClientServer)  # noqa: SLF001  PySpark has no public name for it


def java_class(jvm: Any, name: str) -> Any:
    """Return a class of the JVM by its name, or a package where there is no such class."""
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def java_object(jvm: Any, name: str) -> Any:
    """Return the object of Scala that has a class of this name."""
    return getattr(java_class(jvm, name), "MODULE$")


def _delta_version(jvm: Any) -> str:
    with suppress(*_UNTOLD):
        return str(java_object(jvm, _DELTA).VERSION())
    return ""


def is_reached(spark: SparkSession, store: ObjectStore) -> bool:
    """Return whether Spark's file systems read the warehouse that a store is, found out once.

    Parameters
    ----------
    spark : SparkSession
        Classic.
    store : ObjectStore
        The warehouse's.
    """
    if not store.is_remote:
        return True
    key = (spark.sparkContext.applicationId, store_key(store.spec))
    with _asking:
        if key not in _reached:
            _reached[key] = _reads_the_same(spark, store)
        return _reached[key]


def _reads_the_same(spark: SparkSession, store: ObjectStore) -> bool:
    ours = store.get(WAREHOUSE_FILE)
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it
    with suppress(*_UNTOLD):
        path = jvm.org.apache.hadoop.fs.Path(f"{spark_url(store.spec.url)}/{WAREHOUSE_FILE}")
        settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  the same
        file = path.getFileSystem(settings).open(path)
        try:
            return ours is not None and bytes(file.readAllBytes()) == ours.data
        finally:
            file.close()
    return False
