"""Threads and processes on one warehouse: nothing is lost, nothing is torn, and nobody has to try again by hand."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from tests.integration import contenders
from tests.integration.contenders import ALREADY_COMMITTED, TOPIC, Report, together
from tests.simulation.site import TWO_COLUMNS
from txntable.runtime.environment import Instant, SystemEnvironment
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse, open_on

PROCESSES = 4
THREADS = 8
SPAWN = multiprocessing.get_context("spawn")
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Processes that have the project loaded, so that they really run side by side."""
    with SPAWN.Pool(PROCESSES, contenders.join, (SPAWN.Barrier(PROCESSES),)) as started:
        yield started


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create(tmp_path)


def create(folder: Path) -> Warehouse:
    made = Warehouse.create(str(folder / "wh"), durability="page-cache")
    made.admin().create_topic(TOPIC, partitions=contenders.PARTITIONS, schema=TWO_COLUMNS)
    return made


def check(warehouse: Warehouse, labels: list[str]) -> None:
    contenders.check_records(warehouse, labels)
    contenders.check_offsets(warehouse)
    contenders.check_nothing_is_open(warehouse)


# -- processes ------------------------------------------------------------------------------


def test_every_record_is_there_once_when_processes_commit_to_the_same_partitions(
    pool: Pool, warehouse: Warehouse
) -> None:
    jobs = [(warehouse.url, f"producer {number}", 12) for number in range(PROCESSES)]

    reports = together(pool, contenders.produce_in_transactions, jobs)

    assert [len(labels) for labels in reports] == [12] * PROCESSES
    check(warehouse, list(chain.from_iterable(reports)))


def test_exactly_what_was_said_to_be_committed_is_visible_when_processes_fence_each_other(
    pool: Pool, warehouse: Warehouse
) -> None:
    jobs = [(warehouse.url, f"process {number}", 10) for number in range(PROCESSES)]

    reports = together(pool, contenders.fence_each_other, jobs)

    assert refusals(reports) <= FENCED
    assert any(report.committed for report in reports)
    check(warehouse, committed(reports))


def test_a_batch_is_visible_once_when_processes_run_it_at_the_same_time(pool: Pool, warehouse: Warehouse) -> None:
    batches = 3
    jobs = [(warehouse.url, f"process {number}", batches) for number in range(PROCESSES)]

    reports = together(pool, contenders.run_same_batches, jobs)

    assert refusals(reports) <= FENCED | {ALREADY_COMMITTED}
    assert sorted(label.split("/")[1] for label in committed(reports)) == [f"{n:08d}" for n in range(batches)]
    told = [code for report in reports for code in report.refusals]
    assert told.count(ALREADY_COMMITTED) == batches * (PROCESSES - 1), "every other run was told that it is done"
    check(warehouse, committed(reports))


def committed(reports: list[Report]) -> list[str]:
    return [label for report in reports for label in report.committed]


def refusals(reports: list[Report]) -> set[str]:
    return {code for report in reports for code in report.refusals}


def test_readers_see_whole_transactions_only_while_others_produce_complete_and_write_checkpoints(
    pool: Pool, warehouse: Warehouse
) -> None:
    works = [
        (contenders.produce_in_transactions, (warehouse.url, "producer 0", 20)),
        (contenders.produce_in_transactions, (warehouse.url, "producer 1", 20)),
        (contenders.produce_plainly, (warehouse.url, "plain", 20)),
        (contenders.observe, (warehouse.url, 12)),
    ]

    *labels, seen = together(pool, do, works)

    assert seen == sorted(seen), "what was visible stays visible"
    check(warehouse, list(chain.from_iterable(labels)))


def do(work, job):
    return work(*job)


# -- threads --------------------------------------------------------------------------------


def in_threads(work, count: int = THREADS) -> list:
    """Run `work(number)` in threads that begin at once."""
    gate = threading.Barrier(count)

    def begin(number: int):
        gate.wait(60)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def test_every_record_is_there_once_when_threads_share_a_warehouse(warehouse: Warehouse) -> None:
    def produce(number: int) -> list[str]:
        producer = warehouse.producer(f"thread {number}")
        producer.init_transactions()
        return contenders.commit_transactions(producer, f"thread {number}", 5)

    labels = in_threads(produce)

    check(warehouse, list(chain.from_iterable(labels)))


