"""Processes that copy a topic into another as members of one group, and the hand that kills and pauses them.

Kafka's own test of transactions, in our words: whatever happens to the copiers, the copy is the original.  Who is hit
is told to be, and hits itself at the moment that matters: with signals that nothing can catch.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from txntable.consumer.consumer import Consumer
from txntable.errors import AbortableError, FatalError, RetriableError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse

GROUP, SOURCE, TARGET, PARTITIONS = "copy", "original", "copy", 4
GARBAGE = b"of a transaction that is aborted"
SESSION_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS = 6_000, 5_000
# Longer than both.
_PAUSE_MS = 8_000
# How long they go on when there is nothing left to copy: who woke up last has not done its worst yet.
_GRACE_MS = 2_000
_SPAWN = multiprocessing.get_context("spawn")


class Moment(Enum):
    """Where in a transaction a copier is hit."""

    READ = "nothing is sent yet: the transaction cannot time out"
    APPENDED = "records are in the log"
    SENT = "the offsets, too"
    DECIDED = "and the transaction is decided"


Blow = tuple[signal.Signals, Moment]
BLOWS: tuple[Blow, ...] = tuple(itertools.product((signal.SIGKILL, signal.SIGSTOP), Moment))


# -- a copier -------------------------------------------------------------------------------


def open_warehouse(url: str) -> Warehouse:
    """Open the warehouse as every process here does."""
    return Warehouse.open(url, durability="page-cache")


class Copier:
    """Copies what comes, as a member of the group, until it is killed; now and then it aborts."""

    def __init__(self, url: str, name: str, per_transaction: int, line: Connection) -> None:
        self.warehouse, self.name, self.line, self.per_transaction = open_warehouse(url), name, line, per_transaction
        self.chance = random.Random(f"{name} {os.getpid()}")
        self.blow: Blow | None = None
        self.consumer: Consumer = self.warehouse.consumer(
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=1_000,
        )
        self.consumer.subscribe([SOURCE])
        self.producer = started_producer(self.warehouse, name)

    def run(self) -> None:
        while True:
            try:
                self.copy(aborts=self.chance.random() < 0.1)
            except (AbortableError, RetriableError, FatalError):
                self.recover()
                self.consumer.seek_to_committed()

    def copy(self, *, aborts: bool) -> None:
        """Copy the next records in one transaction."""
        polled = self.consumer.poll(timeout_ms=500, max_records=self.per_transaction)
        if not polled:
            return
        self.be_at(Moment.READ)
        self.producer.begin_transaction()
        for record in itertools.chain.from_iterable(polled.values()):
            self.producer.send(TARGET, key=record.key, value=record.value)
        if aborts:
            self.producer.send(TARGET, value=GARBAGE)
        self.producer.flush()
        self.be_at(Moment.APPENDED)
        self.producer.send_offsets_of(self.consumer)
        self.be_at(Moment.SENT)
        if aborts:
            self.producer.abort_transaction()
            self.consumer.seek_to_committed()
        else:
            self.producer.commit_transaction()
            self.be_at(Moment.DECIDED)

    def be_at(self, moment: Moment) -> None:
        """Take the blow that is due now."""
        if self.line.poll():
            self.blow = self.line.recv()
        if self.blow is not None and self.blow[1] is moment:
            blow, self.blow = self.blow, None
            self.line.send(blow)
            os.kill(os.getpid(), blow[0])

    def recover(self) -> None:
        """Abort; where that cannot be done any more, begin as a new producer."""
        try:
            self.producer.abort_transaction()
        except TxnTableError:
            self.producer = started_producer(self.warehouse, self.name)


def copy_until_killed(url: str, name: str, per_transaction: int, line: Connection) -> None:
    """Be a copier."""
    Copier(url, name, per_transaction, line).run()


def started_producer(warehouse: Warehouse, name: str) -> Producer:
    """Return a producer that has taken the copier's transactional id over."""
    producer = warehouse.producer(name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    producer.init_transactions()
    return producer


# -- what is copied -------------------------------------------------------------------------


class Original:
    """The topic that is copied: numbers under 40 keys, in transactions, and some that are aborted."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.written = 0
        self._producer = warehouse.producer("original")
        self._producer.init_transactions()

    def write(self, records: int) -> None:
        with self._producer.transaction():
            for number in range(self.written, self.written + records):
                self._producer.send(SOURCE, key=b"key %d" % (number % 40), value=b"%d" % number)
        self.written += records
        self._producer.begin_transaction()
        self._producer.send(SOURCE, value=GARBAGE)
        self._producer.flush()
        self._producer.abort_transaction()


def values_by_partition(warehouse: Warehouse, topic: str) -> dict[int, list[bytes]]:
    """Return the committed values of each partition, in the order of their offsets."""
    table = warehouse.read_arrow(topic).read_all().sort_by([("_partition", "ascending"), ("_offset", "ascending")])
    found = defaultdict(list)
    for partition, value in zip(table["_partition"].to_pylist(), table["value"].to_pylist(), strict=True):
        found[partition].append(value)
    return dict(found)


# -- the hand -------------------------------------------------------------------------------


@dataclass
class Living:
    """A copier that has not been killed yet."""

    process: SpawnProcess
    line: Connection
    wakes_up_ms: int | None = None
    """When it is to go on, of one that sleeps."""


@dataclass
class Copying:
    """A topic that is written while copiers copy it, each blow hits one of them, and a consumer reads the copy.

    Who is hit is seeded.
    """

    url: str
    records: int
    blows: list[Blow]
    seed: int
    copiers: int = 3
    per_transaction: int = 750
    seen: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    living: dict[str, Living] = field(default_factory=dict)
    struck: list[Blow] = field(default_factory=list)

    def run(self, patience_ms: int) -> None:
        """Go on until every blow has hit, everyone is awake, and the copy is as long as the original."""
        original = Original(open_warehouse(self.url))
        due, chance = list(self.blows), random.Random(self.seed)
        chunk, waits_until_ms, busy_until_ms, victim = self.records // len(due), 0, 0, ""
        try:
            for age_ms in self._rounds(patience_ms):
                awake = sorted(name for name, one in self.living.items() if one.wakes_up_ms is None)
                if len(self.struck) + len(due) == len(self.blows) and due and awake:
                    victim = chance.choice(awake)
                    self.living[victim].line.send(due.pop(0))
                    original.write(chunk)
                    waits_until_ms = age_ms + 2_000
                elif len(self.struck) + len(due) < len(self.blows) and age_ms > waits_until_ms:
                    # It had no partition, or nothing to copy: a little more, until it has.
                    original.write(self.copiers * PARTITIONS)
                    waits_until_ms = age_ms + 2_000
                asleep = any(one.wakes_up_ms is not None for one in self.living.values())
                if len(self.struck) < len(self.blows) or asleep or self.copied < original.written:
                    busy_until_ms = age_ms
                if age_ms - busy_until_ms > _GRACE_MS:
                    return
        finally:
            for one in self.living.values():
                one.process.kill()
                one.process.join()

    @property
    def copied(self) -> int:
        """How much of the copy the consumer has seen."""
        return sum(map(len, self.seen.values()))

    def _rounds(self, patience_ms: int) -> Iterator[int]:
        """Read the copy, and keep the copiers going; yield how long that has been done, ms."""
        environment = SystemEnvironment()
        began = environment.instant()
        with open_warehouse(self.url).consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TARGET, number) for number in range(PARTITIONS)])
            while (age_ms := environment.since_ms(began)) < patience_ms:
                for partition, records in consumer.poll(timeout_ms=100).items():
                    self.seen[partition.partition].extend(record.value or b"" for record in records)
                for name in (f"copier {number}" for number in range(self.copiers)):
                    self._keep_going(name, age_ms)
                yield age_ms
        raise AssertionError(f"the copy does not go on: {self.copied} records, {len(self.struck)} blows")

    def _keep_going(self, name: str, age_ms: int) -> None:
        one = self.living.get(name)
        if one is None:
            self.living[name] = self._started(name)
            return
        # A killed one may have gone before it is looked at.
        with suppress(EOFError, ConnectionResetError):
            while one.line.poll():
                self.struck.append(one.line.recv())
                if self.struck[-1][0] is signal.SIGSTOP:
                    one.wakes_up_ms = age_ms + _PAUSE_MS
                else:
                    # It is dying: nobody tells it anything any more.
                    one.process.join()
        if one.process.exitcode is not None:
            assert one.process.exitcode == -signal.SIGKILL, f"{name} has died by itself"
            del self.living[name]
        elif one.wakes_up_ms is not None and one.wakes_up_ms <= age_ms:
            assert one.process.pid is not None
            os.kill(one.process.pid, signal.SIGCONT)
            one.wakes_up_ms = None

    def _started(self, name: str) -> Living:
        ours, theirs = _SPAWN.Pipe()
        arguments = (self.url, name, self.per_transaction, theirs)
        process = _SPAWN.Process(target=copy_until_killed, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Living(process, ours)
