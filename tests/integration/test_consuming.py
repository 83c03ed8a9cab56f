"""Producers and consumers in processes of their own: every committed record once, in order."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from tests.integration import contenders
from tests.integration.contenders import TOPIC, commit_transactions, open_warehouse, send_all, together
from tests.simulation.site import TWO_COLUMNS
from txntable.warehouse.warehouse import Warehouse

PROCESSES = 3
SPAWN = multiprocessing.get_context("spawn")
TRANSACTIONS = 20
# A transaction or a plain append leaves so many records in all partitions.
RECORDS_OF_A_LABEL = contenders.PARTITIONS * len(contenders.AMOUNTS)
# So that a test fails instead of waiting for ever: a poll without records for so long is the end.
PATIENCE_MS = 60_000

Seen = list[tuple[int, int, str, int]]
"""Partition, offset, label and amount of records, in the order in which they came."""


@dataclass
class Done:
    """What one process has done."""

    committed: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=list)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with SPAWN.Pool(PROCESSES, contenders.join, (SPAWN.Barrier(PROCESSES),)) as started:
        yield started


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic(TOPIC, partitions=contenders.PARTITIONS, schema=TWO_COLUMNS)
    return made


def produce(url: str, who: str) -> list[str]:
    """Commit transactions, and abort one after each of them; return the labels of those that committed."""
    producer = open_warehouse(url).producer(who)
    producer.init_transactions()
    labels = []
    for number in range(TRANSACTIONS):
        labels += commit_transactions(producer, f"{who} {number:02d}", 1)
        producer.begin_transaction()
        send_all(producer, f"aborted by {who}", flush=True)
        producer.abort_transaction()
    return labels


def consume(url: str, prefetch: bool, records: int) -> Seen:
    """Poll until so many records have come; return them in the order in which they came."""
    consumer = open_warehouse(url).consumer(auto_offset_reset="earliest", max_poll_records=7, prefetch=prefetch)
    consumer.subscribe([TOPIC])
    seen: Seen = []
    while len(seen) < records:
        polled = consumer.poll(timeout_ms=PATIENCE_MS)
        if not polled:
            break
        for found in polled.values():
            seen += [(each.partition, each.offset, each.row["account"], each.row["amount"]) for each in found]
    # A producer may still abort its last transaction meanwhile.
    assigned = list(consumer.assignment())
    before = consumer.end_offsets(assigned)
    assert consumer.poll() == {}
    after = consumer.end_offsets(assigned)
    assert all(before[each] <= (consumer.position(each) or 0) <= after[each] for each in assigned)
    consumer.close()
    return seen


def work(url: str, who: str, prefetch: bool) -> Done:
    if who == "consumer":
        return Done(seen=consume(url, prefetch, 2 * TRANSACTIONS * RECORDS_OF_A_LABEL))
    return Done(committed=produce(url, who))


@pytest.mark.parametrize("prefetch", [False, True])
def test_consumer_gets_every_committed_record_once_and_in_order_while_others_commit_and_abort(
    pool: Pool, warehouse: Warehouse, prefetch: bool
) -> None:
    jobs = [(warehouse.url, who, prefetch) for who in ("producer 0", "producer 1", "consumer")]

    first, second, consumer = together(pool, work, jobs)

    wanted = [
        (label, partition, amount)
        for label in [*first.committed, *second.committed]
        for partition in range(contenders.PARTITIONS)
        for amount in contenders.AMOUNTS
    ]
    assert sorted((account, partition, amount) for partition, _, account, amount in consumer.seen) == sorted(wanted)
    for partition in range(contenders.PARTITIONS):
        offsets = [offset for found, offset, *_ in consumer.seen if found == partition]
        assert offsets == sorted(set(offsets))
