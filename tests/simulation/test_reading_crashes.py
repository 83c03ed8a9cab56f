"""A kill before and after every storage call of a consumer that ends what holds it back, then another consumer alone.

Nobody else comes by: no producer of the id, no coordinator job.
"""

from __future__ import annotations

from tests.simulation.site import Site
from tests.simulation.test_crashes import TIMEOUT_MS, kills, prepared
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

TOPICS = ("debit", "credit")


def site_held_back() -> Site:
    """A dead writer's transaction is open in both topics; what was committed behind it waits; its timeout is over."""
    site = prepared(open_transaction=True)
    with site.open().producer("alive") as alive:
        alive.init_transactions()
        with alive.transaction():
            for topic in TOPICS:
                for partition in range(2):
                    alive.send(topic, row={"account": "behind", "amount": 1}, partition=partition)
            alive.flush()
    site.advance_ms(TIMEOUT_MS + 1)
    return site


def read_on(warehouse: Warehouse) -> list[str]:
    """Read both topics to their ends."""
    found: list[str] = []
    with warehouse.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, partition) for topic in TOPICS for partition in range(2)])
        while polled := consumer.poll():
            found += [record.row["account"] for records in polled.values() for record in records]
    return found


def test_consumer_killed_anywhere_while_it_ends_what_holds_it_back_is_followed_by_one_that_reads_on() -> None:
    for site, where in kills(site_held_back(), read_on):
        assert read_on(site.open()) == ["behind"] * 4, where

        (row,) = [one for one in site.open().admin().list_transactions() if one.transactional_id == "etl"]
        assert row.state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT), where
        assert site.open().admin().find_blocking_transactions() == [], where
