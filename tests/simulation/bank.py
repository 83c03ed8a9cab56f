"""What the processes of a simulation do with money that only moves, and what they were promised.

All amounts always sum up to nothing; each transaction writes rows of its own tag, so that a part of one is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq

from tests.simulation.site import TWO_COLUMNS
from tests.simulation.turns import Process
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    DamagedDataError,
    RetriableError,
    TxnTableError,
)
from txntable.log.cleanup import clean_up
from txntable.testing.read_only_store import ReadOnlyStore
from txntable.warehouse import Warehouse, open_on

MONEY = ("debit", "credit")
SCRATCH = "scratch"
TRIES = 5
DAY_MS = 86_400_000


class Fate(Enum):
    """What a writer knows of its records."""

    OPEN = "commit was not asked for, or did not happen: never visible"
    ASKED = "no answer: whole or nothing"
    COMMITTED = "visible, whole"


@dataclass
class Promise:
    """One transaction, or one plain flush."""

    tag: str
    fate: Fate = Fate.OPEN
    rows: Counter[str] = field(default_factory=Counter)
    batch: str | None = None
    owner: str | None = None


@dataclass
class Ledger:
    """What was promised to whom."""

    promises: dict[str, Promise] = field(default_factory=dict)

    def promise(self, tag: str, batch: str | None = None, owner: str | None = None) -> Promise:
        self.promises[tag] = Promise(tag, batch=batch, owner=owner)
        return self.promises[tag]

    def committed(self) -> set[str]:
        return {tag for tag, promise in self.promises.items() if promise.fate is Fate.COMMITTED}


def stubbornly(call: Callable[[], object]) -> bool:
    """Make a call again for as long as that is what its error says; whether it ended well."""
    for _ in range(TRIES):
        try:
            call()
        except RetriableError:
            continue
        return True
    return False


# -- programs -------------------------------------------------------------------------------


class Actor:
    """A process that does a few things that a user does."""

    def __init__(self, process: Process, ledger: Ledger) -> None:
        self.process, self.random, self.ledger = process, process.random, ledger
        self.site = process.turns.site
        self.tags = 0

    def run(self) -> None:
        while True:
            try:
                self.warehouse = open_on(self.process.store(), self.site.environment())
                break
            except RetriableError:
                continue
        actions = [self.transfer] * 6 + [self.plain] * 2 + [self.complete] * 2 + [self.look] * 2
        actions += [self.checkpoint, self.clean, self.scratch, self.sleep]
        for _ in range(self.random.randint(2, 6)):
            try:
                self.random.choice(actions)()
            except DamagedDataError:
                raise
            except TxnTableError:
                # What it said was not known is in the ledger; a user goes on with something else.
                continue

    def tag(self) -> str:
        self.tags += 1
        return f"{self.process.name}-{self.tags}"

    def transfer(self) -> None:
        owner = self.random.choice(["x", "x", "y"])
        producer = self.warehouse.producer(owner, transaction_timeout_ms=60_000)
        if not stubbornly(producer.init_transactions):
            return
        for _ in range(self.random.randint(1, 3)):
            batch = self.random.choice([None, None, "monday", "tuesday"])
            promise = self.ledger.promise(self.tag(), batch, owner)
            try:
                producer.begin_transaction(batch)
                self.fill(producer, promise)
                if self.random.random() < 0.2:
                    raise BatchAlreadyCommittedError("changed its mind")
                self.commit(producer, promise)
            except DamagedDataError:
                raise
            except TxnTableError:
                if self.random.random() < 0.1 or not stubbornly(producer.abort_transaction):
                    return
            if self.random.random() < 0.1:
                self.site.advance_ms(self.random.choice([61_000, 310_000]))

    def fill(self, producer, promise: Promise) -> None:
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            amount = self.random.randint(1, 99)
            for topic, sign in zip(MONEY, (1, -1), strict=True):
                rows = [{"account": promise.tag, "amount": sign * amount}]
                producer.send(topic, rows=pa.Table.from_pylist(rows, TWO_COLUMNS), partition=self.random.randrange(2))
                promise.rows[topic] += 1
            if self.random.random() < 0.15:
                producer.send(SCRATCH, row={"account": promise.tag, "amount": 1})
                promise.rows[SCRATCH] += 1
            if self.random.random() < 0.3 and not stubbornly(producer.flush):
                producer.flush()

    def commit(self, producer, promise: Promise) -> None:
        for attempt in range(TRIES):
            before, promise.fate = promise.fate, Fate.ASKED
            try:
                producer.commit_transaction()
            except CommitStateUnknownError:
                if attempt == TRIES - 1:
                    return
            except TxnTableError as error:
                # A definite no, unless an earlier answer was unknown.
                promise.fate = before
                if not isinstance(error, RetriableError):
                    raise
            else:
                promise.fate = Fate.COMMITTED
                return

    def plain(self) -> None:
        producer = self.warehouse.producer(enable_idempotence=self.random.random() < 0.7)
        for _ in range(self.random.randint(1, 2)):
            promise = self.ledger.promise(self.tag())
            promise.fate = Fate.ASKED
            topic = self.random.choice(MONEY)
            for amount in [self.random.randint(1, 99) for _ in range(self.random.choice([1, 1, 4]))]:
                for sign in (1, -1):
                    rows = [{"account": promise.tag, "amount": sign * amount}]
                    table = pa.Table.from_pylist(rows, TWO_COLUMNS)
                    producer.send(topic, rows=table, partition=self.random.randrange(2))
                    promise.rows[topic] += 1
            if not stubbornly(producer.flush):
                return
            promise.fate = Fate.COMMITTED

    def complete(self) -> None:
        self.warehouse.complete()

    def checkpoint(self) -> None:
        self.any_log().write_checkpoint()

    def clean(self) -> None:
        clean_up(self.warehouse.context, self.any_log().root, DAY_MS)

    def any_log(self):
        topic = self.warehouse.topic_log(self.random.choice([*MONEY, SCRATCH]))
        return self.random.choice([self.warehouse.transactions.log, topic.segments, topic.public])

    def scratch(self) -> None:
        """Delete a topic in the middle of whatever goes on, or create it again."""
        admin = self.warehouse.admin()
        if SCRATCH in admin.list_topics():
            admin.delete_topic(SCRATCH)
        else:
            admin.create_topic(SCRATCH, partitions=self.random.randint(1, 3), schema=TWO_COLUMNS, exist_ok=True)

    def sleep(self) -> None:
        self.site.advance_ms(self.random.choice([61_000, 310_000, 2 * DAY_MS]))

    def look(self) -> None:
        """Read a snapshot, like anybody or with a reader's credentials."""
        read_only = self.random.random() < 0.3
        before = self.ledger.committed()
        warehouse = self.warehouse
        if read_only:
            warehouse = open_on(ReadOnlyStore(self.process.store()), self.site.environment())
        snapshot = warehouse.snapshot()
        seen = {topic: rows_at(warehouse, topic, snapshot.version(topic), snapshot.position) for topic in MONEY}
        check_whole(self.ledger, seen)
        if not read_only:
            missing = {tag for tag in before if self.ledger.promises[tag].rows} - tags_of(seen)
            assert not missing - only_scratch(self.ledger), f"committed, and not in a snapshot: {missing}"


