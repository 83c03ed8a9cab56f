"""What one version does in a warehouse that another shares: run as a program, with that version alone on its path.

``python version_steps.py STEP FOLDER NAME``: answers with a line of JSON.  It knows no more than the public interface.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import txntable
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum

TOPICS = ("debit", "credit")
LONGEST_POLLS = 50


def begun(warehouse: txntable.Warehouse, name: str) -> txntable.Producer:
    """A producer with records in both topics that are appended, and some that are not."""
    producer = warehouse.producer(name)
    producer.init_transactions()
    producer.begin_transaction()
    for number, topic in enumerate(TOPICS * 3):
        producer.send(topic, row={"account": name, "amount": number})
        if number == 1:
            producer.flush()
    return producer


def write(folder: str, name: str) -> object:
    begun(opened(folder), name).commit_transaction()
    # One that its decision carries.
    producer = opened(folder).producer(name)
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.send(TOPICS[0], row={"account": name, "amount": 6})
    return name


def abandon(folder: str, name: str) -> object:
    begun(opened(folder), name).flush()
    return name


def hold(folder: str, name: str) -> object:
    """Stand in a transaction until a line comes, then commit: what becomes of it."""
    producer = begun(opened(folder), name)
    producer.flush()
    tell("holding")
    sys.stdin.readline()
    try:
        producer.commit_transaction()
    except txntable.TxnTableError as error:
        return type(error).__name__
    return "committed"


def consume(folder: str, name: str) -> object:
    """Go on where the group is; commit; return the values."""
    consumer = opened(folder).consumer({"group.id": "shared", "auto.offset.reset": "earliest"})
    consumer.subscribe(list(TOPICS))
    found: list[str] = []
    for _ in range(LONGEST_POLLS):
        polled = consumer.poll(timeout_ms=200)
        found += [record.row["account"] for records in polled.values() for record in records]
        if consumer.assignment() and not any(consumer.current_lag(one) for one in consumer.assignment()):
            break
    consumer.commit()
    consumer.close()
    return sorted(found)


def maintain(folder: str, name: str) -> object:
    warehouse = opened(folder)
    warehouse.coordinator().run_once()
    reports = compact(warehouse, [name])
    vacuum(warehouse, execute=True)
    return [sum(report.merged_segments for report in reports), [failure for one in reports for failure in one.failures]]


def read(folder: str, name: str) -> object:
    rows = [row for topic in TOPICS for row in opened(folder).read_arrow(topic).read_all().to_pylist()]
    return sorted(row["account"] for row in rows)


def verify(folder: str, name: str) -> object:
    return [str(damage) for damage in opened(folder).verify().damages]


def opened(folder: str) -> txntable.Warehouse:
    return txntable.Warehouse.open(folder, durability="page-cache")


def tell(answer: object) -> None:
    sys.stdout.write(json.dumps({"code": txntable.__file__, "answer": answer}) + "\n")
    sys.stdout.flush()


STEPS: dict[str, Callable[[str, str], object]] = {
    step.__name__: step for step in (write, abandon, hold, consume, maintain, read, verify)
}

if __name__ == "__main__":
    tell(STEPS[sys.argv[1]](*sys.argv[2:]))
