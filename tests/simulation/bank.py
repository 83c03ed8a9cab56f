"""What the tellers of a simulation do with money that only moves, and what they were promised.

All amounts always sum up to nothing; each transaction writes rows of its own tag, so that a part of one is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from tests.simulation.site import TWO_COLUMNS
from tests.simulation.turns import JUMPS_MS, Process
from txntable.client.producer import Producer
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    DamagedDataError,
    RetriableError,
    TxnTableError,
)
from txntable.log.cleanup import clean_up
from txntable.testing.read_only_store import ReadOnlyStore
from txntable.warehouse import open_on
from txntable.warehouse_settings import WarehouseSettings

MONEY = ("debit", "credit")
SCRATCH = "scratch"
TELLERS = ("x", "y")
TRIES = 5
DAY_MS = 86_400_000
# Short enough for expiry to meet transactions, long enough for every timeout.
SETTINGS = WarehouseSettings(
    vacuum_retention_ms=DAY_MS,
    transactional_id_expiration_ms=30 * 60_000,
    producer_id_expiration_ms=15 * 60_000,
    batch_retention_ms=DAY_MS,
)


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
    batch: str | int | None = None
    owner: str | None = None


@dataclass
class Ledger:
    """What was promised to whom."""

    promises: dict[str, Promise] = field(default_factory=dict)
    epochs: dict[tuple[int | None, int | None], Producer] = field(default_factory=dict)

    def promise(self, tag: str, batch: str | int | None = None, owner: str | None = None) -> Promise:
        self.promises[tag] = Promise(tag, batch=batch, owner=owner)
        return self.promises[tag]

    def wrote(self, producer: Producer) -> None:
        """Take note of whose an epoch is: a transaction has one producer."""
        owner = self.epochs.setdefault((producer.producer_id, producer.producer_epoch), producer)
        assert owner is producer, f"two producers under one epoch: {producer.producer_id} {producer.producer_epoch}"

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
    """A process that does a few things that a user does; a kind of it says which."""

    def __init__(self, process: Process, ledger: Ledger) -> None:
        self.process, self.random, self.ledger = process, process.random, ledger
        self.site = process.turns.site
        self.tags = 0

    def actions(self) -> list[Callable[[], object]]:
        raise NotImplementedError

    def run(self) -> None:
        while True:
            try:
                self.warehouse = open_on(self.process.store(), self.site.environment())
                break
            except RetriableError:
                continue
        actions = self.actions()
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

    def producer(self, owner: str | None) -> Producer:
        """A producer whose records leave one by one, or all at flush."""
        return self.warehouse.producer(
            owner,
            transaction_timeout_ms=60_000,
            enable_idempotence=owner is not None or self.random.random() < 0.7,
            batch_size=self.random.choice([1, 1_000_000]),
            partitioner=self.random.choice(["default", "round_robin"]),
        )

    def send(self, producer: Producer, topic: str, tag: str, amount: int) -> None:
        rows = pa.Table.from_pylist([{"account": tag, "amount": amount}], TWO_COLUMNS)
        producer.send(topic, rows=rows, partition=self.random.choice([None, 0, 1]))
        self.ledger.promises[tag].rows[topic] += 1

    def maybe_jump(self, chance: float) -> None:
        if self.random.random() < chance:
            self.sleep()

    def sleep(self) -> None:
        self.site.advance_ms(self.random.choice(JUMPS_MS))

    def fill(self, producer: Producer, promise: Promise) -> None:
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            amount = self.random.randint(1, 99)
            for topic, sign in zip(MONEY, (1, -1), strict=True):
                self.send(producer, topic, promise.tag, sign * amount)
            if self.random.random() < 0.15:
                producer.send(SCRATCH, row={"account": promise.tag, "amount": 1})
                promise.rows[SCRATCH] += 1
            if self.random.random() < 0.3:
                if not stubbornly(producer.flush):
                    producer.flush()
                self.ledger.wrote(producer)

    def look(self) -> None:
        """Read a snapshot, like anybody or with a reader's credentials; and look for what hangs."""
        read_only = self.random.random() < 0.3
        before = self.ledger.committed()
        warehouse = self.warehouse
        if read_only:
            warehouse = open_on(ReadOnlyStore(self.process.store()), self.site.environment())
        snapshot = warehouse.snapshot()
        seen = {topic: snapshot.read_arrow(topic).read_all().to_pylist() for topic in MONEY}
        check_whole(self.ledger, seen)
        if not read_only:
            missing = {tag for tag in before if self.ledger.promises[tag].rows} - tags_of(seen)
            assert not missing - only_scratch(self.ledger), f"committed, and not in a snapshot: {missing}"
            assert warehouse.admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []

    def checkpoint(self) -> None:
        self.any_log().write_checkpoint()

    def clean(self) -> None:
        clean_up(self.warehouse.context, self.any_log().root, DAY_MS)

    def any_log(self):
        topic = self.warehouse.topic_log(self.random.choice([*MONEY, SCRATCH]))
        return self.random.choice([self.warehouse.transactions.log, topic.segments, topic.public])


class Teller(Actor):
    """Moves money in transactions, or plainly, while topics come and go."""

    def actions(self) -> list[Callable[[], object]]:
        often = [self.transfer] * 6 + [self.plain] * 2 + [self.complete] * 2 + [self.look] * 2
        return [*often, self.checkpoint, self.clean, self.scratch, self.sleep]

    def transfer(self) -> None:
        owner = self.random.choice(TELLERS)
        producer = self.producer(owner)
        if not stubbornly(producer.init_transactions):
            return
        self.maybe_jump(0.05)
        for _ in range(self.random.randint(1, 3)):
            batch = self.random.choice([None, None, "monday", "tuesday", self.random.randrange(6)])
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
            self.maybe_jump(0.1)

    def commit(self, producer: Producer, promise: Promise) -> None:
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
        """Flush debits with their credits, each of which is on its own: a full batch may go before the others."""
        producer = self.producer(None)
        for _ in range(self.random.randint(1, 2)):
            asked = []
            topic = self.random.choice(MONEY)
            for amount in [self.random.randint(1, 99) for _ in range(self.random.choice([1, 1, 4]))]:
                promise = self.ledger.promise(self.tag())
                promise.fate = Fate.ASKED
                rows = [{"account": promise.tag, "amount": sign * amount} for sign in (1, -1)]
                promise.rows[topic] = 2
                table = pa.Table.from_pylist(rows, TWO_COLUMNS)
                producer.send(topic, rows=table, partition=self.random.randrange(2))
                asked.append(promise)
            if not stubbornly(producer.flush):
                return
            for promise in asked:
                promise.fate = Fate.COMMITTED

    def complete(self) -> None:
        self.warehouse.complete()

    def scratch(self) -> None:
        """Delete a topic in the middle of whatever goes on, or create it again."""
        admin = self.warehouse.admin()
        if SCRATCH in admin.list_topics():
            admin.delete_topic(SCRATCH)
        else:
            admin.create_topic(SCRATCH, partitions=self.random.randint(1, 3), schema=TWO_COLUMNS, exist_ok=True)


# -- reading --------------------------------------------------------------------------------


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
