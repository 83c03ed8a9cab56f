"""Reading committed data: one position pinned over all topics (PROTOCOL.md §10).

Owns the order *pin, complete, read*: a snapshot at D shows every transaction decided at or
below D whole, in every topic, and none above; open transactions hold nothing back.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from txntable.completion import Completer
from txntable.errors import InvalidRequestError, OffsetOutOfRangeError, StorePermissionError
from txntable.layout import public_root, segments_root
from txntable.spark.reader import scan_public, scan_segments
from txntable.topic_log import TopicLog
from txntable.transaction_log import TransactionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class IsolationLevel(Enum):
    """What a reader sees."""

    SNAPSHOT = "snapshot"
    """Everything committed as of one position, in all topics at once."""
    READ_UNCOMMITTED = "read_uncommitted"
    """Every appended record, whatever becomes of it."""


class Snapshot:
    """A consistent state of all topics; made by :meth:`txntable.Warehouse.snapshot`.

    Attributes
    ----------
    position : int
        The decision position that it is pinned at.
    """

    def __init__(self, position: int, url: str, topic_log: Callable[[str], TopicLog]) -> None:
        self.position = position
        self._url = url
        self._topic_log = topic_log
        self._versions: dict[str, int] = {}

    @classmethod
    def pin(
        cls,
        transactions: TransactionLog,
        completer: Completer,
        topic_log: Callable[[str], TopicLog],
        as_of: int | None,
    ) -> Snapshot:
        """Pin the head of the transaction log, or an earlier position.

        Raises
        ------
        OffsetOutOfRangeError
            `as_of` is above the head: it has not happened yet.
        """
        url = transactions.context.store.spec.url
        head = transactions.refresh()
        if as_of is not None and not 0 <= as_of <= head:
            raise OffsetOutOfRangeError(
                "a snapshot is taken at a position between 0 and the head of the transaction log",
                as_of=as_of,
                head=head,
            )
        wanted = head if as_of is None else as_of
        try:
            completer.complete_decided()
        except StorePermissionError:
            # Who may not complete reads what others have published whole.
            with transactions.log.lock:
                waiting = [row.position for row in transactions.log.fold.decided()]
            wanted = min([wanted, *(position - 1 for position in waiting)])
        return cls(wanted, url, topic_log)

    def version(self, topic: str) -> int:
        """Return the version of the public table that the snapshot reads; pinned at the first call.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        if topic not in self._versions:
            log = self._topic_log(topic)
            log.settings()
            log.catch_up()
            self._versions[topic] = log.public.table.next_version - 1
        return self._versions[topic]

    def read(self, spark: SparkSession, topic: str) -> DataFrame:
        """Return a topic's committed records as a DataFrame.

        Columns: the topic's, ``_partition``, ``_offset``, ``_timestamp``, ``_commit``.
        """
        version = self.version(topic)
        return scan_public(spark, f"{self._url}/{public_root(topic)}", version, self.position)


def read_topic(warehouse: Any, spark: SparkSession, topic: str, isolation_level: str, as_of: int | None) -> DataFrame:
    """Return a topic as a DataFrame; see :meth:`txntable.Warehouse.read`.

    Raises
    ------
    InvalidRequestError
        An unknown level, or a position for uncommitted data.
    """
    levels = {level.value: level for level in IsolationLevel}
    level = levels.get(isolation_level)
    if level is None:
        raise InvalidRequestError(
            "there is no such isolation level; take one of those known",
            isolation_level=isolation_level,
            known=",".join(levels),
        )
    if level is IsolationLevel.SNAPSHOT:
        snapshot: Snapshot = warehouse.snapshot(as_of)
        return snapshot.read(spark, topic)
    if as_of is not None:
        raise InvalidRequestError("only a snapshot has a position; leave as_of out", isolation_level=isolation_level)
    log: TopicLog = warehouse.topic_log(topic)
    log.settings()
    return scan_segments(spark, f"{warehouse.url}/{segments_root(topic)}", log.segments.table.next_version - 1)
