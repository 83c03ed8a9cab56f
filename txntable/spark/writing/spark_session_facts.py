"""What a Spark session tells of itself before a write: versions, classes, what the user has set.

Owns how the JVM is asked.  PySpark has no public names for most of it: whatever is not there is a fact like any other,
and never an error.  Must not know what follows from the facts (:mod:`txntable.spark.writing.writer_choice`).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from txntable.format.enum_option import member_of
from txntable.format.layout import WAREHOUSE_FILE
from txntable.spark.classic_session import PARQUET, UNTOLD, has_classes, is_classic, is_known
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
OUTPUT = "org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec"
EXECUTION = "org.apache.spark.sql.execution.SQLExecution$"
DATASET = "org.apache.spark.sql.classic.Dataset$"
_CLASSES = (FILE_FORMAT_WRITER, COMMIT_PROTOCOL, PARQUET, OUTPUT, EXECUTION, DATASET)
# By application and store: whether Spark's file systems read what ours does.
_reached: dict[tuple[str, str], bool] = {}
_asking = threading.Lock()


def session_facts(spark: SparkSession) -> SessionFacts:
    """Return what a session tells."""
    if not is_classic(spark):
        return SessionFacts(is_classic=False)
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  the same
    return SessionFacts(
        is_classic=True,
        wish=member_of(Wish, str(spark.conf.get(SWITCH, Wish.AUTO.value)), SWITCH),
        is_known=is_known(spark),
        has_classes=has_classes(jvm, _CLASSES),
        encrypts=bool(hadoop.get(ENCRYPTION_SETTING) or spark.conf.get(ENCRYPTION_SETTING, None)),
        in_micro_batch=spark.sparkContext.getLocalProperty(_STREAM) is not None,
    )


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
    with suppress(*UNTOLD):
        path = jvm.org.apache.hadoop.fs.Path(f"{spark_url(store.spec.url)}/{WAREHOUSE_FILE}")
        settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  the same
        file = path.getFileSystem(settings).open(path)
        try:
            return ours is not None and bytes(file.readAllBytes()) == ours.data
        finally:
            file.close()
    return False
