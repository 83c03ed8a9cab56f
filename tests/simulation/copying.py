"""What the processes of a simulation of consumer groups do: one fills a topic, others copy it together.

A record is named by its key and a number that rises per key, so that what is lost, doubled or out of order is seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.site import published
from tests.simulation.turns import Process
from txntable.client.consumer import Consumer
from txntable.client.group_commit import OffsetAndMetadata
from txntable.client.producer import Producer
from txntable.client.records import TopicPartition
from txntable.errors import CommitStateUnknownError, DamagedDataError, RetriableError, TxnTableError
from txntable.warehouse import Warehouse, open_on

IN, OUT = "in", "out"
COPIERS, READERS = "copiers", "readers"
STRATEGIES = (["range", "cooperative-sticky"], ["cooperative-sticky"], ["roundrobin", "cooperative-sticky"])


@dataclass
class Seen:
    """What readers without transactions have been given."""

    values: Counter[str] = field(default_factory=Counter)


class Actor:
    """A process that does one kind of thing a few times."""

    def __init__(self, process: Process, seen: Seen) -> None:
        self.process, self.random, self.seen = process, process.random, seen
        self.warehouse = self.stubbornly(lambda: open_on(process.store(), process.turns.site.environment()))

    def stubbornly(self, call: Callable[[], Warehouse]) -> Warehouse:
        while True:
            try:
                return call()
            except RetriableError:
                continue

    def run(self) -> None:
        for _ in range(self.random.randint(3, 10)):
            try:
                self.act()
            except DamagedDataError:
                raise
            except TxnTableError as error:
                self.recover(error)
            if self.random.random() < 0.2:
                self.process.pause()
        self.end()

    def act(self) -> None:
        raise NotImplementedError

    def recover(self, error: TxnTableError) -> None:
        pass

    def end(self) -> None:
        pass


class Source(Actor):
    """Fills the topic, and lets it grow; a key stays in the partition where it was born."""

    def __init__(self, process: Process, seen: Seen) -> None:
        super().__init__(process, seen)
        self.producer: Producer | None = None
        self.homes: dict[str, int] = {}
        self.numbers = Counter[str]()

    def act(self) -> None:
        if self.random.random() < 0.15:
            admin = self.warehouse.admin()
            (topic,) = admin.describe_topics([IN])
            admin.create_partitions({IN: topic.settings.partitions + 1})
            return
        if self.producer is None:
            self.producer = self.warehouse.producer("source", transaction_timeout_ms=600_000)
            self.producer.init_transactions()
        with self.producer.transaction() as txn:
            for _ in range(self.random.randint(1, 6)):
                key = f"{self.process.name}-{self.random.randrange(4)}"
                self.numbers[key] += 1
                value = f"{key}:{self.numbers[key]}"
                txn.send(IN, key=key.encode(), value=value.encode(), partition=self.home(key))
            if self.random.random() < 0.2:
                self.producer.flush()
                self.producer.abort_transaction()
                self.producer.begin_transaction()

    def home(self, key: str) -> int:
        if key not in self.homes:
            self.homes[key] = self.random.randrange(self.warehouse.topic_log(IN).settings().partitions)
        return self.homes[key]

    def recover(self, error: TxnTableError) -> None:
        self.producer = None


class Member(Actor):
    """A consumer of a group."""

    group: str
    auto_commit = False

    def __init__(self, process: Process, seen: Seen) -> None:
        super().__init__(process, seen)
        self.consumer: Consumer | None = None

    def consuming(self) -> Consumer:
        if self.consumer is None:
            consumer = member_of(
                self.warehouse,
                self.group,
                max_poll_records=self.random.choice([1, 3, 500]),
                enable_auto_commit=self.auto_commit,
                partition_assignment_strategy=self.random.choice(STRATEGIES),
                group_instance_id=self.process.name if self.random.random() < 0.2 else None,
            )
            consumer.subscribe([IN])
            self.consumer = consumer
        return self.consumer

    def end(self) -> None:
        if self.consumer is not None and self.random.random() < 0.5:
            self.consumer.close()


def member_of(warehouse: Warehouse, group: str, **settings: object) -> Consumer:
    """A consumer that begins at the log start, and beats in its own calls."""
    made = {"auto_offset_reset": "earliest", "background_heartbeat": False, "prefetch": False, "group_id": group}
    return warehouse.consumer(**{**made, "default_api_timeout_ms": 1_000, **settings})  # type: ignore[arg-type]


class Reader(Member):
    """Hands what it polls to nobody but :class:`Seen`, and commits then: at least once."""

    group = READERS

    def __init__(self, process: Process, seen: Seen) -> None:
        self.auto_commit = process.random.random() < 0.5
        super().__init__(process, seen)

    def act(self) -> None:
        consumer = self.consuming()
        for records in consumer.poll().values():
            self.seen.values.update((record.value or b"").decode() for record in records)
        if not self.auto_commit:
            consumer.commit()


class Copier(Member):
    """Copies in transactions that commit its offsets, too: exactly once, whatever happens."""

    group = COPIERS

    def __init__(self, process: Process, seen: Seen) -> None:
        super().__init__(process, seen)
        self.producer: Producer | None = None

    def act(self) -> None:
        consumer = self.consuming()
        if self.producer is None:
            timeout_ms = self.random.choice([60_000, 600_000])
            producer = self.warehouse.producer(self.process.name, transaction_timeout_ms=timeout_ms)
            producer.init_transactions()
            self.producer = producer
        self.random.choice(self.ways())(consumer, self.producer)
        if self.random.random() < 0.1:
            self.consumer = None
            consumer.close()

    def ways(self) -> list[Callable[[Consumer, Producer], None]]:
        return [self.copy_polled, self.copy_polled_twice, self.copy_range, self.copy_named]

    def copy_polled(self, consumer: Consumer, producer: Producer) -> None:
        with producer.transaction() as txn:
            self.polled(consumer, producer)
            txn.send_offsets(consumer)
            self.dawdle()

    def copy_polled_twice(self, consumer: Consumer, producer: Producer) -> None:
        with producer.transaction() as txn:
            self.polled(consumer, producer)
            if self.random.random() < 0.5:
                txn.send_offsets(consumer)
            for _ in range(self.random.randint(1, 3)):
                self.dawdle()
                self.polled(consumer, producer)
            txn.send_offsets(consumer)
            self.dawdle()

    def dawdle(self) -> None:
        """Let the others go on, sometimes for longer than a session."""
        if self.random.random() < 0.4:
            self.process.pause()
            if self.random.random() < 0.3:
                self.process.turns.site.advance_ms(50_000)
                self.process.pause()

    def copy_named(self, consumer: Consumer, producer: Producer) -> None:
        """Kafka's way: the user counts offsets itself."""
        with producer.transaction():
            offsets = self.polled(consumer, producer)
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())

    def copy_range(self, consumer: Consumer, producer: Producer) -> None:
        most = self.random.choice([None, 2])
        with producer.transaction() as txn:
            records = consumer.read_arrow(max_offsets_per_partition=most)
            self.dawdle()
            for row in records.read_all().to_pylist():
                producer.send(OUT, key=row["key"], value=row["value"])
            txn.send_offsets(consumer)

    def polled(self, consumer: Consumer, producer: Producer) -> dict[TopicPartition, OffsetAndMetadata | int]:
        offsets: dict[TopicPartition, OffsetAndMetadata | int] = {}
        for partition, records in consumer.poll().items():
            for record in records:
                producer.send(OUT, key=record.key, value=record.value)
            offsets[partition] = OffsetAndMetadata(records[-1].offset + 1, "copied")
        return offsets

    def recover(self, error: TxnTableError) -> None:
        """What was read is read again; a commit of unknown outcome is the next producer's to find out."""
        if isinstance(error, CommitStateUnknownError) or error.fatal or self.random.random() < 0.2:
            self.producer = None
        if self.producer is not None and self.producer.state != "READY":
            self.producer = None
        if error.code == "FENCED_INSTANCE_ID" or self.random.random() < 0.1:
            self.consumer = None
        elif self.consumer is not None:
            self.consumer.seek_to_committed()


