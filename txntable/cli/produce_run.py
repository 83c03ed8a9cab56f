"""One run of ``txntable produce``: records into a topic, in one transaction or in none.

Owns what becomes of a run that fails or is interrupted: with a transactional id nothing of it is
visible; without one the answer says how many records were appended.  Invariant: a transaction
whose commit has an unknown outcome is never aborted.  Must not know of files or formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import typer

from txntable.cli.interruption import exit_code, word
from txntable.cli.output import tell
from txntable.cli.progress import counting
from txntable.cli.record_source import Chunk
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    RetriableError,
    TxnTableError,
)
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.records import RecordMetadata
from txntable.format.topic import TopicSettings
from txntable.log.outcome import MAY_HAVE_HAPPENED
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

FLUSH_BYTES = 64 * 1024 * 1024
"""How much waits in memory before it is uploaded and appended."""
BATCH_BYTES = 2 * FLUSH_BYTES
"""The producer's ``batch_size``: so large that only a flush appends, and it is known how many records are."""
ATTEMPTS = 3

Read: TypeAlias = Callable[[TopicSettings], Iterator[Chunk]]


@dataclass(slots=True)
class ProduceRun:
    """What a run does, and how far it came.

    Attributes
    ----------
    warehouse : Warehouse
        Where to.
    producer : Producer
        New; with a transactional id everything is one transaction.
    topic : str
        The topic's name.
    partition : int or None
        For records that name none.
    batch_id : str or None
        Names the run.
    status : str
        How it ended, in words.
    sent, appended : int
        Records handed to the producer, and those of them that are appended.
    offsets : dict of int to (int, int)
        Base and last offset of what is appended, by partition.
    position : int or None
        The decision position; ``None``: nothing was decided.
    """

    warehouse: Warehouse
    producer: Producer
    topic: str
    partition: int | None
    batch_id: str | None
    status: str = ""
    sent: int = 0
    appended: int = 0
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    position: int | None = None

    def execute(self, read: Read) -> None:
        """Send all records; in a transaction, commit it.

        Parameters
        ----------
        read : callable
            The topic's settings -> its records.

        Raises
        ------
        TxnTableError
            In a transaction nothing is visible, except where a ``CommitStateUnknownError`` says
            otherwise; without one ``appended_records`` says how many records are.
        typer.Exit
            Interrupted.
        """
        if self.producer.config.transactional_id is None:
            self._append(read)
            return
        try:
            # Before the id is taken: a run that has nothing to do fences nobody.
            if self.batch_id is None or not self.producer.is_committed(self.batch_id):
                self._commit(read)
                return
        except BatchAlreadyCommittedError:
            self.appended, self.offsets = 0, {}
        self.status = "already committed: nothing to do"

    def _append(self, read: Read) -> None:
        try:
            with self.producer:
                self._send_all(read(self.warehouse.topic_log(self.topic).settings()))
        except TxnTableError as error:
            raise type(error)(error.message, **error.facts, appended_records=self.appended) from error
        except KeyboardInterrupt as interrupt:
            tell(f"{word(interrupt)}: {self.appended} records were appended")
            raise typer.Exit(exit_code(interrupt)) from interrupt
        self.status = "appended"

    def _commit(self, read: Read) -> None:
        complete = False
        try:
            with self.producer as producer:
                chunks = read(self.warehouse.topic_log(self.topic).settings())
                producer.init_transactions()
                producer.begin_transaction(self.batch_id)
                self._send_all(chunks)
                epoch, complete = producer.producer_epoch, True
                _repeated(producer.commit_transaction)
        except CommitStateUnknownError as error:
            if not complete:
                raise
            raise CommitStateUnknownError(
                f"{error.message.removesuffix(MAY_HAVE_HAPPENED)}; it is not known whether the transaction committed:"
                f" {self._remedy()}",
                **error.facts,
            ) from error
        except KeyboardInterrupt as interrupt:
            what = self._remedy() if complete else "the transaction is aborted, nothing of it is visible"
            tell(f"{word(interrupt)}: {what}")
            raise typer.Exit(exit_code(interrupt)) from interrupt
        self.status = "committed"
        self.position = self._position(epoch)

    def _remedy(self) -> str:
        if self.batch_id is not None:
            return "run the command again: the batch id keeps it from being done twice"
        transactional_id = self.producer.config.transactional_id
        return f"before running again, look how it ended: txntable transactions describe {transactional_id}"

    def _position(self, epoch: int | None) -> int | None:
        row = self.warehouse.transactions.row(self.producer.config.transactional_id or "")
        decision = None if row is None else row.decision
        return None if decision is None or decision.epoch != epoch else decision.position

    # -- sending ----------------------------------------------------------------------------

    def _send_all(self, chunks: Iterable[Chunk]) -> None:
        """Send and append all records; what waits in memory stays bounded."""
        waiting_bytes = 0
        with counting(self.topic) as count:
            for chunk in chunks:
                partition = self.partition if chunk.partition is None else chunk.partition
                rows = self._timed(chunk.rows)
                self.producer.send(self.topic, rows=rows, partition=partition, on_delivery=self._take_appended)
                self.sent += rows.num_rows
                waiting_bytes += rows.nbytes
                if waiting_bytes >= FLUSH_BYTES:
                    self._flush()
                    waiting_bytes = 0
                count(self.sent)
            self._flush()

    def _timed(self, rows: pa.Table) -> pa.Table:
        """Return rows whose timestamps are all known: the store's time where the input does not say."""
        if TIMESTAMP_COLUMN not in rows.column_names or not rows.column(TIMESTAMP_COLUMN).null_count:
            return rows
        index = rows.column_names.index(TIMESTAMP_COLUMN)
        column = rows.column(index)
        now = pa.scalar(self.warehouse.context.clock.now_ms() * 1000, column.type)
        return rows.set_column(index, TIMESTAMP_COLUMN, pc.fill_null(column, now))

    def _flush(self) -> None:
        # In a transaction, an append of unknown outcome is aborted; outside of one the same batches are appended.
        _repeated(self.producer.flush)

    def _take_appended(self, metadata: RecordMetadata, error: TxnTableError | None) -> None:
        """Count what is in the log, also when it could not be published after that."""
        for part in metadata.ranges if error is None else ():
            self.appended += part.last_offset - part.base_offset + 1
            base, last = self.offsets.get(part.partition, (part.base_offset, part.last_offset))
            self.offsets[part.partition] = min(base, part.base_offset), max(last, part.last_offset)

    # -- answering --------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Return what the run came to, for the person or program that asked for it."""
        facts: dict[str, object] = {
            "topic": self.topic,
            "status": self.status,
            "records": self.appended,
            "partitions": [
                {"partition": partition, "base_offset": base, "last_offset": last}
                for partition, (base, last) in sorted(self.offsets.items())
            ],
        }
        if self.producer.config.transactional_id is not None:
            facts["transactional_id"] = self.producer.config.transactional_id
            facts["batch_id"] = self.batch_id
            facts["position"] = self.position
        return facts


def _repeated(call: Callable[[], None]) -> None:
    """Make a call that may be made again as often as the store does not answer, within bounds."""
    for _ in range(ATTEMPTS - 1):
        try:
            return call()
        except RetriableError:
            continue
    return call()
