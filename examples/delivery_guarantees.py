"""At most once, at least once, exactly once: the same copying program three times, killed at the same record.

A program copies one topic to another, four records at a time.  Halfway through a batch it is killed (SIGKILL) and
started again.  Which records are lost or duplicated depends on one thing only: when the offsets are committed.

* *at most once*: before the records are copied.  Records that were not copied yet are never read again.
* *at least once*: after the records are copied.  Records that were already copied are copied again.
* *exactly once*: together with the copies, in one transaction.  There is no before and no after.

``python -m examples.delivery_guarantees`` runs it and prints how many records each lost and duplicated.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import txntable
from txntable import Consumer, ConsumerRecord, TopicPartition, Warehouse

SOURCE, RECORDS, BATCH = "input", 12, 4
KILLED_AT = b"7"
Copy: TypeAlias = Callable[[txntable.Producer, Sequence[ConsumerRecord]], None]
Guarantee: TypeAlias = Callable[[Warehouse, Consumer, Copy], None]


# -- the three ways -------------------------------------------------------------------------


def at_most_once(warehouse: Warehouse, consumer: Consumer, copy: Copy) -> None:
    """Commit the offsets, then copy."""
    with warehouse.producer() as producer:
        while records := next_batch(consumer):
            consumer.commit()
            copy(producer, records)


def at_least_once(warehouse: Warehouse, consumer: Consumer, copy: Copy) -> None:
    """Copy, then commit the offsets."""
    with warehouse.producer() as producer:
        while records := next_batch(consumer):
            copy(producer, records)
            consumer.commit()


def exactly_once(warehouse: Warehouse, consumer: Consumer, copy: Copy) -> None:
    """Copy and commit the offsets in one transaction; the next run aborts what a killed one left open."""
    with warehouse.producer(transactional_id="copy") as producer:
        producer.init_transactions()
        while records := next_batch(consumer):
            with producer.transaction() as transaction:
                copy(producer, records)
                transaction.send_offsets(consumer)


GUARANTEES: dict[str, Guarantee] = {
    "at most once": at_most_once,
    "at least once": at_least_once,
    "exactly once": exactly_once,
}


def next_batch(consumer: Consumer) -> list[ConsumerRecord]:
    """Return the next records; an empty list at the end."""
    return [record for records in consumer.poll().values() for record in records]


# -- running them ---------------------------------------------------------------------------


def run(url: str, name: str, killed_at: bytes | None) -> None:
    """Run one of the programs to the end of the input, in a process that may be killed.

    Parameters
    ----------
    url : str
        The warehouse's URL.
    name : str
        The guarantee's name.
    killed_at : bytes, optional
        The record at which the process is killed, before it copies it.
    """
    topic = name.replace(" ", "-")

    def copy(producer: txntable.Producer, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            if record.value == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            producer.send(topic, value=record.value)
            producer.flush()

    warehouse = Warehouse.open(url)
    # A single consumer that assigns itself its partition: after a kill there is no other member to wait for.
    consumer = warehouse.consumer(
        group_id=topic, enable_auto_commit=False, auto_offset_reset="earliest", max_poll_records=BATCH
    )
    with consumer:
        consumer.assign([TopicPartition(SOURCE, 0)])
        GUARANTEES[name](warehouse, consumer, copy)


def compare(url: str) -> dict[str, tuple[int, int]]:
    """Run each program, killed once; return how many records each lost and how many it duplicated."""
    warehouse = Warehouse.create(url)
    for topic in (SOURCE, *(name.replace(" ", "-") for name in GUARANTEES)):
        warehouse.admin().create_topic(topic, partitions=1)
    numbers = [str(number).encode() for number in range(1, RECORDS + 1)]
    with warehouse.producer() as producer:
        for number in numbers:
            producer.send(SOURCE, value=number)
    found = {}
    for name in GUARANTEES:
        for killed_at in (KILLED_AT, None):
            process = multiprocessing.get_context("spawn").Process(target=run, args=(url, name, killed_at))
            process.start()
            process.join()
        copies = Counter(warehouse.read_arrow(name.replace(" ", "-")).read_all()["value"].to_pylist())
        found[name] = (sum(not copies[number] for number in numbers), (copies - Counter(numbers)).total())
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="examples.delivery_guarantees", description=__doc__.partition("\n")[0]).parse_args(
        arguments
    )
    with tempfile.TemporaryDirectory(prefix="txntable-guarantees-") as folder:
        found = compare(f"{folder}/warehouse")
    sys.stdout.write(f"{'':15}{'lost':>6}{'doubled':>9}\n")
    for name, (lost, doubled) in found.items():
        sys.stdout.write(f"{name:15}{lost:6}{doubled:9}\n")


if __name__ == "__main__":
    main()
