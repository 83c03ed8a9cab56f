"""One open transaction, as the block ``with producer.transaction() as txn`` holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txntable.runtime.one_process import OfOneProcess

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer
    from txntable.format.records import OnDelivery, RecordMetadata
    from txntable.producer.producer import Producer


class Transaction(OfOneProcess):
    """What can be done inside; the block's end commits, an exception aborts."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def send(  # noqa: PLR0913  a Kafka record's parts, by name
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
        row: Mapping[str, Any] | None = None,
        rows: pa.Table | pa.RecordBatch | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordMetadata:
        """Buffer a record, or many, of this transaction; see :meth:`txntable.Producer.send`."""
        return self._producer.send(
            topic,
            value,
            key=key,
            headers=headers,
            row=row,
            rows=rows,
            partition=partition,
            timestamp_ms=timestamp_ms,
            on_delivery=on_delivery,
        )

    def send_offsets(self, consumer: Consumer) -> None:
        """Commit with this transaction what a consumer has read; see :meth:`txntable.Producer.send_offsets_of`."""
        self._producer.send_offsets_of(consumer)

    def flush(self) -> None:
        """Upload and append what waits, without deciding about it; see :meth:`txntable.Producer.flush`."""
        self._producer.flush()

    def prepare(self) -> str:
        """Make it wait for its token, and return that; see :meth:`txntable.Producer.prepare_transaction`."""
        return self._producer.prepare_transaction()

    def write(self, topic: str, dataframe: Any, *, distribution_mode: str = "none") -> RecordMetadata:
        """Write a Spark DataFrame, distributed; visible when the transaction commits.

        Parameters
        ----------
        topic : str
            The topic's name.
        dataframe : pyspark.sql.DataFrame
            The topic's columns by name, in any order; optionally ``_timestamp``.
        distribution_mode : str
            ``"none"``: no shuffle, each task writes a segment for every partition that its keys lead to.
            ``"hash"``: shuffled first, a task has whole partitions: few large segments, where a topic has a key.

        Returns
        -------
        RecordMetadata
            Knows its offsets once flushed or committed.

        Raises
        ------
        SchemaMismatchError
            A column is missing, unknown or of another type (before anything runs), or null where it may not be.
        RecordTooLargeError
            The transaction has too many segments in the topic: abort, and write with ``"hash"`` or in parts.
        MissingKeyError, UnknownTopicOrPartitionError
            Only abort is possible, as after a failed :meth:`send`; also where Spark's job itself failed.
        InvalidRequestError
            There is no such distribution mode.
        """
        write = self._producer.config.write_dataframe
        try:
            metadata: RecordMetadata = write(self._producer, topic, dataframe, distribution_mode)
        except BaseException as error:
            # A job that failed, or was interrupted: whoever catches it must not commit without its rows.
            self._producer.spoil(error)
            raise
        return metadata
