"""What ``foreachBatch`` is given: a callable that runs each micro-batch as one transaction.

Owns the producer of a stream, one for each process in which the callable lives: with a classic session that is the
user's, with Spark Connect one of the server's, which gets it pickled.  Only how to open the warehouse travels.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from txntable.errors import TxnTableError
from txntable.producer.producer import Producer
from txntable.producer.producer_config import DEFAULT_TRANSACTION_TIMEOUT_MS
from txntable.producer.transaction import Transaction
from txntable.spark.writing.stream_batch import commit_batch
from txntable.spark.writing.streaming_query import running_query_id
from txntable.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[[Transaction, Any], object]
"""(transaction, DataFrame): writes the records of a micro-batch, to any number of topics."""


class StreamWriting(ABC):
    """The part of :class:`txntable.Warehouse` that Spark's streams write through.

    Attributes
    ----------
    store : ObjectStore
        The warehouse's.
    """

    store: ObjectStore

    @classmethod
    @abstractmethod
    def open(
        cls, url: str, storage_options: Mapping[str, str] | None = None, *, durability: str = "full"
    ) -> StreamWriting:
        """Open a warehouse."""

    @abstractmethod
    def producer(
        self, transactional_id: str | None = None, *, transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    ) -> Producer:
        """Return a new producer."""

    def batch_writer(
        self,
        transactional_id: str,
        write: Write,
        *,
        transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS,
    ) -> BatchWriter:
        """Return what ``foreachBatch`` takes: each micro-batch is one transaction, exactly once.

        A batch that has committed is passed over after a restart from the checkpoint; an exception aborts.  ``write``
        may write several topics.  Each ``transaction.write`` runs the batch's query again: persist the DataFrame, if
        that is dear, or if it is not the same each time.

        Parameters
        ----------
        transactional_id : str
            The stream's: one for each checkpoint.  A new checkpoint begins at batch 0 again, and is refused under an
            id that has committed later batches.
        write : callable
            (transaction, DataFrame) -> anything: writes the records of a micro-batch.  With Spark Connect it runs in
            another process: what it refers to must pickle.
        transaction_timeout_ms : int
            From the first enrolment of a transaction on, by the store's time, ms.

        Raises
        ------
        InvalidConfigError
            A setting is out of its bounds.

        Examples
        --------
        >>> def write(transaction, flights):
        ...     transaction.write("flights", flights)
        ...     transaction.write("delays", flights.where("delay > 0").select("carrier", "delay"))
        >>> stream.writeStream.foreachBatch(warehouse.batch_writer("flights", write)).start()  # doctest: +SKIP
        """
        # Made now and thrown away, so that wrong settings are refused here and not by the first batch.
        self.producer(transactional_id, transaction_timeout_ms=transaction_timeout_ms)
        return BatchWriter(self, transactional_id, write, transaction_timeout_ms)


class BatchWriter:
    """Runs micro-batches; made by :meth:`txntable.Warehouse.batch_writer`.

    Parameters
    ----------
    warehouse : StreamWriting
        Where the topics are.
    transactional_id : str
        The stream's.
    write : callable
        See :data:`Write`.
    transaction_timeout_ms : int
        From the first enrolment of a transaction on, by the store's time, ms.
    """

    def __init__(
        self, warehouse: StreamWriting, transactional_id: str, write: Write, transaction_timeout_ms: int
    ) -> None:
        self._warehouse: StreamWriting | None = warehouse
        self._open = type(warehouse).open
        self._spec = warehouse.store.spec
        self._transactional_id = transactional_id
        self._write = write
        self._timeout_ms = transaction_timeout_ms
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"BatchWriter({self._spec.url!r}, {self._transactional_id!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_warehouse": None, "_producer": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __call__(self, dataframe: DataFrame, batch_id: int) -> None:
        """Write a micro-batch; Spark calls it.

        Raises
        ------
        TxnTableError
            As :func:`txntable.spark.writing.stream_batch.commit_batch`; nothing of the batch is visible, unless it is a
            ``CommitStateUnknownError``.  The query fails; start it again from its checkpoint.
        """
        # A query that was stopped may still be in here while the next one begins: its batch ends first.
        with self._lock:
            try:
                commit_batch(
                    self._initialised(),
                    batch_id,
                    lambda: running_query_id(dataframe.sparkSession),
                    lambda transaction: self._write(transaction, dataframe),
                )
            except BaseException:
                self._discard()
                raise

    def _discard(self) -> None:
        """Let the next batch begin with a new producer, whose init ends whatever the failure left open."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(TxnTableError):
                producer.close()

    def _initialised(self) -> Producer:
        if self._producer is None:
            warehouse = self._warehouse
            if warehouse is None:
                warehouse = self._open(self._spec.url, self._spec.options, durability=self._spec.durability)
                self._warehouse = warehouse
            producer = warehouse.producer(self._transactional_id, transaction_timeout_ms=self._timeout_ms)
            producer.init_transactions()
            self._producer = producer
        return self._producer
