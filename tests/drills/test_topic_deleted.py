"""A topic is deleted by mistake, and created again by somebody who wants to help.

Lost: nothing, until vacuum takes the files.  Every record is read at a position before the deletion, and written again.
"""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import UnknownTopicOrPartitionError


@pytest.mark.parametrize(
    "left_out", [["_partition", "_offset", "_timestamp", "_commit"], ["_partition", "_offset", "_commit"]]
)
def test_records_of_a_deleted_topic_are_read_before_its_deletion_and_written_into_a_new_one(
    left_out: list[str],
) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS, config={"retention.ms": "-1"})
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        for amount in range(6):
            txn.send("paid", row={"account": str(amount), "amount": amount}, partition=amount % 2)
    position = warehouse.snapshot().position
    site.advance_ms(3_600_000)
    warehouse.admin().delete_topic("paid")

    opened = site.open()
    before = opened.snapshot(as_of=position)
    was = before.topic_settings("paid")
    found = before.read_arrow("paid").read_all()
    made = opened.admin().create_topic(
        "paid", partitions=was.partitions, schema=was.schema, key=was.key, config=was.config
    )
    with opened.producer() as again:
        again.send("paid", rows=found.drop_columns(left_out))

    assert (made.partitions, made.schema, made.config) == (2, TWO_COLUMNS, {"retention.ms": "-1"})
    paid = site.open().read_arrow("paid").read_all()
    assert sorted(paid["amount"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    kept = sorted(paid["_timestamp"].to_pylist()) == sorted(found["_timestamp"].to_pylist())
    assert kept is ("_timestamp" not in left_out)


def test_newest_position_shows_a_deleted_topic_and_now_says_where_to_look() -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("paid", schema=TWO_COLUMNS)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        with producer.transaction() as txn:
            txn.send("paid", row={"account": "a", "amount": 1})
    site.advance_ms(3_600_000)
    warehouse.admin().delete_topic("paid")

    opened = site.open()
    newest = opened.snapshot(as_of=opened.snapshot().position)

    assert newest.read_arrow("paid").read_all()["amount"].to_pylist() == [1]
    with pytest.raises(UnknownTopicOrPartitionError, match="`txntable snapshot --as-of TIME`"):
        opened.snapshot().read_arrow("paid")