def test_every_record_is_there_once_when_threads_share_a_producer(warehouse: Warehouse) -> None:
    producer = warehouse.producer("shared by threads")
    producer.init_transactions()

    def send(number: int) -> list[str]:
        labels = [f"thread {number}/{n:02d}" for n in range(10)]
        for n, label in enumerate(labels):
            contenders.send_all(producer, label, flush=n % 5 == number % 5)
        return labels

    with producer.transaction():
        labels = in_threads(send)

    check(warehouse, list(chain.from_iterable(labels)))


def test_every_record_is_there_once_when_threads_complete_and_read_beside_producers(warehouse: Warehouse) -> None:
    def work(number: int) -> list[str]:
        if number % 4 == 3:
            contenders.observe_handle(warehouse, 5)
            return []
        producer = warehouse.producer(f"thread {number}")
        producer.init_transactions()
        return contenders.commit_transactions(producer, f"thread {number}", 5)

    labels = in_threads(work)

    check(warehouse, list(chain.from_iterable(labels)))


# -- kills ----------------------------------------------------------------------------------


class LaterEnvironment(SystemEnvironment):
    """A machine whose clocks can be put forward."""

    ahead_ms = 0

    def instant(self) -> Instant:
        now = super().instant()
        return Instant(now.boot_ms + self.ahead_ms, now.wall_ms + self.ahead_ms)


@dataclass
class Victim:
    """A producing process, to be killed."""

    process: SpawnProcess
    line: Connection


@dataclass
class Soak:
    """Producers that are killed and started again, until so many have died.

    Who dies, after how many messages, and whether inside a transaction or wherever it is by then, is seeded.
    """

    url: str
    producers: int
    deaths: int
    seed: int
    committed: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    victims: dict[str, Victim] = field(default_factory=dict)

    def run(self) -> None:
        chance = random.Random(self.seed)
        try:
            for died in range(self.deaths):
                for number in range(self.producers):
                    if f"victim {number}" not in self.victims:
                        self.victims[f"victim {number}"] = self.start(f"victim {number}", died)
                for _ in range(chance.randrange(5, 30)):
                    self.listen()
                self.kill(chance.choice(sorted(self.victims)), in_transaction=chance.random() < 0.5)
            for who in list(self.victims):
                self.kill(who, in_transaction=True)
        finally:
            for victim in self.victims.values():
                victim.process.kill()

    def start(self, who: str, died: int) -> Victim:
        ours, theirs = SPAWN.Pipe()
        # Labels of one producer ascend through its lives, so that its order can be checked.
        arguments = (self.url, who, died * 10_000, theirs)
        process = SPAWN.Process(target=contenders.produce_until_killed, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Victim(process, ours)

    def listen(self) -> None:
        ready = wait([victim.line for victim in self.victims.values()], 60)
        assert ready, "no producer comes forward"
        for line in ready:
            assert isinstance(line, Connection)
            word, label = self.hear(line)
            if word == "appended":
                self.unsure.add(label)
                line.send("go on")

    def hear(self, line: Connection) -> tuple[str, str]:
        word, label = line.recv()
        if word == "committed":
            self.unsure.remove(label)
            self.committed.append(label)
        return word, label

    def kill(self, who: str, *, in_transaction: bool) -> None:
        victim = self.victims.pop(who)
        while in_transaction and self.hear(victim.line)[0] != "appended":
            pass
        victim.process.kill()
        victim.process.join()
        assert victim.process.exitcode == -signal.SIGKILL, "it lived until it was killed"
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                self.hear(victim.line)


def test_what_was_committed_is_there_once_and_nothing_hangs_after_producers_were_killed(tmp_path: Path) -> None:
    soak(tmp_path, producers=3, deaths=4, seed=7)


def soak(folder: Path, producers: int, deaths: int, seed: int) -> Soak:
    """Kill producers, recover, and check; larger ones are for hands."""
    url = create(folder).url
    done = Soak(url, producers, deaths, seed)
    done.run()
    environment = LaterEnvironment()
    warehouse = open_on(open_store(StoreSpec(url, {}, "page-cache")), environment)
    warehouse.context.clock.now_ms()
    environment.ahead_ms = 120_000

    warehouse.complete()

    rows = contenders.public_rows(url)
    # Who was killed in a commit could not tell: it is there whole or not at all.  Who was to wait is not there.
    check(warehouse, [*done.committed, *(done.unsure & {row["account"] for row in rows})])
    return done