class Loner(Copier):
    """Copies ranges of all partitions without being a member: only the group's own offsets tell it from others."""

    def consuming(self) -> Consumer:
        if self.consumer is None:
            self.consumer = member_of(self.warehouse, self.group, enable_auto_commit=False)
        partitions = self.warehouse.topic_log(IN).settings().partitions
        self.consumer.assign([TopicPartition(IN, partition) for partition in range(partitions)])
        return self.consumer

    def ways(self) -> list[Callable[[Consumer, Producer], None]]:
        return [self.copy_range]


# -- in the end -----------------------------------------------------------------------------


def finish(warehouse: Warehouse, seen: Seen, advance: Callable[[int], None]) -> None:
    """Nobody dies any more: one member of each group takes over what all have left."""
    producer = warehouse.producer("finisher", transaction_timeout_ms=60_000)
    producer.init_transactions()
    every = {TopicPartition(IN, p) for p in range(warehouse.topic_log(IN).settings().partitions)}
    copier, reader = (member_of(warehouse, group, enable_auto_commit=False) for group in (COPIERS, READERS))
    for consumer in (copier, reader):
        consumer.subscribe([IN])
        for _ in range(20):
            consumer.poll(max_records=1)
            if consumer.assignment() == every:
                break
            advance(16_000)
        assert consumer.assignment() == every, "what dead members had is free after their sessions"
        consumer.seek_to_committed()
    with producer.transaction() as txn:
        while polled := copier.poll():
            for records in polled.values():
                for record in records:
                    txn.send(OUT, key=record.key, value=record.value)
        txn.send_offsets(copier)
    while polled := reader.poll():
        seen.values.update((record.value or b"").decode() for records in polled.values() for record in records)
    reader.commit()


def by_key(warehouse: Warehouse, topic: str) -> dict[str, list[str]]:
    """The values of each key, in the order of their offsets."""
    found = defaultdict(list)
    for row in published(warehouse, topic):
        found[row["key"].decode()].append(row["value"].decode())
    return dict(found)
