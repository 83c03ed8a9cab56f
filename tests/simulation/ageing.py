"""A warehouse that ages by a seed: all kinds of producers and consumers on topics with all kinds of cleanup.

What each did, and what it was promised, is remembered; how the tables look inside is not its concern.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.simulation.site import Site
from txntable.consumer.consumer import Consumer
from txntable.errors import PolicyViolationError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse, create_on

# No two limits meet in one moment: what goes on takes whole minutes, and each limit half a one more.
MINUTE_MS = 60_000
SNAPSHOT_RETENTION_MS = 50 * MINUTE_MS + 30_000
DELETE_RETENTION_MS = 190 * MINUTE_MS + 30_000
COMPACTION_LAG_MS = 70 * MINUTE_MS + 30_000
SETTINGS = WarehouseSettings(snapshot_retention_ms=SNAPSHOT_RETENTION_MS)
EVENTS, ACCOUNTS, KEPT = "events", "accounts", "kept"
KEYS = tuple(f"k{number}" for number in range(6))
ACCOUNT_COLUMNS = pa.schema(
    [pa.field("account", pa.string()), pa.field("amount", pa.int64()), pa.field("tag", pa.string())]
)
SEGMENT_BYTES = ("3000", "6000", "134217728")
_BASE: list[Site] = []


def base() -> Site:
    """An empty warehouse, made once: the probe races threads, whose order no seed gives."""
    if not _BASE:
        site = Site()
        create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS)
        _BASE.append(site)
    return _BASE[0]


@dataclass
class Consuming:
    """A consumer in the middle of a topic, and what it has seen."""

    consumer: Consumer
    level: str
    seen: dict[int, list[tuple]] = field(default_factory=lambda: defaultdict(list))

    def poll(self, most: int | None = None) -> bool:
        found = self.consumer.poll(max_records=most)
        for partition, records in found.items():
            self.seen[partition.partition] += [
                (record.offset, record.row.get("tag"), record.value) for record in records
            ]
        return bool(found)


class Ageing:
    """The warehouse, whoever works in it, and what they were promised."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(f"ageing/{seed}")
        self.site = base().copy()
        self.writer, self.reader = self.site.open(), self.site.open()
        self.config: dict[str, dict[str, str]] = {}
        self.partitions = {topic: self.random.randint(1, 2) for topic in (EVENTS, ACCOUNTS, KEPT)}
        # Of each topic the tags that must be visible in the end, and those of transactions that are open.
        self.promised: dict[str, Counter[str]] = {topic: Counter() for topic in self.partitions}
        self.open: list[tuple[Producer, dict[str, Counter[str]]]] = []
        self.idempotent = self.writer.producer()
        self.tags = self.ids = self.columns = 0
        self._create_topics()
        self.consuming = {topic: [self._consumer(topic) for _ in range(2)] for topic in self.partitions}

    def _create_topics(self) -> None:
        for topic, policy in ((EVENTS, "delete"), (ACCOUNTS, "compact"), (KEPT, "compact,delete")):
            config = {"cleanup.policy": policy, "segment.bytes": self.random.choice(SEGMENT_BYTES)}
            if "delete" in policy:
                config["retention.ms"] = "-1"
            if "compact" in policy:
                config["delete.retention.ms"] = str(self.random.choice([0, DELETE_RETENTION_MS]))
                config["min.cleanable.dirty.ratio"] = self.random.choice(["0", "0", "0.5"])
                config["min.compaction.lag.ms"] = str(self.random.choice([0, COMPACTION_LAG_MS]))
                if self.random.random() < 0.3:
                    config["max.compaction.lag.ms"] = str(2 * COMPACTION_LAG_MS)
            self.config[topic] = config
            columns: Mapping[str, Any] = {"schema": ACCOUNT_COLUMNS, "key": ["account"]} if topic == ACCOUNTS else {}
            self.writer.admin().create_topic(topic, partitions=self.partitions[topic], config=config, **columns)

    def _consumer(self, topic: str) -> Consuming:
        level = self.random.choice(["read_committed", "read_uncommitted"])
        consumer = self.reader.consumer(auto_offset_reset="earliest", isolation_level=level)
        consumer.assign([TopicPartition(topic, p) for p in range(self.partitions[topic])])
        return Consuming(consumer, level)

    # -- what happens -----------------------------------------------------------------------

    def live(self, steps: int) -> None:
        """Let that many things happen."""
        often = [self.transact] * 5 + [self.append] * 3 + [self.pass_time] * 4
        for _ in range(steps):
            things = [*often, self.abort, self.leave_open, *[self.end_open] * 3, self.consume, self.consume]
            things += [self.commit_offsets, self.add_column, self.add_partition, self.come_back]
            self.random.choice(things)()

    def pass_time(self) -> None:
        self.site.advance_ms(self.random.choice([1, 1, 7, 20, 60, 200]) * MINUTE_MS)

    def transact(self) -> None:
        producer, sent = self._transaction()
        producer.commit_transaction()
        self._promise(sent)

    def abort(self) -> None:
        producer, _ = self._transaction()
        producer.abort_transaction()

    def leave_open(self) -> None:
        """A transaction that goes on across whatever comes; it never times out before the job looks."""
        if len(self.open) < 2:
            self.open.append(self._transaction())

    def end_open(self) -> None:
        """Write more into an open transaction and end it; or let the job time it out."""
        if not self.open:
            return
        producer, sent = self.open.pop(self.random.randrange(len(self.open)))
        match self.random.choice(["commit", "commit", "abort", "time out"]):
            case "abort":
                self._tolerantly(producer.abort_transaction)
            case "commit":
                if self._tolerantly(lambda: self._go_on(producer, sent)):
                    self._promise(sent)
            case "time out":
                self.site.advance_ms(16 * MINUTE_MS)
                self.reader.coordinator().run_once()

    def _go_on(self, producer: Producer, sent: dict[str, Counter[str]]) -> None:
        self._fill(producer, sent)
        producer.commit_transaction()

    def _tolerantly(self, call: Callable[[], object]) -> bool:
        """Make a call that a time-out may have forestalled."""
        try:
            call()
        except TxnTableError:
            return False
        return True

    def _transaction(self) -> tuple[Producer, dict[str, Counter[str]]]:
        self.ids += 1
        producer = self.writer.producer(f"id {self.ids % 5 + 10 * len(self.open)}", transaction_timeout_ms=900_000)
        producer.init_transactions()
        producer.begin_transaction()
        sent: dict[str, Counter[str]] = {topic: Counter() for topic in self.partitions}
        self._fill(producer, sent)
        return producer, sent

    def _fill(self, producer: Producer, sent: dict[str, Counter[str]]) -> None:
        for _ in range(self.random.randint(1, 3)):
            topic = self.random.choice([EVENTS, ACCOUNTS, ACCOUNTS, KEPT])
            self._send(producer, topic, sent[topic])
            if self.random.random() < 0.5:
                producer.flush()

    def append(self) -> None:
        """Without a transaction: idempotent by a producer that lives on, or at least once."""
        producer = self.idempotent if self.random.random() < 0.6 else self.writer.producer(enable_idempotence=False)
        topic = self.random.choice([EVENTS, ACCOUNTS, KEPT])
        self._send(producer, topic, self.promised[topic])
        producer.flush()

    def _send(self, producer: Producer, topic: str, sent: Counter[str]) -> None:
        for _ in range(self.random.choice([1, 1, 2, 5])):
            self.tags += 1
            tag, key = f"tag {self.tags}", self.random.choice(KEYS)
            time_ms = self.site.time.instant().wall_ms - self.random.choice([0, 0, 5, 100]) * MINUTE_MS
            if topic == ACCOUNTS:
                dead = self.random.random() < 0.25
                row = {"account": key, "amount": None if dead else self.tags, "tag": None if dead else tag}
                producer.send(topic, row=row, timestamp_ms=time_ms)
            else:
                dead = topic == KEPT and self.random.random() < 0.25
                value = None if dead else tag.encode() + b"." * self.random.choice([0, 0, 700])
                headers = [("tag", tag.encode()), ("tag", b"")] if self.random.random() < 0.5 else None
                name = None if topic == EVENTS and self.random.random() < 0.3 else key.encode()
                producer.send(topic, value, key=name, headers=headers, timestamp_ms=time_ms)
            if not dead:
                sent[tag] += 1

    def _promise(self, sent: dict[str, Counter[str]]) -> None:
        for topic, tags in sent.items():
            self.promised[topic].update(tags)

    def consume(self) -> None:
        """Read on from the middle, and stop in the middle."""
        self.random.choice(self.consuming[self.random.choice(list(self.consuming))]).poll(self.random.randint(1, 9))

    def commit_offsets(self) -> None:
        consumer = self.reader.consumer(group_id="group", auto_offset_reset="earliest")
        topic = self.random.choice(list(self.partitions))
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(self.random.randint(0, 3), str(self.tags))})

    def add_column(self) -> None:
        if self.columns < 2 and self.random.random() < 0.5:
            self.columns += 1
            self.reader.admin().add_columns(ACCOUNTS, [pa.field(f"note{self.columns}", pa.string())])

    def add_partition(self) -> None:
        topic = self.random.choice([EVENTS, ACCOUNTS])
        if self.partitions[topic] < 3 and self.random.random() < 0.3:
            # A compacted topic that has had records gets no more.
            with suppress(PolicyViolationError):
                self.reader.admin().create_partitions({topic: self.partitions[topic] + 1})
                self.partitions[topic] += 1

    def come_back(self) -> None:
        """A process is started again: it knows nothing of what was."""
        self.writer = self.site.open()
        self.idempotent = self.writer.producer()

    def end(self) -> None:
        """End what is open, and let everybody read to the end."""
        for producer, _ in self.open:
            self._tolerantly(producer.abort_transaction)
        self.open.clear()
        self.site.advance_ms(16 * MINUTE_MS)
        self.reader.coordinator().run_once()
        for consuming in (each for many in self.consuming.values() for each in many):
            while consuming.poll():
                pass

    def fresh(self) -> Warehouse:
        """A process that has just been started."""
        return self.site.open()
