"""What happens to topics of which records go: compaction by key, retention, deletion; and who reads on meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.checker.operations import Level, Maintain, Read
from tests.simulation.actor import Action, Actor
from tests.simulation.journal import Draft, Journal
from tests.simulation.recorded import RecordedProducer, look, read
from tests.simulation.recorded_consumer import RecordedConsumer
from tests.simulation.turns import Process
from tests.simulation.upkeep import Compactor
from txntable.errors import CommitStateUnknownError, DamagedDataError, OffsetOutOfRangeError, TxnTableError
from txntable.format.records import TopicPartition

MINUTE_MS = 60_000
BALANCES, KEPT, EVENTS = "balances", "kept", "events"
KEYED = (BALANCES, KEPT, EVENTS)
KEYS = ("a", "b", "c", "d")
OWNERS = ("k", "l")
_COMPACTED = {
    "segment.bytes": "3000",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": str(30 * MINUTE_MS),
}
CONFIG: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        BALANCES: {"cleanup.policy": "compact", **_COMPACTED},
        KEPT: {"cleanup.policy": "compact,delete", "retention.ms": "-1", **_COMPACTED, "delete.retention.ms": "0"},
        EVENTS: {"cleanup.policy": "delete", "segment.bytes": "3000", "retention.ms": str(20 * MINUTE_MS)},
    }
)


class Keeper(Actor):
    """Writes what is so far, key by key: in transactions and without, and deletes keys."""

    def actions(self) -> list[Action]:
        """Write, mostly."""
        return [*[self.transact] * 4, *[self.plain] * 3, self.sleep, self.sleep, self.complete]

    def transact(self) -> None:
        """Some transactions over several topics."""
        producer = self.producer(self.random.choice(OWNERS))
        producer.init()
        for _ in range(self.random.randint(1, 3)):
            producer.txn = None
            try:
                producer.begin()
                self.fill(producer)
                if self.random.random() < 0.2:
                    producer.abort()
                else:
                    producer.commit()
            except DamagedDataError:
                raise
            except TxnTableError as error:
                if isinstance(error, CommitStateUnknownError) or producer.txn is None:
                    return
                producer.abort()
            self.maybe_sleep(0.1)

    def plain(self) -> None:
        """Append without a transaction."""
        self.fill(self.producer())

    def fill(self, producer: RecordedProducer) -> None:
        """Send some records; a key is always in the same partition."""
        for _ in range(self.random.choice([1, 2])):
            topic = self.random.choice(self.topics)
            drafts = [self.draft(topic) for _ in range(self.random.choice([1, 2, 4]))]
            producer.send(drafts, flush=producer.txn is None or self.random.random() >= 0.2)

    def draft(self, topic: str) -> Draft:
        """The next record of some key."""
        dead = topic != EVENTS and self.random.random() < 0.2
        return Draft(topic, self.witness.name("v"), self.random.choice(KEYS), dead=dead)


class Eraser(Compactor):
    """Deletes records and changes settings, beside compaction by key and retention."""

    def actions(self) -> list[Action]:
        """Delete and compact."""
        return [self.delete, self.compact, self.delete, self.compact, self.delete, self.alter, self.sleep, self.clean]

    def delete(self) -> None:
        """Delete what is before some offset."""
        topic = self.random.choice([EVENTS, KEPT])
        partition = TopicPartition(topic, self.random.choice([0, 1]))
        admin = self.warehouse.admin()
        end = admin.delete_records({partition: None}, validate_only=True)[partition]
        before = self.random.choice([end, end // 2, max(0, end - 1), 1 if end else 0])
        with self.witness.calling(Maintain("delete_records", topic)):
            found = admin.delete_records({partition: before})[partition]
        assert found >= before, "what was deleted is gone"

    def alter(self) -> None:
        """Keep records shorter, or for ever."""
        changes = {"retention.ms": self.random.choice(["-1", str(20 * MINUTE_MS), str(200 * MINUTE_MS)])}
        self.warehouse.admin().alter_configs(self.random.choice([EVENTS, KEPT]), changes)


class Follower(Actor):
    """Reads on, a little at a time, at one level; and looks at everything now and then."""

    most_actions = 6

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        super().__init__(process, journal, topics)
        self.consumer: RecordedConsumer | None = None

    def actions(self) -> list[Action]:
        """Poll, mostly."""
        return [*[self.poll] * 6, self.pause, self.sleep, self.scan, self.scan, self.look_back]

    def poll(self) -> None:
        """Read on from where it is; what was deleted meanwhile is passed over."""
        if self.consumer is None:
            level = self.random.choice(["read_committed", "read_uncommitted"])
            made = self.warehouse.consumer(isolation_level=level, auto_offset_reset="earliest", prefetch=False)
            consumer = RecordedConsumer(made, self.witness)
            consumer.assign([(topic, partition) for topic in self.topics for partition in range(2)])
            self.consumer = consumer
        for _ in range(self.random.randint(1, 3)):
            self.consumer.poll(self.random.choice([500, 1, 3]))

    def scan(self) -> None:
        """Read whole topics."""
        level = self.random.choice([Level.SNAPSHOT, Level.COMMITTED, Level.UNCOMMITTED])
        read(self.witness, self.warehouse, Read(level), self.topics)
        look(self.witness, self.warehouse.topic_log(self.topics[0]).segments)

    def look_back(self) -> None:
        """Read a snapshot of the past, if it is kept."""
        head = self.warehouse.transactions.refresh()
        try:
            wanted = Read(Level.SNAPSHOT, as_of=True)
            read(self.witness, self.warehouse, wanted, self.topics, max(0, head - self.random.choice([0, 1, 3])))
        except OffsetOutOfRangeError:
            return
