"""One open transaction, as the block ``with producer.transaction() as txn`` holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txntable.client.producer import Producer
    from txntable.client.records import RecordMetadata


class Transaction:
    """What can be done inside; the block's end commits, an exception aborts."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.send = producer.send
        self.flush = producer.flush
        self.prepare = producer.prepare_transaction

    def write(self, topic: str, dataframe: Any) -> RecordMetadata:
        """Write a Spark DataFrame, distributed; see :func:`txntable.spark.writer.write_dataframe`."""
        metadata: RecordMetadata = self._producer.config.write_dataframe(self._producer, topic, dataframe)
        return metadata
