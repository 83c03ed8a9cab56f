"""What ``foreachBatch`` is given: a callable that runs each micro-batch as one transaction.

Owns the producer of a stream, one for each process in which the callable lives: with a classic session that is the
user's, with Spark Connect one of the server's, which gets it pickled.  Only how to open the warehouse travels.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from txntable.errors import TxnTableError
from txntable.producer.producer import Producer
from txntable.producer.producer_config import DEFAULT_TRANSACTION_TIMEOUT_MS
from txntable.producer.transaction import Transaction
from txntable.spark.writing.stream_batch import commit_batch
from txntable.spark.writing.streaming_query import running_query_id, session_id
from txntable.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[[Transaction, Any], object]
"""(transaction, DataFrame): writes the records of a micro-batch, to any number of topics."""


class StreamWriting(Protocol):
    """What of a :class:`txntable.Warehouse` Spark's streams write through.

    Attributes
    ----------
    store : ObjectStore
        The warehouse's.
    """

    store: ObjectStore

    @classmethod
    def open(
        cls, url: str, storage_options: Mapping[str, str] | None = None, *, durability: str = "full"
    ) -> StreamWriting:
        """Open a warehouse."""

    def producer(
        self, transactional_id: str | None = None, *, transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    ) -> Producer:
        """Return a new producer."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The query of the batch before, and the session that Spark had made for it."""

    session: str
    query_id: str
    batch_id: int


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
        self._seen: _Seen | None = None
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
                    lambda: self._query_id(dataframe, batch_id),
                    lambda transaction: self._write(transaction, dataframe),
                )
            except BaseException:
                self._discard()
                raise

    def _query_id(self, dataframe: DataFrame, batch_id: int) -> str | None:
        """Return the id of the query: what it was at the batch before, else asked of Spark, by a small job."""
        session, seen = session_id(dataframe.sparkSession), self._seen
        # By its session, too: the number alone may be the next one of another query that has this writer.
        if seen is not None and (seen.session, seen.batch_id) == (session, batch_id - 1):
            query_id: str | None = seen.query_id
        else:
            query_id = running_query_id(dataframe.sparkSession)
        self._seen = None if query_id is None else _Seen(session, query_id, batch_id)
        return query_id

    def _discard(self) -> None:
        """Let the next batch begin with a new producer, whose init ends whatever the failure left open."""
        producer, self._producer, self._seen = self._producer, None, None
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
