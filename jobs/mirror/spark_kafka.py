"""Kafka as Spark reaches it: its records by Spark's source, its offsets by the admin client in the same JVM.

Owns that nothing of an aborted or open transaction is seen, and that a read has exact bounds, which Spark holds to or
fails.  Both have the settings of Kafka's Java client.  Classic sessions only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pyspark
from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from txntable.errors import MissingDependencyError, TransactionAbortableError, UnknownTopicOrPartitionError
from txntable.jobs.mirror.positions import Source

PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""What brings Spark's Kafka source, for ``spark.jars.packages``."""
_CLIENTS = "org.apache.kafka.clients.admin"
_UNKNOWN_TOPIC = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


class SparkKafka:
    """A Kafka cluster.

    Parameters
    ----------
    spark : SparkSession
        With :data:`PACKAGE`.
    settings : Mapping of str to str
        Of Kafka's Java client; ``bootstrap.servers`` among them.

    Raises
    ------
    MissingDependencyError
        The session has no Kafka source.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self._spark, self._settings = spark, dict(settings)
        self._jvm = cast(Any, spark._jvm)  # noqa: SLF001  PySpark has no public name for it
        kind = self._jvm.org.apache.kafka.clients.admin.Admin
        if isinstance(kind, JavaPackage):
            raise MissingDependencyError(
                f"this spark has no kafka source; start it with --packages {PACKAGE}", missing=_CLIENTS
            )
        with _told("the cluster"):
            self._admin = kind.create(self._settings)

    def source(self, topic: str) -> Source:
        """Return a topic of Kafka as it is now.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is none.
        TransactionAbortableError
            Kafka refused, or did not answer: run again.
        """
        with _told(topic):
            count = self._described(topic).partitions().size()
            starts, ends = self._offsets(topic, count, "earliest"), self._offsets(topic, count, "latest")
            # After the offsets: where the topic is created again between the two, it is not the one that was mirrored.
            described = self._described(topic)
            cluster = self._admin.describeCluster().clusterId().get()
        origin = f"kafka cluster={cluster} topic={topic} topic_id={described.topicId().toString()}"
        return Source(topic, origin, starts, ends)

    def _described(self, topic: str) -> Any:
        return self._admin.describeTopics([topic]).allTopicNames().get().get(topic)

    def _offsets(self, topic: str, count: int, which: str) -> dict[int, int]:
        admin, common = self._jvm.org.apache.kafka.clients.admin, self._jvm.org.apache.kafka.common
        wanted = {common.TopicPartition(topic, number): getattr(admin.OffsetSpec, which)() for number in range(count)}
        # Then the latest is the last stable offset: what is behind it may be aborted yet.
        committed = admin.ListOffsetsOptions(common.IsolationLevel.READ_COMMITTED)
        found = self._admin.listOffsets(wanted, committed).all().get()
        return {entry.getKey().partition(): entry.getValue().offset() for entry in found.entrySet()}

    def records(self, topic: str, bounds: Mapping[int, tuple[int, int]]) -> DataFrame:
        """Return the committed records of a topic between offsets, with the columns of Spark's source.

        Parameters
        ----------
        topic : str
            Kafka's.
        bounds : Mapping of int to (int, int)
            By partition, from and before; at least one.
        """
        options = {f"kafka.{name}": value for name, value in self._settings.items()} | {
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({topic: sorted(bounds)}),
            "startingOffsets": json.dumps({topic: {number: start for number, (start, _) in bounds.items()}}),
            "endingOffsets": json.dumps({topic: {number: end for number, (_, end) in bounds.items()}}),
            "includeHeaders": "true",
            # Records that Kafka deletes while they are read: the job fails, and its transaction is aborted.
            "failOnDataLoss": "true",
        }
        return self._spark.read.format("kafka").options(**options).load()

    def close(self) -> None:
        """Close the admin client."""
        self._admin.close()


@contextmanager
def jobs_errors(topic: str) -> Iterator[None]:
    """Raise as an error of ours that Spark's job failed.

    Raises
    ------
    TransactionAbortableError
        Among others: Kafka has deleted records that were to be read.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        thrown = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        raise TransactionAbortableError(
            "spark's job failed; nothing of it was mirrored, run it again", topic=topic, reason=" ".join(thrown.split())
        ) from error


@contextmanager
def _told(topic: str) -> Iterator[None]:
    """Raise what Kafka refuses as an error of ours.

    Raises
    ------
    UnknownTopicOrPartitionError, TransactionAbortableError
        As :meth:`SparkKafka.source`.
    """
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        # What a future threw is the cause of what it raises.
        cause = thrown.getCause() or thrown
        if cause.getClass().getName() == _UNKNOWN_TOPIC:
            raise UnknownTopicOrPartitionError("kafka has no such topic; check its name", topic=topic) from error
        raise TransactionAbortableError(
            "kafka refused, or did not answer; nothing more was mirrored, run it again",
            topic=topic,
            reason=cause.toString(),
        ) from error
