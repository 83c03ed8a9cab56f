"""Producers and readers whose calls are written down: what actors of a simulation work with.

Nothing is asked of the product that its user would not ask, but for the bounds that a reader was served under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.checker.operations import Bounds, End, Init, Level, Look, Place, Read, Seen, Send, Write
from tests.simulation.journal import BYTES, Asked, Draft, Witness, stubbornly
from txntable.errors import (
    DamagedDataError,
    InvalidPidMappingError,
    InvalidRequestError,
    RetriableError,
    TransactionOutcomeUnknownError,
    TxnTableError,
)
from txntable.format.isolation import IsolationLevel
from txntable.format.records import RecordMetadata
from txntable.log.delta_log import DeltaLog
from txntable.partition.topic_view import TopicView
from txntable.producer.producer import Producer
from txntable.snapshot.snapshot import records_of
from txntable.warehouse.warehouse import Warehouse

COLUMNS = pa.schema([pa.field("account", pa.string()), pa.field("amount", pa.int64()), pa.field("tag", pa.string())])
_LEVELS = {
    Level.UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
    Level.COMMITTED: IsolationLevel.READ_COMMITTED,
    Level.SNAPSHOT: IsolationLevel.SNAPSHOT,
}


class RecordedProducer:
    """A producer, and the transaction that it is in.

    Attributes
    ----------
    txn : str, optional
        The transaction's name in the operation log.
    has_work : bool
        Whether something was asked for in it: a transaction of nothing is never decided, and not written down.
    """

    def __init__(self, producer: Producer, warehouse: Warehouse, witness: Witness) -> None:
        self.producer = producer
        self.txn: str | None = None
        self._warehouse, self._witness = warehouse, witness
        self._name = witness.name("producer")
        self._took_over = False
        self.has_work = False

    def init(self, *, keep_prepared: bool = False) -> None:
        """Take the transactional id over."""
        with self._witness.calling(Init(self._id)) as asked:
            asked.stubbornly(lambda: self.producer.init_transactions(keep_prepared=keep_prepared))
            self._took_over = self.producer.state == "PREPARED_TRANSACTION"
            asked.saw(kept=self._took_over, **self._identity())

    def begin(self, batch: str | int | None = None) -> None:
        """Begin a transaction; who took a prepared one over inits once more."""
        if self._took_over:
            with self._witness.calling(Init(self._id)) as asked:
                asked.stubbornly(lambda: self.producer.begin_transaction(batch))
                asked.saw(**self._identity())
            self._took_over = False
        else:
            self.producer.begin_transaction(batch)
        txn = self._witness.name("txn")
        self.txn, self.has_work = txn, batch is not None
        if batch is not None:
            self._witness.journal.batches[txn] = (self._id, batch)

    def send(self, drafts: Sequence[Draft], *, together: bool = False, flush: bool = True) -> None:
        """Send records, `together`: of one partition, in one append; without `flush` they may wait for the commit."""
        drafts = [replace(each, value=self._value(each)) for each in drafts]
        writes = tuple(
            Write(
                (d.topic, -1 if d.partition is None else d.partition), d.value, None, d.source, d.amount, d.key, d.dead
            )
            for d in drafts
        )
        sent: list[RecordMetadata] = []
        self.has_work = True
        # As whom is said once it is done: a transaction of which nothing was is another's epoch after its abort.
        with self._witness.calling(Send(self._name, self.txn, writes)) as asked:
            try:
                sent.extend(map(self._send, [drafts] if together else [[each] for each in drafts]))
                if flush:
                    asked.stubbornly(self.producer.flush)
            except TxnTableError:
                asked.unsure |= any(each.is_delivered for each in sent)
                raise
            if all(each.is_delivered for each in sent):
                asked.saw(writes=tuple(_placed(writes, sent)), **self._identity())
            else:
                asked.saw(buffered=True)
                asked.leave_open()

    def _send(self, group: Sequence[Draft]) -> RecordMetadata:
        first = group[0]
        time_ms = int(first.value.removeprefix("dead@")) if first.dead else None
        if first.topic in BYTES:
            key = None if first.key is None else first.key.encode()
            value = None if first.dead else first.value.encode()
            return self.producer.send(first.topic, value, key=key, partition=first.partition, timestamp_ms=time_ms)
        if len(group) == 1:
            return self.producer.send(first.topic, row=_row(first), partition=first.partition, timestamp_ms=time_ms)
        table = pa.Table.from_pylist([_row(each) for each in group], COLUMNS)
        return self.producer.send(first.topic, rows=table, partition=first.partition)

    def _value(self, draft: Draft) -> str:
        if not draft.dead:
            return draft.value
        now_ms = self._warehouse.context.environment.instant().wall_ms
        return f"dead@{self._witness.journal.time_of_death(now_ms)}"

    def commit(self) -> None:
        """Commit, and ask until it is known."""
        self._end(commit=True)

    @property
    def is_ending(self) -> bool:
        """Whether a commit was asked for, and what became of it is not known."""
        return self.producer.state == "COMMITTING"

    def abort(self) -> None:
        """Abort, and ask until it is known."""
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        assert self.txn is not None
        ask = self.producer.commit_transaction if commit else self.producer.abort_transaction
        if not self.has_work:
            stubbornly(ask)
            return
        identity = self._identity()
        with self._witness.calling(End(self.txn, commit, None, self._id)) as asked:
            try:
                with _claiming(asked):
                    asked.stubbornly(ask)
            except RetriableError:
                asked.saw(**identity)
                raise
            if self._identity() != identity:
                asked.saw(**identity)

    def prepare(self) -> str:
        """Prepare, and return the token."""
        self.has_work = True
        return stubbornly(self.producer.prepare_transaction)

    def complete(self, token: str | None, txn: str | None, *, commit: bool) -> None:
        """End a prepared transaction by a token; `txn` is what is known to end so, if anything."""
        if txn is None:
            stubbornly(lambda: self.producer.complete_transaction(token))
            return
        # Of a row that is gone nothing is claimed: only whoever has the id learns how the token's ended.
        nothing = InvalidPidMappingError, InvalidRequestError
        with self._witness.calling(End(txn, commit, None, self._id)) as asked, _claiming(asked, nothing):
            asked.stubbornly(lambda: self.producer.complete_transaction(token))

    @property
    def _id(self) -> str:
        return self.producer.config.transactional_id or ""

    def _identity(self) -> dict[str, Any]:
        return {"producer_id": self.producer.producer_id, "epoch": self.producer.producer_epoch}


@contextmanager
def _claiming(asked: Asked, none: tuple[type[TxnTableError], ...] = ()) -> Iterator[None]:
    """Take a fatal answer about an end at its word, however often was asked: it says that nothing was committed."""
    try:
        yield
    except TxnTableError as error:
        if isinstance(error, (TransactionOutcomeUnknownError, *none)):
            asked.unsure = True
        elif error.fatal and not isinstance(error, DamagedDataError):
            asked.unsure = False
        raise


def _row(draft: Draft) -> dict[str, Any]:
    if draft.dead:
        return {"account": draft.key, "amount": None, "tag": None}
    return {"account": draft.key, "amount": draft.amount, "tag": draft.value}


def _placed(writes: Sequence[Write], sent: Sequence[RecordMetadata]) -> Iterable[Write]:
    places = [
        (one.partition, offset)
        for each in sent
        for one in each.ranges
        for offset in range(one.base_offset, one.last_offset + 1)
    ]
    for write, (partition, offset) in zip(writes, places, strict=True):
        yield replace(write, place=(write.place[0], partition), offset=offset)


# -- reading --------------------------------------------------------------------------------


def read(
    witness: Witness, warehouse: Warehouse, wanted: Read, topics: Sequence[str], as_of: int | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Scan whole topics, and return what was there.

    Parameters
    ----------
    witness : Witness
        Writes it down.
    warehouse : Warehouse
        Of the reader.
    wanted : Read
        Level, and the groups whose offsets a snapshot is asked for.
    topics : sequence of str
        What is read.
    as_of : int, optional
        The position of a snapshot.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    bounds: dict[Place, Bounds] = {}
    with witness.calling(wanted) as asked:
        facts: dict[str, Any] = {}
        if wanted.level is Level.SNAPSHOT:
            snapshot = warehouse.snapshot(as_of)
            views = {topic: snapshot.view(topic) for topic in topics}
            for topic, view in views.items():
                rows[topic] = _rows(warehouse, view)
                bounds |= bounds_of(view)
            offsets = {
                (group, tuple(place)): found.offset
                for group in sorted(wanted.groups)
                for place, found in snapshot.committed_offsets(group).items()
            }
            facts = {"position": snapshot.position, "offsets": offsets}
        else:
            for topic in topics:
                reader = warehouse.topic_reader(topic)
                reader.catch_up()
                view = reader.view(_LEVELS[wanted.level])
                rows[topic] = _rows(warehouse, view)
                bounds |= bounds_of(view)
        asked.saw(records=tuple(seen(rows)), bounds=bounds, **facts)
    return rows


def _rows(warehouse: Warehouse, view: TopicView) -> list[dict[str, Any]]:
    reader = warehouse.topic_reader(view.settings.name)
    return records_of(reader, view, (None, None), (None, None)).read_all().to_pylist()


def bounds_of(view: TopicView) -> dict[Place, Bounds]:
    """The bounds of each partition of a view."""
    return {
        (view.settings.name, partition): Bounds(one.start, one.last_stable_offset, one.high_watermark)
        for partition, one in view.bounds.items()
    }


def seen(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterable[Seen]:
    """Rows as the operation log has them."""
    for topic, found in rows.items():
        for row in found:
            yield Seen((topic, row["_partition"]), row["_offset"], value_of(row))


def value_of(row: Mapping[str, Any], time_ms: int | None = None) -> str:
    """The value that tells a record from all others; of a tombstone by its time."""
    value = row["value"] if "value" in row else row["tag"]
    if value is None:
        time_ms = round(row["_timestamp"].timestamp() * 1000) if time_ms is None else time_ms
        return f"dead@{time_ms}"
    return value.decode() if isinstance(value, bytes) else str(value)


def look(witness: Witness, log: DeltaLog[Any]) -> None:
    """Write down which version of a log a client knows, and by which chain."""
    table = log.table
    if table.version is not None and table.chain is not None:
        with witness.calling(Look(log.root, table.version, table.chain)):
            pass
