"""What the processes of a simulation of consumer groups do: one fills a topic, others copy it together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.checker.operations import Place, Seen
from tests.simulation.actor import Action, Actor
from tests.simulation.journal import Draft, Journal, Witness
from tests.simulation.recorded import RecordedProducer
from tests.simulation.recorded_consumer import RecordedConsumer
from tests.simulation.turns import Process
from txntable.consumer.consumer import Consumer
from txntable.errors import CommitStateUnknownError, TxnTableError
from txntable.warehouse.warehouse import Warehouse

IN, OUT = "in", "out"
COPIERS, READERS = "copiers", "readers"
STRATEGIES = (["range", "cooperative-sticky"], ["cooperative-sticky"], ["roundrobin", "cooperative-sticky"])
SOURCE_KEYS = ("ann", "bob", "eve", "ida")

Polled = Sequence[tuple[Seen, str | None]]


def member_of(warehouse: Warehouse, group: str, **settings: object) -> Consumer:
    """A consumer that begins at the log start, and beats in its own calls."""
    made = {"auto_offset_reset": "earliest", "background_heartbeat": False, "prefetch": False, "group_id": group}
    return warehouse.consumer(**{**made, "default_api_timeout_ms": 1_000, **settings})  # type: ignore[arg-type]


class Source(Actor):
    """Fills the topic in transactions, and lets it grow; a key stays in the partition where it was born."""

    most_actions = 6

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        super().__init__(process, journal, topics)
        self.sender: RecordedProducer | None = None
        self.homes: dict[str, int] = {}

    def actions(self) -> list[Action]:
        """Write, mostly."""
        return [*[self.write] * 8, self.pause, self.grow]

    def write(self) -> None:
        """One transaction, or an abort."""
        producer = self.sender
        if producer is None:
            producer = self.producer(self.process.name, transaction_timeout_ms=600_000)
            producer.init()
            self.sender = producer
        producer.begin()
        producer.send([self.draft() for _ in range(self.random.choice([2, 1, 4]))])
        if self.random.random() < 0.2:
            producer.abort()
        else:
            producer.commit()

    def draft(self) -> Draft:
        """The next record of some key of this process."""
        key = f"{self.process.name}/{self.random.choice(SOURCE_KEYS)}"
        if key not in self.homes:
            self.homes[key] = self.random.randrange(self.warehouse.topic_log(IN).settings().partitions)
        return Draft(IN, self.witness.name("v"), key, partition=self.homes[key])

    def grow(self) -> None:
        """Add a partition."""
        partitions = self.warehouse.topic_log(IN).settings().partitions
        if partitions < 4:
            self.warehouse.admin().create_partitions({IN: partitions + 1})

    def recover(self, error: TxnTableError) -> None:
        """Begin again with another producer."""
        self.sender = None


class Member(Actor):
    """A consumer of a group."""

    group: str
    auto_commit = False
    most_actions = 8

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        super().__init__(process, journal, topics)
        self.consumer: RecordedConsumer | None = None

    def run(self) -> None:
        """Come some time after the others, and leave at the end, or not."""
        if self.random.random() < 0.3:
            self.process.pause()
        super().run()
        if self.consumer is not None and self.random.random() < 0.5:
            try:
                self.consumer.consumer.close()
            except TxnTableError:
                return

    def consuming(self) -> RecordedConsumer:
        """The member."""
        if self.consumer is None:
            consumer = RecordedConsumer(
                member_of(
                    self.warehouse,
                    self.group,
                    max_poll_records=self.random.choice([500, 1, 3]),
                    enable_auto_commit=self.auto_commit,
                    partition_assignment_strategy=self.random.choice(STRATEGIES),
                    group_instance_id=self.process.name if self.random.random() < 0.2 else None,
                ),
                self.witness,
            )
            consumer.subscribe([IN])
            self.consumer = consumer
        return self.consumer

    def dawdle(self) -> None:
        """Let the others go on, sometimes for longer than a session."""
        if self.random.random() < 0.4:
            self.process.pause()
            if self.random.random() < 0.3:
                self.site.advance_ms(50_000)
                self.process.pause()


class Reader(Member):
    """Reads and commits then, plainly: at least once."""

    group = READERS

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        super().__init__(process, journal, topics)
        self.auto_commit = self.random.random() < 0.3

    def actions(self) -> list[Action]:
        """Poll, mostly."""
        return [*[self.poll] * 6, self.fetch, self.pause, self.rewind]

    def poll(self) -> None:
        """Read on, and commit."""
        consumer = self.consuming()
        consumer.poll()
        if not self.auto_commit and self.random.random() >= 0.2:
            consumer.commit()

    def fetch(self) -> None:
        """Ask where the group is."""
        partitions = self.warehouse.topic_log(IN).settings().partitions
        self.consuming().fetch([(IN, partition) for partition in range(partitions)])

    def rewind(self) -> None:
        """Go back to what is committed."""
        self.consuming().rewind()


class Copier(Member):
    """Copies in transactions that commit its offsets, too: exactly once, whatever happens."""

    group = COPIERS

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        super().__init__(process, journal, topics)
        self.sender: RecordedProducer | None = None

    def actions(self) -> list[Action]:
        """Copy, mostly."""
        return [*[self.copy] * 9, self.pause]

    def copy(self) -> None:
        """One transaction."""
        consumer = self.consuming()
        producer = self.sender
        if producer is None:
            producer = self.producer(self.process.name, transaction_timeout_ms=self.random.choice([60_000, 600_000]))
            producer.init()
            self.sender = producer
        producer.begin()
        self.random.choice(self.ways())(consumer, producer)
        producer.commit()
        if self.random.random() < 0.1:
            self.consumer = None
            consumer.consumer.close()

    def ways(self) -> list[Callable[[RecordedConsumer, RecordedProducer], None]]:
        """How it copies."""
        return [self.copy_polled, self.copy_polled_twice, self.copy_range, self.copy_named]

    def copy_polled(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Poll once."""
        self.write(producer, consumer.poll(txn=producer.txn))
        consumer.send_offsets(producer)
        self.dawdle()

    def copy_polled_twice(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Poll several times, with a rebalance in between."""
        self.write(producer, consumer.poll(txn=producer.txn))
        if self.random.random() < 0.5:
            consumer.send_offsets(producer)
        for _ in range(self.random.randint(1, 2)):
            self.dawdle()
            self.write(producer, consumer.poll(txn=producer.txn))
        consumer.send_offsets(producer)
        self.dawdle()

    def copy_named(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Count offsets oneself, as Kafka's users do."""
        polled = consumer.poll(txn=producer.txn)
        self.write(producer, polled)
        consumer.send_polled(producer, [one for one, _ in polled])

    def copy_range(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Read a range of what is committed."""
        found = consumer.read(self.random.choice([None, 2]), producer.txn)
        self.dawdle()
        self.write(producer, found)
        consumer.send_offsets(producer)

    def write(self, producer: RecordedProducer, polled: Polled) -> None:
        """Send the copies."""
        if polled:
            producer.send(copies_of(polled, self.witness), flush=self.random.random() >= 0.3)

    def recover(self, error: TxnTableError) -> None:
        """What was read is read again; a commit of unknown outcome is the next producer's to find out."""
        producer = self.sender
        if producer is not None and producer.producer.state in ("IN_TRANSACTION", "ABORTABLE_ERROR"):
            try:
                producer.abort()
            except TxnTableError:
                self.sender = None
        if isinstance(error, CommitStateUnknownError) or error.fatal or self.random.random() < 0.2:
            self.sender = None
        if self.sender is not None and self.sender.producer.state != "READY":
            self.sender = None
        if error.code == "FENCED_INSTANCE_ID" or self.random.random() < 0.1:
            self.consumer = None
        elif self.consumer is not None:
            try:
                self.rewind(self.consumer)
            except TxnTableError:
                self.consumer = None

    def rewind(self, consumer: RecordedConsumer) -> None:
        """Go back to what is committed."""
        consumer.rewind()


def copies_of(polled: Polled, witness: Witness) -> list[Draft]:
    """The copies of records; each attempt at one has another value, which ends with the original's."""
    attempt = witness.name("copy")
    return [Draft(OUT, f"{attempt} of {one.value}", key, source=(one.place, one.offset)) for one, key in polled]


class Migrant(Copier):
    """Copies as Kafka's examples do: several polls, and then the positions of what is assigned by then."""

    def ways(self) -> list[Callable[[RecordedConsumer, RecordedProducer], None]]:
        """Only so, or at the second attempt."""
        return [self.copy_assigned, self.copy_after_an_abort]

    def rewind(self, consumer: RecordedConsumer) -> None:
        """Go back, by the call for it or as Kafka's users do."""
        if self.random.random() < 0.5:
            super().rewind(consumer)
        else:
            consumer.seek_back(sorted(consumer.consumer.assignment()))

    def copy_after_an_abort(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Abort for a reason of its own, go back in some of what is assigned, and write the rest again from memory.

        Who goes back in all of it, after the abort and before the next transaction, has nothing in memory.
        """
        polled: dict[tuple[Place, int], tuple[Seen, str | None]] = {}
        for _ in range(4):
            found = consumer.poll(txn=producer.txn)
            self.write(producer, found)
            polled |= {(one.place, one.offset): (one, key) for one, key in found}
            self.process.pause()
            self.site.advance_ms(self.random.choice([100, 100, 50_000]))
        assigned = sorted(consumer.consumer.assignment())
        back = assigned[: self.random.randint(0, len(assigned))]
        when = self.random.choice(["before the abort", "between", "between", "in the transaction"])
        kept = [each for (place, _), each in polled.items() if place not in back]
        if when == "before the abort":
            consumer.seek_back(back)
        producer.abort()
        if when == "between":
            consumer.seek_back(back)
            kept = [] if back and back == assigned else kept
        producer.begin()
        self.write(producer, kept)
        if when == "in the transaction":
            consumer.seek_back(back)
        self.copy_assigned(consumer, producer)

    def copy_assigned(self, consumer: RecordedConsumer, producer: RecordedProducer) -> None:
        """Poll several times; what was read of a partition that is lost by the end has no position any more.

        The group metadata are those of the end, or sometimes of the beginning.
        """
        asked_before = consumer.consumer.group_metadata() if self.random.random() < 0.3 else None
        for _ in range(self.random.randint(1, 3)):
            self.write(producer, consumer.poll(txn=producer.txn))
            self.dawdle()
        consumer.send_assigned(producer, asked_before)
        self.dawdle()


class Loner(Copier):
    """Copies ranges of all partitions without being a member: only the group's own offsets tell it from others."""

    def consuming(self) -> RecordedConsumer:
        """All partitions that there are."""
        if self.consumer is None:
            self.consumer = RecordedConsumer(
                member_of(self.warehouse, self.group, enable_auto_commit=False), self.witness
            )
        partitions = self.warehouse.topic_log(IN).settings().partitions
        self.consumer.assign([(IN, partition) for partition in range(partitions)])
        return self.consumer

    def ways(self) -> list[Callable[[RecordedConsumer, RecordedProducer], None]]:
        """Only by ranges."""
        return [self.copy_range]
