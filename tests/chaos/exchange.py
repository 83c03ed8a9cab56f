"""Two-phase commit with an external database, a file of SQLite: what it committed is here, and nothing else.

The database lets only the process commit for an owner that took it last, as a database must for which several
processes may run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.life import Life, RecordedProducer
from tests.chaos.money import Teller
from tests.chaos.premises import MERCHANTS, Site
from tests.checker.operations import Level, Operation, Read, Send
from txntable.errors import TxnTableError

_PATIENCE_S = 120


class ExternalDatabase:
    """The external database."""

    def __init__(self, site: Site) -> None:
        self._path = Path(site.folder) / "external.sqlite"
        with self.changing() as database:
            database.execute("CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, taken INT, token TEXT)")
            database.execute("CREATE TABLE IF NOT EXISTS sales (txn TEXT PRIMARY KEY, token TEXT)")

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Change it in one transaction."""
        database = sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()

    def take(self, owner: str) -> int:
        """Take an owner from all earlier processes."""
        with self.changing() as database:
            database.execute("INSERT OR IGNORE INTO owners VALUES (?, 0, NULL)", [owner])
            database.execute("UPDATE owners SET taken = taken + 1 WHERE owner = ?", [owner])
            return int(database.execute("SELECT taken FROM owners WHERE owner = ?", [owner]).fetchone()[0])

    def commit(self, owner: str, taken: int, token: str, txn: str) -> bool:
        """Commit a sale, unless another process has the owner by now."""
        with self.changing() as database:
            had = database.execute("UPDATE owners SET token = ? WHERE owner = ? AND taken = ?", [token, owner, taken])
            if had.rowcount:
                database.execute("INSERT INTO sales VALUES (?, ?)", [txn, token])
            return bool(had.rowcount)

    def last_token(self, owner: str) -> str | None:
        """Return the last token that was committed for an owner."""
        with self.changing() as database:
            found = database.execute("SELECT token FROM owners WHERE owner = ?", [owner]).fetchone()
        return None if found is None else found[0]

    def sale(self, token: str) -> str:
        """Return the history's name of the transaction with a token."""
        with self.changing() as database:
            return str(database.execute("SELECT txn FROM sales WHERE token = ?", [token]).fetchone()[0])

    def sales(self) -> set[str]:
        """Return the transactions that were committed."""
        with self.changing() as database:
            return {txn for (txn,) in database.execute("SELECT txn FROM sales")}


class Merchant(Teller):
    """Sells: an order is here exactly when the external database committed it."""

    def __init__(self, life: Life, who: str) -> None:
        super().__init__(life, MERCHANTS[len(who) % 2])
        self.database, self.taken = ExternalDatabase(life.site), 0

    def turn(self) -> None:
        if self.producer is None:
            self.producer, self.taken = self.recovered(self.transactional_id)
        if not self.order(self.producer):
            self.producer = None

    def recovered(self, owner: str) -> tuple[RecordedProducer, int]:
        """Take an owner over, and end what is prepared as the database ended its own."""
        producer = RecordedProducer(self.life, owner)
        producer.init(keep_prepared=True)
        # Not before init: whoever takes the prepared transaction over must know that no one commits it any more.
        taken = self.database.take(owner)
        token = self.database.last_token(owner)
        producer.complete(token, None if token is None else self.database.sale(token), commit=True)
        return producer, taken

    def order(self, producer: RecordedProducer) -> bool:
        """One order; whether the merchant may go on."""
        producer.begin()
        for portion in self.moved():
            producer.append(portion)
        token = producer.prepare()
        self.life.rest(self.chance.choice([0, 20, 300]))
        if self.chance.random() < 0.1:
            return False
        assert producer.txn is not None
        done = self.chance.random() < 0.75 and self.database.commit(
            self.transactional_id, self.taken, token, producer.txn
        )
        self.life.rest(self.chance.choice([0, 20, 300]))
        if self.chance.random() < 0.1:
            return False
        if done and self.chance.random() < 0.6:
            producer.complete(token, producer.txn, commit=True)
        elif done:
            producer.commit()
        else:
            producer.abort()
        return True

    def recover(self, error: TxnTableError) -> None:
        """Begin as a new producer: the external database knows."""
        self.producer = None


def is_last(read: Read) -> bool:
    """Return whether a read shows what is committed in the end."""
    return read.final and read.level is Level.SNAPSHOT


def disagreements(site: Site, history: Sequence[Operation]) -> set[str]:
    """Return the transactions that are visible here and not committed in the external database, or the other way."""
    calls = [operation.call for operation in history]
    seen = {record.value for call in calls if isinstance(call, Read) and is_last(call) for record in call.records}
    sends = [call for call in calls if isinstance(call, Send) and call.txn is not None]
    visible = {str(send.txn) for send in sends if seen.intersection(write.value for write in send.writes)}
    return visible ^ ExternalDatabase(site).sales()


def settle(life: Life) -> None:
    """End what is prepared, for all owners."""
    for owner in MERCHANTS:
        Merchant(life, "").recovered(owner)
