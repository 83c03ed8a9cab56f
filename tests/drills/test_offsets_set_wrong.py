"""Somebody resets a group's offsets, and the group was not meant.

Lost: nothing.  Where the group stood is read at a moment before, and set again.
"""

from __future__ import annotations

import datetime as dt

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

PAID = [TopicPartition("paid", partition) for partition in range(2)]


def stands_at(warehouse: Warehouse) -> dict[TopicPartition, int]:
    found = warehouse.admin().list_consumer_group_offsets("reports")
    return {partition: one.offset for partition, one in found.items() if one is not None}


@pytest.mark.parametrize("by_time", [True, False])
@pytest.mark.parametrize("in_transaction", [True, False])
def test_group_stands_again_where_it_stood_before_the_mistake(in_transaction: bool, by_time: bool) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS)
    if in_transaction:
        producer = warehouse.producer("copier")
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({PAID[0]: 7, PAID[1]: 3}, "reports")
    else:
        warehouse.admin().alter_consumer_group_offsets("reports", {PAID[0]: 7, PAID[1]: 3})
    position = warehouse.snapshot().position
    time = dt.datetime.fromtimestamp(warehouse.context.clock.now_ms() / 1000, tz=dt.UTC) + dt.timedelta(minutes=1)
    site.advance_ms(3_600_000)
    site.open().admin().alter_consumer_group_offsets("reports", dict.fromkeys(PAID, 0))

    opened = site.open()
    before = opened.snapshot(as_of=time if by_time else position)
    opened.admin().alter_consumer_group_offsets("reports", before.committed_offsets("reports"))

    assert stands_at(site.open()) == {PAID[0]: 7, PAID[1]: 3}
