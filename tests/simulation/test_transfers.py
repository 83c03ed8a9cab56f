"""Snapshots while money moves between topics: the sum never changes, whoever writes, completes, tidies up or dies.

Real threads over one store; how much each does is counted, and everything random is seeded.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from tests.doubles.fault_plan import WRITES, Fault, Operation, Rule, on
from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.site import Site, published
from tests.simulation.transfers import (
    PLAIN,
    TOPICS,
    TOTAL,
    in_transactions,
    money_in,
    open_accounts,
    started,
    sum_of,
    transfer,
    turn_over,
)
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError, TxnTableError
from txntable.format.isolation import IsolationLevel
from txntable.log.cleanup import clean_up
from txntable.warehouse.warehouse import Warehouse, open_on

HOUR_MS = 3_600_000
RETENTION_MS = 48 * HOUR_MS
SEEDS = range(6)
SNAPSHOTS = 170
TRANSFERS = 3
# So that a test fails instead of hanging when a thread has died.
PATIENCE_S = 120.0


def after_writes(count: int) -> Rule:
    """Let the process die after so many writes."""
    return Rule(Fault.KILL_AFTER, lambda step: step.operation in WRITES, count)


def logs_of(warehouse: Warehouse) -> list:
    topics = [warehouse.topic_log(topic) for topic in TOPICS]
    return [warehouse.transactions.log, *(log for topic in topics for log in (topic.segments, topic.public))]


@dataclass(frozen=True)
class Sight:
    """A snapshot that was taken."""

    position: int
    records: list[tuple] | None
    """Those of transactions, where this reader saw the position for the first time."""


@dataclass
class Exchange:
    """Tellers, readers, janitors and a completer; each is a thread with a process's own view of the store."""

    seed: int
    site: Site = field(default_factory=Site)
    deaths: int = 0
    merged: int = 0

    def __post_init__(self) -> None:
        self.pace = [threading.Semaphore(0) for _ in range(6)]
        warehouse = self.site.create()
        open_accounts(warehouse)
        producer = started(warehouse, "the past")
        # Log entries for the janitor: a version in the past, and one for each of its rounds.
        for _ in range(6):
            producer.begin_transaction()
            for topic in TOPICS:
                producer.send(topic, row={"account": "never", "amount": 1}, partition=0)
            producer.flush()
            producer.abort_transaction()
            for log in logs_of(warehouse):
                log.write_checkpoint()
            self.site.advance_ms(10 * HOUR_MS)

    def run(self) -> list[Sight]:
        """Let all work at once; return what the readers saw, snapshot by snapshot."""
        workers = [self.teller, self.teller, self.plain, self.janitor, self.completer, self.compactor]
        readers = [self.reader, self.read_only]
        with ThreadPoolExecutor(len(workers) + len(readers)) as threads:
            working = [threads.submit(work, number) for number, work in enumerate(workers)]
            reading = [threads.submit(read) for read in readers]
            seen = [sight for each in reading for sight in each.result()]
            for each in working:
                each.result()
        return seen

    # -- who writes -------------------------------------------------------------------------

    def paced(self, number: int) -> bool:
        """Wait until the readers have taken their share of snapshots."""
        return self.pace[number].acquire(timeout=PATIENCE_S)

    def teller(self, number: int) -> None:
        """Move money; die now and then, anywhere, and leave what was decided to others."""
        chance = random.Random(f"{self.seed} {number}")
        producer = None
        for _ in range(TRANSFERS):
            assert self.paced(number)
            try:
                if producer is None:
                    producer = started(self.site.open(after_writes(chance.randint(6, 30))), f"teller {number}")
                transfer(producer, f"teller {number}", chance)
            except ProcessKilled:
                self.deaths += 1
                producer = None
            except DamagedDataError:
                raise
            except TxnTableError:
                # Time went by, and the completer aborted it: a new producer goes on.
                producer = None

    def plain(self, number: int) -> None:
        """Append without transactions."""
        chance, warehouse = random.Random(f"{self.seed} plain"), self.site.open()
        with warehouse.producer() as producer:
            for _ in range(TRANSFERS):
                assert self.paced(number)
                turn_over(producer, PLAIN, chance)

    def janitor(self, number: int) -> None:
        """Write checkpoints, let hours pass, and delete old log entries."""
        warehouse = self.site.open()
        for _ in range(4):
            assert self.paced(number)
            for log in logs_of(warehouse):
                log.refresh()
                log.write_checkpoint()
                clean_up(warehouse.context, log.root, RETENTION_MS)
            self.site.advance_ms(8 * HOUR_MS)

    def completer(self, number: int) -> None:
        """Complete what others have left, and die half-way."""
        chance = random.Random(f"{self.seed} completer")
        for _ in range(TRANSFERS):
            assert self.paced(number)
            with suppress(ProcessKilled):
                self.site.open(after_writes(chance.randint(1, 4))).complete()

    def compactor(self, number: int) -> None:
        """Merge what is old enough, and die half-way."""
        chance = random.Random(f"{self.seed} compactor")
        for _ in range(4):
            assert self.paced(number)
            with suppress(ProcessKilled):
                self.merge(self.site.open(after_writes(chance.randint(1, 40))))
            self.merge(self.site.open())

    def merge(self, warehouse: Warehouse) -> None:
        self.merged += sum(report.merged_segments for report in compact(warehouse, TOPICS))

    # -- who reads --------------------------------------------------------------------------

    def reader(self) -> list[Sight]:
        return self.read(self.site.open())

    def read_only(self) -> list[Sight]:
        return self.read(read_only(self.site))

    def read(self, warehouse: Warehouse) -> list[Sight]:
        seen: list[Sight] = []
        try:
            for number in range(SNAPSHOTS):
                snapshot = warehouse.snapshot()
                assert money_in(snapshot) == TOTAL, f"seed={self.seed} position={snapshot.position}"
                assert not seen or seen[-1].position <= snapshot.position
                first = not seen or seen[-1].position < snapshot.position
                seen.append(Sight(snapshot.position, in_transactions(snapshot) if first else None))
                if number % (SNAPSHOTS // TRANSFERS) == 0:
                    self.release()
        finally:
            for _ in range(TRANSFERS):
                self.release()
        return seen

    def release(self) -> None:
        for semaphore in self.pace:
            semaphore.release()


def read_only(site: Site) -> Warehouse:
    """Open the warehouse with a reader's credentials."""
    return open_on(ReadOnlyStore(MemoryStore(site.objects)), site.environment())


# -- snapshots while everything goes on -----------------------------------------------------


def test_sum_never_changes_in_thousands_of_snapshots_while_others_write_complete_tidy_up_and_die() -> None:
    snapshots, positions, deaths, merged = 0, 0, 0, 0

    for seed in SEEDS:
        exchange = Exchange(seed)
        seen = exchange.run()
        snapshots += len(seen)
        deaths += exchange.deaths
        merged += exchange.merged
        positions += check_seen_again(exchange, seen)

    assert snapshots >= 2_000
    assert positions >= 4 * len(SEEDS), "money moved while the snapshots were taken"
    assert deaths > 0, "tellers died on the way"
    assert merged > 10 * len(SEEDS), "old segments were merged meanwhile"


def check_seen_again(exchange: Exchange, seen: list[Sight]) -> int:
    """Each position that was seen shows the same again, twice, to anybody; return how many those are."""
    shown: dict[int, list[tuple]] = {}
    for sight in seen:
        if sight.records is not None:
            assert shown.setdefault(sight.position, sight.records) == sight.records, f"seed={exchange.seed}"
    for warehouse in (exchange.site.open(), read_only(exchange.site)):
        for position, records in shown.items():
            snapshot = warehouse.snapshot(position)
            assert in_transactions(snapshot) == records, f"seed={exchange.seed} position={position}"
            assert money_in(snapshot) == TOTAL
    return len(shown)


# -- topics on their own --------------------------------------------------------------------


def amounts_of(warehouse: Warehouse, topic: str, level: str) -> int:
    return sum_of([warehouse.read_arrow(topic, isolation_level=level, columns=["amount"]).read_all()["amount"]])


APART: dict[str, Callable[[Warehouse, str], int]] = {
    "read_committed": lambda warehouse, topic: amounts_of(warehouse, topic, "read_committed"),
    "a snapshot of each": lambda warehouse, topic: amounts_of(warehouse, topic, "snapshot"),
    "newest public tables": lambda warehouse, topic: sum(row["amount"] for row in published(warehouse, topic)),
}


@pytest.mark.parametrize("read", APART.values(), ids=APART)
def test_topics_read_one_after_the_other_show_money_made_or_lost(read: Callable[[Warehouse, str], int]) -> None:
    site = Site()
    warehouse = site.create()
    open_accounts(warehouse)
    producer, reader = started(warehouse, "teller"), site.open()
    pinned = reader.snapshot()

    before = read(reader, "checking")
    with producer.transaction() as txn:
        txn.send("checking", row={"account": "x", "amount": -7})
        txn.send("savings", row={"account": "x", "amount": 7})
    after = read(reader, "savings")

    assert before + after == TOTAL + 7, "both reads were right, and their sum is not"
    assert money_in(pinned) == money_in(reader.snapshot()) == TOTAL


# -- what is decided and not published ------------------------------------------------------

LEFT: dict[str, tuple[int, Fault, int]] = {
    "no marker is written": (1, Fault.KILL_BEFORE, 0),
    "one topic has its marker, and none is published": (1, Fault.KILL_AFTER, 0),
    "one topic is published, the other has no marker": (2, Fault.KILL_BEFORE, 1),
    "both have their markers, and one is published": (2, Fault.KILL_AFTER, 1),
}
"""How far a completer came: at which marker it died, before or after, and how many topics were published by then."""


def left_half_way(marker: int, fault: Fault) -> Site:
    """A transfer with plain records behind it, decided by a teller who died in its completion."""
    site = Site()
    open_accounts(site.create())
    teller = site.open()
    producer = started(teller, "teller")
    producer.begin_transaction()
    for topic, amount in zip(TOPICS, (-7, 7), strict=True):
        producer.send(topic, row={"account": "moved", "amount": amount}, partition=0)
    producer.flush()
    with teller.producer() as plain:
        for topic in TOPICS:
            plain.send(topic, row={"account": "plain", "amount": 0}, partition=0)
    assert isinstance(teller.store, SteppingStore)
    teller.store.plan = (on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", fault, occurrence=marker),)
    with pytest.raises(ProcessKilled):
        producer.commit_transaction()
    return site


def accounts(warehouse: Warehouse, topic: str, level: str) -> list[str]:
    found = warehouse.read_arrow(topic, isolation_level=level, starting_offsets={0: 2}, ending_offsets={1: 0})
    return [row["account"] for row in found.read_all().to_pylist()]


@pytest.mark.parametrize(("marker", "fault", "published_topics"), LEFT.values(), ids=LEFT)
def test_read_only_reader_never_passes_what_is_decided_and_not_published(
    marker: int, fault: Fault, published_topics: int
) -> None:
    reader = read_only(left_half_way(marker, fault))

    snapshot = reader.snapshot()

    assert snapshot.position < reader.transactions.refresh()
    assert not [row for row in in_transactions(snapshot) if row[3] == "moved"], "in no topic, as it is not in all"
    assert money_in(snapshot) == TOTAL
    seen = {topic: accounts(reader, topic, "read_committed") for topic in TOPICS}
    assert sorted(seen.values()) == sorted([[]] * (2 - published_topics) + [["moved", "plain"]] * published_topics)
    for topic, records in seen.items():
        bounds = reader.topic_reader(topic).view(IsolationLevel.READ_COMMITTED).bounds[0]
        assert (bounds.end < bounds.high_watermark) == (records == [])


@pytest.mark.parametrize(("marker", "fault"), [way[:2] for way in LEFT.values()], ids=LEFT)
@pytest.mark.parametrize("level", ["read_committed", "snapshot"])
def test_reader_who_may_write_publishes_what_is_decided_and_shows_it(marker: int, fault: Fault, level: str) -> None:
    reader = left_half_way(marker, fault).open()

    assert [accounts(reader, topic, level) for topic in TOPICS] == [["moved", "plain"]] * 2


@pytest.mark.parametrize(("marker", "fault"), [way[:2] for way in LEFT.values()], ids=LEFT)
def test_reader_that_follows_publishes_what_it_saw_decided(marker: int, fault: Fault) -> None:
    warehouse = left_half_way(marker, fault).open()

    for topic in TOPICS:
        reader = warehouse.topic_reader(topic)
        reader.follow()
        bounds = reader.view(IsolationLevel.READ_COMMITTED).bounds[0]
        assert bounds.end == bounds.high_watermark
