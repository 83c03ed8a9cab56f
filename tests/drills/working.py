"""A process of a drill: ``python -m tests.drills.working ROLE URL``, with keys from where AWS's own tools look.

It works until its standard input ends, and says in a line of its standard output what it was told: a transaction that
is committed, a record that was read.  It knows no drill, and every error ends it.
"""

from __future__ import annotations

import itertools
import sys
import threading

from tests.drills.stage import TOPICS, Writer
from txntable.warehouse.warehouse import Warehouse

_over = threading.Event()


def say(line: str) -> None:
    """Tell the drill."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def produce(warehouse: Warehouse) -> None:
    """Commit transactions."""
    producer = warehouse.producer("etl")
    producer.init_transactions()
    writer = Writer(producer, "etl")
    while not _over.is_set():
        writer.transact()
        say(writer.told[-1])


def consume(warehouse: Warehouse) -> None:
    """Read as a member of a group, and commit after each poll."""
    with warehouse.consumer(group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe([TOPICS[0]])
        while not _over.is_set():
            polled = consumer.poll(timeout_ms=200)
            for record in itertools.chain.from_iterable(polled.values()):
                say(record.row["account"])
            if polled:
                consumer.commit()


def coordinate(warehouse: Warehouse) -> None:
    """Do the coordinator's job, round after round."""
    while not _over.wait(0.2):
        warehouse.coordinator().run_once()
        say("round")


def listen() -> None:
    """Wait until the drill says no more."""
    sys.stdin.read()
    _over.set()


def main(role: str, url: str) -> None:
    """Be a process."""
    threading.Thread(target=listen, daemon=True).start()
    {"producer": produce, "consumer": consume, "job": coordinate}[role](Warehouse.open(url))


if __name__ == "__main__":
    main(*sys.argv[1:])
