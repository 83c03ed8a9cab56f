"""One open transaction, as the block ``with producer.transaction() as txn`` holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txntable.errors import InvalidRequestError
from txntable.format.kafka_call_names import answering_transaction
from txntable.runtime.one_process import OfOneProcess

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer
    from txntable.format.records import OnDelivery, RecordMetadata
    from txntable.producer.producer import Producer


@answering_transaction
class Transaction(OfOneProcess):
    """The open transaction; the end of the block commits it, an exception aborts it."""

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
        """Commit a consumer's offsets with this transaction; see :meth:`txntable.Producer.send_offsets_of`."""
        self._producer.send_offsets_of(consumer)

    def flush(self) -> None:
        """Upload and append buffered records without deciding the transaction; see :meth:`txntable.Producer.flush`."""
        self._producer.flush()

    def prepare(self) -> str:
        """Prepare the transaction and return its token; see :meth:`txntable.Producer.prepare_transaction`."""
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
            ``"none"``: no shuffle, each task writes a segment for every partition that its keys map to.
            ``"hash"``: shuffles first, so that a task has whole partitions: few large segments, for keyed topics.

        Returns
        -------
        RecordMetadata
            Has the offsets after a flush or commit.

        Raises
        ------
        SchemaMismatchError
            A required column is missing, one is unknown or of a type that does not fit (before anything runs), or null
            where it may not be.
        RecordTooLargeError
            The transaction has too many segments in the topic: abort, and use ``"hash"`` or several transactions.
        MissingKeyError, UnknownTopicOrPartitionError
            Only abort is possible, as after a failed :meth:`send`; also if the Spark job itself failed.
        InvalidRequestError
            There is no such distribution mode.
        """
        return self._write([(topic, dataframe)], distribution_mode)[0]

    def write_all(self, dataframes: Mapping[str, Any], *, distribution_mode: str = "none") -> dict[str, RecordMetadata]:
        """Write Spark DataFrames to several topics, side by side: all are one Spark job.

        For many small ones: Spark plans and runs a job for them all, and fills its cores with the tasks of all.  When
        one fails, or the job is cancelled, none is written, and only abort is possible.  The DataFrames belong to one
        session.

        Parameters
        ----------
        dataframes : Mapping of str to pyspark.sql.DataFrame
            Topic -> what is written to it, as for :meth:`write`.
        distribution_mode : str
            See :meth:`write`; of all.

        Returns
        -------
        dict of str to RecordMetadata
            By topic; they have the offsets after a flush or commit.

        Raises
        ------
        TxnTableError
            As :meth:`write`: the columns of all are checked before anything runs.
        InvalidRequestError
            It is no mapping.
        """
        if not isinstance(dataframes, Mapping):
            raise InvalidRequestError("give a mapping of topics to dataframes", found=type(dataframes).__name__)
        return dict(zip(dataframes, self._write(list(dataframes.items()), distribution_mode), strict=True))

    def _write(self, dataframes: list[tuple[str, Any]], mode: str) -> list[RecordMetadata]:
        write = self._producer.config.write_dataframes
        try:
            written: list[RecordMetadata] = write(self._producer, dataframes, mode)
        except BaseException as error:
            # A job failed or was interrupted: a caller that catches this must not commit without its rows.
            self._producer.spoil(error)
            raise
        return written
