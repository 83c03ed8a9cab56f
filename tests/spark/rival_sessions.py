"""``python -m tests.spark.rival_sessions --seconds N [--seed N] [--results FILE]``: two sessions that are killed.

Two programs, each with a session of its own, write batches to the same two topics under transactional ids of their own.
A hand kills (SIGKILL) a driver, whose successor goes on with the batch that is not known to be committed, or a Python
worker of a driver, whose task Spark runs again.  In the end every batch is there once, whole, in both topics, and no
batch that was told committed is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from txntable.errors import BatchAlreadyCommittedError, BatchOutOfOrderError, TxnTableError
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.session import build_session
from txntable.warehouse.warehouse import Warehouse

TOPICS, WHO, ROWS = ("left", "right"), ("ann", "bob"), 40
SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("number", pa.int64())])
_BETWEEN_KILLS_MS = (4_000, 12_000)
_STOP = "stop"


def drive(folder: Path, who: str) -> None:
    """Write batch after batch, until told to stop; each goes on where the last committed one was."""
    settings = {"spark.driver.memory": "512m", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = build_session(f"rival-{who}", master="local[2]", settings=settings)
    warehouse, told = Warehouse.open(str(folder / "wh"), durability="page-cache"), folder / f"told-{who}"
    batch = max(map(int, told.read_text().split()), default=-1) + 1 if told.exists() else 0
    producer = warehouse.producer(who, transaction_timeout_ms=60_000)
    producer.init_transactions()
    while not (folder / _STOP).exists():
        rows = spark.range(0, ROWS, 1, 4).selectExpr(f"concat('{who}-{batch}-', id) AS name", "id AS number")
        # Through a Python worker, so that there is one to be killed.
        rows = rows.mapInPandas(lambda frames: frames, rows.schema)
        try:
            with producer.transaction(batch_id=batch) as transaction:
                for topic in TOPICS:
                    transaction.write(topic, rows)
        except (BatchAlreadyCommittedError, BatchOutOfOrderError):
            pass
        except TxnTableError as error:
            if error.fatal:
                raise
            continue
        with told.open("a") as file:
            file.write(f"{batch}\n")
        batch += 1
    spark.stop()


def children_of(parent: int) -> list[int]:
    """Return the processes below one, from `/proc`."""
    found: list[int] = []
    below = {parent}
    statuses = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            statuses[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    while below:
        below = {process for process, above in statuses.items() if above in below}
        found += below
    return found


def workers_of(driver: int) -> list[int]:
    """Return the Python workers of a driver: what was forked by its daemon."""
    found = []
    for process in children_of(driver):
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"pyspark.daemon" in command or b"python_worker" in command:
            found.append(process)
    return found


class Arena:
    """The two drivers, and who kills them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance, self.environment = folder, random.Random(seed), SystemEnvironment()
        self.counts: Counter[str] = Counter()
        self.drivers = {who: self.start(who) for who in WHO}

    def start(self, who: str) -> subprocess.Popen[bytes]:
        """Start a driver in a process group of its own."""
        self.counts["drivers"] += 1
        with (self.folder / f"{who}.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.spark.rival_sessions", "--drive", who, str(self.folder)]
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """Kill a driver with all that it started, or one of its workers."""
        who = self.chance.choice(WHO)
        driver = self.drivers[who]
        workers = workers_of(driver.pid)
        if workers and self.chance.random() < 0.5:
            try:
                os.kill(self.chance.choice(workers), signal.SIGKILL)
                self.counts["killed_workers"] += 1
            except ProcessLookupError:
                return
            return
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        self.counts["killed_drivers"] += 1
        self.drivers[who] = self.start(who)

    def run(self, seconds: float) -> None:
        """Kill for so long; then let each commit once more, and end."""
        began = self.environment.instant()
        self.wait_for_batches(1)
        while self.environment.since_ms(began) < seconds * 1000:
            self.environment.sleep_ms(self.chance.uniform(*_BETWEEN_KILLS_MS))
            self.kill()
        self.wait_for_batches(1 + max(map(self.told, WHO)))
        (self.folder / _STOP).touch()
        for driver in self.drivers.values():
            driver.wait()

    def told(self, who: str) -> int:
        """Return how many batches a driver was told committed."""
        path = self.folder / f"told-{who}"
        return len(set(path.read_text().split())) if path.exists() else 0

    def wait_for_batches(self, batches: int) -> None:
        """Wait until each has committed so many."""
        while min(map(self.told, WHO)) < batches:
            for who, driver in self.drivers.items():
                if driver.poll() is not None:
                    # A task that lost its workers too often fails the batch, or a fatal error ends the driver.
                    self.counts["ended_by_themselves"] += 1
                    self.drivers[who] = self.start(who)
            self.environment.sleep_ms(200)


def judge(folder: Path) -> list[str]:
    """Return what is wrong."""
    warehouse, wrong = Warehouse.open(str(folder / "wh"), durability="page-cache"), []
    warehouse.coordinator().run_once()
    snapshot = warehouse.snapshot()
    for topic in TOPICS:
        names = Counter(snapshot.read_arrow(topic).read_all()["name"].to_pylist())
        wrong += [f"{topic}: {name} is there {count} times" for name, count in names.items() if count > 1]
        batches = Counter(name.rpartition("-")[0] for name in names)
        wrong += [f"{topic}: {batch} has {count} rows" for batch, count in batches.items() if count != ROWS]
        told = {f"{who}-{batch}" for who in WHO for batch in (folder / f"told-{who}").read_text().split()}
        wrong += [f"{topic}: {batch} was told committed" for batch in told - batches.keys()]
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.rival_sessions")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--drive", nargs=2, metavar=("WHO", "FOLDER"), help="be one of the programs")
    chosen = parser.parse_args(arguments)
    if chosen.drive is not None:
        drive(Path(chosen.drive[1]), chosen.drive[0])
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        for topic in TOPICS:
            warehouse.admin().create_topic(topic, partitions=2, schema=SCHEMA)
        arena = Arena(folder, chosen.seed)
        try:
            arena.run(chosen.seconds)
        finally:
            for driver in arena.drivers.values():
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.wait()
        wrong = judge(folder)
        said = {**arena.counts, "batches": sum(map(arena.told, WHO)), "violations": len(wrong)}
    if chosen.results is not None:
        chosen.results.write_text(json.dumps(said, indent=1) + "\n")
    sys.stdout.write("\n".join([*(f"{name}: {value}" for name, value in said.items()), *wrong]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
