"""A retention is set too short, or records are deleted below a wrong offset.

Lost: nothing, until vacuum takes the files.  What is gone is read at a moment before, and written again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.compaction.compactor import compact
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000


def set_too_short(warehouse: Warehouse) -> None:
    warehouse.admin().alter_configs("paid", {"retention.ms": str(HOUR_MS)})
    compact(warehouse)


def delete_too_much(warehouse: Warehouse) -> None:
    warehouse.admin().delete_records({TopicPartition("paid", partition): 2 for partition in range(2)})


@pytest.mark.parametrize("mistake", [set_too_short, delete_too_much])
def test_records_that_are_gone_are_read_before_the_mistake_and_written_again(
    mistake: Callable[[Warehouse], object],
) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        for amount in range(6):
            with producer.transaction() as txn:
                txn.send("paid", row={"account": str(amount), "amount": amount}, partition=amount % 2)
    site.advance_ms(24 * HOUR_MS)
    with site.open().producer() as producer:
        producer.send("paid", row={"account": "new", "amount": 6}, partition=0)
    site.advance_ms(HOUR_MS // 2)
    time = dt.datetime.fromtimestamp(warehouse.context.clock.now_ms() / 1000, tz=dt.UTC)
    site.advance_ms(HOUR_MS // 4)
    mistake(site.open())
    gone = site.open().read_arrow("paid").read_all()
    assert gone.num_rows < 7

    opened = site.open()
    opened.admin().alter_configs("paid", {"retention.ms": "-1"})
    before = opened.snapshot(as_of=time)
    kept = {(row["_partition"], row["_offset"]) for row in opened.read_arrow("paid").read_all().to_pylist()}
    found = before.read_arrow("paid").read_all()
    lost = found.filter([(row["_partition"], row["_offset"]) not in kept for row in found.to_pylist()])
    with opened.producer() as again:
        again.send("paid", rows=lost.drop_columns(["_partition", "_offset", "_commit"]))
    compact(site.open())

    there = site.open().read_arrow("paid").read_all()
    assert sorted(there["amount"].to_pylist()) == list(range(7))
    times = dict(zip(there["amount"].to_pylist(), there["_timestamp"].to_pylist(), strict=True))
    assert times == dict(zip(found["amount"].to_pylist(), found["_timestamp"].to_pylist(), strict=True))
