"""Money that moves between accounts held in different topics: in every consistent view the sum is the same."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from tests.simulation.site import TWO_COLUMNS
from txntable.producer.producer import Producer
from txntable.snapshot.snapshot import Snapshot
from txntable.warehouse.warehouse import Warehouse

TOPICS = ("checking", "savings")
# Who writes without transactions.
PLAIN = "plain"
PARTITIONS = 2
DEPOSIT = 1_000
TOTAL = DEPOSIT * PARTITIONS * len(TOPICS)


def open_accounts(warehouse: Warehouse) -> None:
    """Create the topics, and pay the first money into each partition, in one transaction."""
    for topic in TOPICS:
        warehouse.admin().create_topic(topic, partitions=PARTITIONS, schema=TWO_COLUMNS)
    producer = started(warehouse, "bank")
    with producer.transaction() as txn:
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                txn.send(topic, row={"account": f"{topic} {partition}", "amount": DEPOSIT}, partition=partition)


def started(warehouse: Warehouse, who: str) -> Producer:
    producer = warehouse.producer(who, transaction_timeout_ms=900_000)
    producer.init_transactions()
    return producer


def move(producer: Producer, who: str, chance: random.Random) -> None:
    """Inside a transaction: take money from an account of one topic and give it to one of the other."""
    amount = chance.randint(1, 99)
    for topic, sign in zip(chance.sample(TOPICS, 2), (-1, 1), strict=True):
        producer.send(topic, row={"account": who, "amount": sign * amount}, partition=chance.randrange(PARTITIONS))


def transfer(producer: Producer, who: str, chance: random.Random) -> None:
    """Move money in one transaction; every fifth changes its mind."""
    producer.begin_transaction()
    move(producer, who, chance)
    if chance.random() < 0.2:
        producer.flush()
        producer.abort_transaction()
    else:
        producer.commit_transaction()


def turn_over(producer: Producer, who: str, chance: random.Random) -> None:
    """Without a transaction: take money and give it back, in one append to one partition."""
    amount = chance.randint(1, 99)
    rows = pa.Table.from_pylist([{"account": who, "amount": sign * amount} for sign in (1, -1)], TWO_COLUMNS)
    producer.send(chance.choice(TOPICS), rows=rows, partition=chance.randrange(PARTITIONS))
    producer.flush()


def sum_of(amounts: Iterable[pa.ChunkedArray]) -> int:
    return sum(pc.sum(each).as_py() or 0 for each in amounts)


def money_in(snapshot: Snapshot) -> int:
    """What all accounts of all topics hold in one snapshot."""
    return sum_of(snapshot.read_arrow(topic, columns=["amount"]).read_all()["amount"] for topic in TOPICS)


def in_transactions(snapshot: Snapshot) -> list[tuple]:
    """The records of a snapshot that were decided by a transaction; in a merged segment `_commit` does not tell."""
    names = ("_partition", "_offset", "account", "amount")
    return [
        (topic, *(row[name] for name in names))
        for topic in TOPICS
        for row in snapshot.read_arrow(topic).read_all().to_pylist()
        if row["account"] != PLAIN
    ]
