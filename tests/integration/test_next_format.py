"""A later format reaches a warehouse under clients that do not know it: they stop, told what to do; nothing is lost.

The drill of PROTOCOL.md's promise, with a feature that means nothing.  The upgraded client is this code with the name
of the feature among those that it knows; it commits the feature to T first, then to each other log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.log.world import plant
from txntable.errors import UnsupportedFormatError
from txntable.format.records import TopicPartition
from txntable.log import actions
from txntable.log.actions import Protocol, guard_protocol
from txntable.log.delta_log import DeltaLog
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

FEATURE = "txntable.format2"
TIMEOUT_MS = 60_000


@contextmanager
def upgraded() -> Iterator[None]:
    """Within it this process is the client that knows the feature."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actions, "WRITER_FEATURES", (*actions.WRITER_FEATURES, FEATURE))
        yield


def require_feature(*logs: DeltaLog) -> None:
    guard = guard_protocol()
    for log in logs:
        plant(log, Protocol(guard.min_reader, guard.min_writer, (), (*guard.writer_features, FEATURE)))


def send(producer: Producer, account: str) -> None:
    producer.begin_transaction()
    producer.send("t", row={"account": account, "amount": 1})
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")


def producer_of(warehouse: Warehouse, name: str) -> Producer:
    producer = warehouse.producer(name, transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    return producer


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", schema=TWO_COLUMNS)
    producer = producer_of(site.open(), "before")
    send(producer, "committed")
    producer.commit_transaction()
    return site


OLD_CLIENTS: dict[str, Callable[[Warehouse], object]] = {
    "decides": lambda warehouse: send(producer_of(warehouse, "another"), "late"),
    "reads what is committed": lambda warehouse: warehouse.read_arrow("t").read_all(),
    "follows a partition": lambda warehouse: warehouse.admin().list_offsets({TopicPartition("t", 0): "latest"}),
    "looks at a group": lambda warehouse: warehouse.admin().list_consumer_group_offsets("g"),
    "maintains": lambda warehouse: warehouse.coordinator().run_once(),
}


def test_producer_of_before_is_not_told_committed_when_the_feature_came_within_its_transaction(site: Site) -> None:
    old = producer_of(site.open(), "old")
    send(old, "undecided")
    with upgraded():
        require_feature(site.open().transactions.log)

    with pytest.raises(UnsupportedFormatError, match="upgrade txntable"):
        old.commit_transaction()

    with upgraded():
        assert [row["account"] for row in published(site.open(), "t")] == ["committed"]


def test_client_of_before_does_not_open_a_warehouse_when_the_transaction_log_has_the_feature(site: Site) -> None:
    with upgraded():
        require_feature(site.open().transactions.log)

    with pytest.raises(UnsupportedFormatError, match=FEATURE):
        site.open().admin().list_transactions()


@pytest.mark.parametrize("does", OLD_CLIENTS)
def test_client_that_is_open_stops_when_all_logs_have_the_feature(site: Site, does: str) -> None:
    old = site.open()
    old.admin().list_transactions()
    with upgraded():
        new = site.open()
        topic = new.topic_log("t")
        require_feature(new.transactions.log, new.offsets.log, topic.segments, topic.public)
    site.advance_ms(600_000)

    with pytest.raises(UnsupportedFormatError, match="upgrade txntable"):
        OLD_CLIENTS[does](old)


def test_nothing_is_lost_and_all_goes_on_when_every_client_was_upgraded(site: Site) -> None:
    old = producer_of(site.open(), "old")
    send(old, "undecided")
    with upgraded():
        new = site.open()
        topic = new.topic_log("t")
        require_feature(new.transactions.log, new.offsets.log, topic.segments, topic.public)
        site.advance_ms(TIMEOUT_MS + 1)
        new.coordinator().run_once()
        producer = producer_of(new, "old")
        send(producer, "after")
        producer.commit_transaction()

        assert [row["account"] for row in published(site.open(), "t")] == ["committed", "after"]
        assert new.admin().find_blocking_transactions() == []
