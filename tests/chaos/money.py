"""What the processes of a chaos run do, each of them for ever: money that moves, events that are copied.

A program takes one turn after the other; what a turn raises, it recovers from as a user would.  None of them knows
that it is killed and paused.
"""

from __future__ import annotations

from functools import partial

from tests.chaos.life import Life, RecordedConsumer, RecordedProducer, as_offsets
from tests.chaos.premises import ACCOUNTS, BATCH_MS, COPIERS, EVENTS, FOLLOWERS, MIRROR, PARTITIONS
from tests.chaos.program import Program
from tests.checker.operations import CommitOffsets, Level, Seen, Write
from txntable.coordinator.batch_memory import BatchId
from txntable.errors import BatchAlreadyCommittedError, BatchOutOfOrderError, TxnTableError

_MOST_POLLED = 40


class Teller(Program):
    """Moves money between accounts of both topics in transactions; now and then an event goes with it."""

    def __init__(self, life: Life, transactional_id: str) -> None:
        super().__init__(life)
        self.transactional_id = transactional_id
        self.producer: RecordedProducer | None = None

    def turn(self) -> None:
        producer = self.started()
        producer.begin()
        self.move_money(producer)

    def started(self) -> RecordedProducer:
        """Return a producer that has the id."""
        if self.producer is None:
            producer = RecordedProducer(self.life, self.transactional_id)
            producer.init()
            self.producer = producer
        return self.producer

    def move_money(self, producer: RecordedProducer) -> None:
        """Inside a transaction: take money, give it elsewhere, and end; what is sent last may go with the end."""
        portions = [portion for _ in range(self.chance.choice([1, 1, 2])) for portion in self.moved()]
        late = portions.pop() if self.chance.random() < 0.3 else []
        for portion in portions:
            producer.append(portion)
            self.life.rest(self.chance.choice([0, 0, 20, 200]))
        end = producer.abort if self.chance.random() < 0.2 else producer.commit
        if late:
            producer.append(late, end)
        else:
            end()

    def moved(self) -> list[list[Write]]:
        """Return the records of one transfer, in one append or in several."""
        amount = self.chance.randint(1, 99)
        records = [self.write(self.chance.choice(ACCOUNTS), sign * amount) for sign in (-1, 1)]
        if self.chance.random() < 0.3:
            records.append(self.write(EVENTS))
        return [records] if self.chance.random() < 0.5 else [[record] for record in records]

    def write(self, topic: str, amount: int = 0) -> Write:
        """Return a record for one of the topic's partitions."""
        return Write((topic, self.chance.randrange(PARTITIONS)), self.life.label(), amount=amount)

    def recover(self, error: TxnTableError) -> None:
        """Abort, or begin as a new producer: always where nobody knows what became of the transaction."""
        producer, self.producer = self.producer, None
        may_abort = producer is not None and producer.real.state in ("IN_TRANSACTION", "ABORTABLE_ERROR")
        if producer is not None and producer.txn is not None and may_abort and self.chance.random() < 0.8:
            producer.abort()
            self.producer = producer


class Batcher(Teller):
    """Runs what a scheduler fires: one batch in each interval, which another process runs, too."""

    def __init__(self, life: Life, transactional_id: str, *, counted: bool) -> None:
        super().__init__(life, transactional_id)
        self.counted = counted
        self.done: BatchId | None = None

    def turn(self) -> None:
        number = self.life.environment.instant().boot_ms // BATCH_MS
        batch = number if self.counted else f"run {number}"
        if batch == self.done:
            self.life.rest(BATCH_MS / 4)
            return
        producer = self.started()
        try:
            producer.begin(batch)
        except (BatchAlreadyCommittedError, BatchOutOfOrderError):
            self.done = batch
            return
        self.move_money(producer)


class Appender(Program):
    """Appends events outside of transactions."""

    def __init__(self, life: Life, *, idempotent: bool) -> None:
        super().__init__(life)
        self.idempotent = idempotent
        self.producer: RecordedProducer | None = None

    def turn(self) -> None:
        if self.producer is None or self.chance.random() < 0.02:
            self.producer = RecordedProducer(self.life, idempotent=self.idempotent)
        count = self.chance.choice([1, 2, 5])
        self.producer.append(
            [Write((EVENTS, self.chance.randrange(PARTITIONS)), self.life.label()) for _ in range(count)]
        )
        self.life.rest(300)

    def recover(self, error: TxnTableError) -> None:
        self.producer = None


class Copier(Teller):
    """Copies the events as a member of a group, whose offsets are in the transaction."""

    def __init__(self, life: Life, transactional_id: str, instance_id: str | None = None) -> None:
        super().__init__(life, transactional_id)
        self.instance_id = instance_id
        self.consumer: RecordedConsumer | None = None

    def turn(self) -> None:
        if self.consumer is None:
            self.consumer = RecordedConsumer(self.life, [EVENTS], COPIERS, instance_id=self.instance_id)
        producer, consumer = self.started(), self.consumer
        producer.begin()
        records = consumer.poll(self.chance.choice([1, 5, _MOST_POLLED]), producer.txn)
        if not records:
            producer.abort()
            return
        copies = [copy_of(record, producer.txn) for record in records]
        send_offsets = partial(self.send_offsets, producer, consumer, consumer.offsets_after(records, producer.txn))
        if self.chance.random() < 0.5:
            producer.append(copies, send_offsets)
        else:
            producer.append(copies)
            self.life.rest(self.chance.choice([0, 0, 50]))
            send_offsets()
        if self.chance.random() < 0.1:
            producer.abort()
            consumer.rewind()
        else:
            producer.commit()

    def send_offsets(self, producer: RecordedProducer, consumer: RecordedConsumer, offsets: CommitOffsets) -> None:
        """Send them in one of the two ways that there are."""
        metadata = consumer.real.group_metadata()
        ways = [
            lambda: producer.real.send_offsets_of(consumer.real),
            lambda: producer.real.send_offsets_to_transaction(as_offsets(offsets), metadata),
        ]
        producer.send_offsets(offsets, self.chance.choice(ways))

    def recover(self, error: TxnTableError) -> None:
        """Read again what was not copied; whether a commit of unknown outcome happened, the group knows."""
        try:
            super().recover(error)
        finally:
            if error.code == "FENCED_INSTANCE_ID" or self.chance.random() < 0.05:
                self.consumer = None
            if self.consumer is not None:
                self.consumer.rewind()


def copy_of(record: Seen, txn: str | None) -> Write:
    """Return a copy; a second try at the same record is another one."""
    (_, partition) = record.place
    return Write((MIRROR, partition), f"{record.value} by {txn}", source=(record.place, record.offset))


class Follower(Program):
    """Reads accounts as a member of a group that commits plainly, after it has read: at least once."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        self.consumer: RecordedConsumer | None = None

    def turn(self) -> None:
        if self.consumer is None:
            self.consumer = RecordedConsumer(self.life, ACCOUNTS, FOLLOWERS)
        records = self.consumer.poll(_MOST_POLLED)
        if records and self.chance.random() < 0.7:
            self.consumer.commit(records)
        self.life.rest(100)

    def recover(self, error: TxnTableError) -> None:
        if self.consumer is not None:
            self.consumer.rewind()


class Watcher(Program):
    """Reads all topics from their starts on, without a group."""

    def __init__(self, life: Life, level: Level) -> None:
        super().__init__(life)
        self.consumer = RecordedConsumer(life, list(life.scenario.topics), level=level)

    def turn(self) -> None:
        self.consumer.poll(500)
        self.life.rest(200)