# -- reading --------------------------------------------------------------------------------


def rows_at(warehouse: Warehouse, topic: str, version: int, position: int) -> list[dict]:
    """The rows of a public table at one version, committed at or below a position."""
    log = warehouse.topic_log(topic).public
    assert log.table.version == version
    rows = []
    for add in log.table.files:
        if int(add.partition_values["_commit"] or "") <= position:
            data = warehouse.store.get(f"{log.root}/{add.path}")
            assert data is not None, f"dangling reference: {add.path}"
            rows.extend(pq.read_table(pa.BufferReader(data.data)).to_pylist())
    return rows


def tags_of(seen: dict[str, list[dict]]) -> set[str]:
    return {row["account"] for rows in seen.values() for row in rows}


def only_scratch(ledger: Ledger) -> set[str]:
    return {tag for tag, promise in ledger.promises.items() if not any(promise.rows[topic] for topic in MONEY)}


def check_whole(ledger: Ledger, seen: dict[str, list[dict]]) -> None:
    """Every transaction is there whole or not at all, and no money is made or lost."""
    assert sum(row["amount"] for rows in seen.values() for row in rows) == 0
    for tag in tags_of(seen):
        promise = ledger.promises[tag]
        assert promise.fate is not Fate.OPEN, f"visible, and never committed: {tag}"
        for topic in MONEY:
            assert sum(row["account"] == tag for row in seen[topic]) == promise.rows[topic], f"torn: {tag}"
