"""What the tellers of a simulation do with money that only moves, and how auditors look at it.

All amounts always sum up to nothing: the checker judges by the operation log.
"""

from __future__ import annotations

from typing import Any

from tests.checker.operations import Level, Read
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.actor import DAY_MS, Action, Actor
from tests.simulation.journal import Draft, stubbornly
from tests.simulation.recorded import COLUMNS, RecordedProducer, look, read
from txntable.errors import CommitStateUnknownError, DamagedDataError, OffsetOutOfRangeError, TxnTableError
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import open_on

MONEY = ("debit", "credit")
SCRATCH = "scratch"
TELLERS = ("x", "y")
ACCOUNTS = ("ann", "bob", "eve")
# Short enough for expiry to meet transactions, long enough for every timeout.
SETTINGS = WarehouseSettings(
    vacuum_retention_ms=DAY_MS,
    transactional_id_expiration_ms=30 * 60_000,
    producer_id_expiration_ms=15 * 60_000,
    batch_retention_ms=DAY_MS,
    # A copy is exact for as long as the group's offsets are there, and days pass.
    offsets_retention_ms=400 * DAY_MS,
    snapshot_retention_ms=60_000,
)


class Auditor(Actor):
    """Reads everything at once, now and in the past, also with a reader's credentials."""

    def actions(self) -> list[Action]:
        """Look, mostly."""
        return [self.look, self.look, self.look_back, self.scan, self.pause, self.sleep]

    def look(self) -> None:
        """Take a snapshot; and look for what hangs."""
        if self.random.random() < 0.3:
            warehouse = open_on(ReadOnlyStore(self.process.store()), self.site.environment())
            read(self.witness, warehouse, Read(Level.SNAPSHOT, as_of=True), MONEY)
            return
        read(self.witness, self.warehouse, Read(Level.SNAPSHOT), MONEY)
        look(self.witness, self.warehouse.transactions.log)
        assert self.warehouse.admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []

    def look_back(self) -> None:
        """Take a snapshot of the past; what maintenance took is refused, never shown in part."""
        head = self.warehouse.transactions.refresh()
        position = max(0, head - self.random.choice([0, 1, 2, 5, 10]))
        try:
            read(self.witness, self.warehouse, Read(Level.SNAPSHOT, as_of=True), MONEY, position)
        except OffsetOutOfRangeError:
            return

    def scan(self) -> None:
        """Read topic after topic, below their last stable offsets or all that there is."""
        level = self.random.choice([Level.COMMITTED, Level.UNCOMMITTED])
        read(self.witness, self.warehouse, Read(level), MONEY)


class Teller(Auditor):
    """Moves money in transactions, or plainly."""

    in_a_row = (1, 3)

    def owner(self) -> str:
        """Whose transactions the next ones are."""
        return self.random.choice(TELLERS)

    def actions(self) -> list[Action]:
        """Move money, mostly."""
        return [*[self.transfer] * 6, *[self.plain] * 2, self.complete, self.look, self.scan, self.sleep]

    def transfer(self) -> None:
        """Some transactions of one owner, who may be someone else's, too."""
        producer = self.producer(self.owner())
        producer.init()
        self.maybe_sleep(0.05)
        for _ in range(self.random.randint(*self.in_a_row)):
            batch = self.random.choice([None, None, "monday", "tuesday", self.random.randrange(6)])
            try:
                self.transact(producer, batch)
            except DamagedDataError:
                raise
            except TxnTableError as error:
                # After an unknown commit only the same may be asked again: later, when others have had the id.
                if isinstance(error, CommitStateUnknownError):
                    self.ask_again(producer)
                    return
                if self.random.random() < 0.1 or producer.txn is None:
                    return
                producer.abort()
            self.maybe_sleep(0.1)

    def ask_again(self, producer: RecordedProducer) -> None:
        """Learn late what became of a commit: others' transactions of the id are committed, aborted or open by then."""
        if producer.is_ending:
            self.process.rest(self.random.choice([10, 60, 300]), 0)
            self.maybe_sleep(0.3)
            producer.commit()

    def transact(self, producer: RecordedProducer, batch: str | int | None) -> None:
        """One transaction, which may change its mind."""
        producer.txn = None
        producer.begin(batch)
        self.fill(producer)
        if self.random.random() < 0.2:
            producer.abort()
        else:
            producer.commit()

    def fill(self, producer: RecordedProducer) -> None:
        """Take money here and give it there."""
        for _ in range(self.random.choice([1, 1, 2, 0])):
            amount = self.random.randint(1, 99)
            drafts = [self.draft(topic, sign * amount) for topic, sign in zip(MONEY, (1, -1), strict=True)]
            if SCRATCH in self.topics and self.random.random() < 0.15:
                drafts.append(self.draft(SCRATCH, 0))
            producer.send(drafts, flush=self.random.random() >= 0.2)

    def draft(self, topic: str, amount: int, partition: int | None = None) -> Draft:
        """A record of some account."""
        place = self.partition() if partition is None and topic != SCRATCH else partition
        return Draft(topic, self.witness.name("v"), self.random.choice(ACCOUNTS), amount, place)

    def plain(self) -> None:
        """Append debits with their credits, without a transaction."""
        producer = self.producer()
        for _ in range(self.random.randint(1, 2)):
            topic, partition = self.random.choice(MONEY), self.random.choice([0, 1])
            amount = self.random.randint(1, 99)
            producer.send([self.draft(topic, sign * amount, partition) for sign in (1, -1)], together=True)

    def scratch(self) -> None:
        """Delete a topic in the middle of whatever goes on, or create it again."""
        admin = self.warehouse.admin()
        if SCRATCH in admin.list_topics():
            stubbornly(lambda: admin.delete_topic(SCRATCH))
        else:
            admin.create_topic(SCRATCH, partitions=self.random.randint(1, 3), schema=COLUMNS, exist_ok=True)


class Cashier(Teller):
    """A teller who moves money all the time, mostly under an id that nobody else has."""

    in_a_row = (2, 8)

    def actions(self) -> list[Action]:
        """Move money."""
        return [self.transfer]

    def owner(self) -> str:
        """Its own id, mostly."""
        return self.random.choice([self.process.name, self.process.name, self.process.name, *TELLERS])

    def producer(self, owner: str | None = None, **settings: Any) -> RecordedProducer:
        """A producer, when the others have theirs."""
        made = super().producer(owner, **settings)
        self.process.rest(self.random.choice([0, 1, 3]), 0)
        return made

    def fill(self, producer: RecordedProducer) -> None:
        """Take money here and give it there, at once."""
        amount = self.random.randint(1, 99)
        producer.send(
            [self.draft(topic, sign * amount) for topic, sign in zip(MONEY, (1, -1), strict=True)], flush=False
        )


class Founder(Teller):
    """A teller who also deletes and makes topics, and adds partitions."""

    def actions(self) -> list[Action]:
        """Move money beside it."""
        return [self.transfer, self.scratch, self.grow, self.transfer, self.scratch, self.plain]

    def grow(self) -> None:
        """Add a partition to one topic."""
        topic = self.random.choice(MONEY)
        partitions = self.warehouse.topic_log(topic).settings().partitions
        if partitions < 4:
            self.warehouse.admin().create_partitions({topic: partitions + 1})
