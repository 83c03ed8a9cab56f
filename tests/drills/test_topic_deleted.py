"""A topic is deleted by mistake, and created again by somebody who wants to help.

Lost: nothing, until vacuum takes the files.  Every record is read at a position before the deletion, and written again.
"""

from __future__ import annotations

from tests.simulation.site import TWO_COLUMNS, Site


def test_records_of_a_deleted_topic_are_read_before_its_deletion_and_written_into_a_new_one() -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        for amount in range(6):
            txn.send("paid", row={"account": str(amount), "amount": amount}, partition=amount % 2)
    position = warehouse.snapshot().position
    site.advance_ms(3_600_000)
    warehouse.admin().delete_topic("paid")
    warehouse.admin().create_topic("paid", partitions=1, schema=TWO_COLUMNS)

    opened = site.open()
    found = opened.snapshot(as_of=position).read_arrow("paid", columns=["account", "amount"]).read_all()
    with opened.producer() as again:
        again.send("paid", rows=found)

    paid = site.open().read_arrow("paid").read_all()
    assert sorted(paid["amount"].to_pylist()) == [0, 1, 2, 3, 4, 5]
