"""Offsets of a group in a transaction: pending until decided, settled at completion, fenced by the log."""

from __future__ import annotations

import pytest

from coordinator.group_offsets import CommittedOffset
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.client.group_commit import OffsetAndMetadata
from txntable.client.records import TopicPartition
from txntable.errors import (
    OffsetMetadataTooLargeError,
    ProducerFencedError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from txntable.warehouse import Warehouse

IN = TopicPartition("in", 0)


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("in", partitions=2, schema=TWO_COLUMNS)
    admin.create_topic("out", partitions=2, schema=TWO_COLUMNS)
    return site


def producer_of(warehouse: Warehouse, transactional_id: str = "etl"):
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    return producer


def committed(site: Site) -> CommittedOffset | None:
    offsets = site.open().offsets
    offsets.refresh()
    row = offsets.offsets("g").get(IN)
    return None if row is None else row.committed


def test_offsets_count_when_the_transaction_commits(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send("out", row={"account": "a", "amount": 1})

    producer.send_offsets_to_transaction({IN: OffsetAndMetadata(7, "note")}, "g")

    assert committed(site) is None
    producer.commit_transaction()
    found = committed(site)
    row = warehouse.transactions.row("etl")
    assert found is not None
    assert row is not None
    assert row.decision is not None
    assert (found.offset, found.metadata, found.position) == (7, "note", row.decision.position)
    assert row.groups == ()
    assert site.open().offsets.log.refresh().number("decided_through") == row.decision.position


def test_offsets_are_dropped_when_the_transaction_aborts(site: Site) -> None:
    producer = producer_of(site.open())
    with producer.transaction():
        producer.send_offsets_to_transaction({IN: 3}, "g")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")

    producer.abort_transaction()

    found = committed(site)
    assert found is not None
    assert found.offset == 3


def test_offsets_without_records_are_a_transaction(site: Site) -> None:
    producer = producer_of(site.open())

    with producer.transaction():
        producer.send_offsets_to_transaction({IN: 3}, "g")

    assert committed(site) is not None


def test_offsets_of_a_fenced_producer_are_refused_and_never_pending(site: Site) -> None:
    zombie = producer_of(site.open())
    zombie.begin_transaction()
    producer_of(site.open())

    with pytest.raises(ProducerFencedError):
        zombie.send_offsets_to_transaction({IN: 3}, "g")

    assert committed(site) is None
    offsets = site.open().offsets
    offsets.refresh()
    assert not offsets.log.fold.pending


def test_offsets_of_a_dead_producer_are_dropped_by_the_next_one(site: Site) -> None:
    dead = producer_of(site.open())
    dead.begin_transaction()
    dead.send_offsets_to_transaction({IN: 3}, "g")

    producer_of(site.open())

    offsets = site.open().offsets
    offsets.refresh()
    assert offsets.offsets("g") == {}


def test_offsets_are_settled_by_others_when_their_producer_died_after_its_decision(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 3}, "g")

    def killed() -> int:
        raise UnstableOffsetCommitError("killed")

    monkeypatch.setattr(warehouse.completer, "settle_offsets", killed)
    producer.commit_transaction()
    assert committed(site) is None

    site.open().complete()

    found = committed(site)
    assert found is not None
    assert found.offset == 3


def test_too_long_text_is_refused_before_anything_is_sent(site: Site) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()

    with pytest.raises(OffsetMetadataTooLargeError):
        producer.send_offsets_to_transaction({IN: OffsetAndMetadata(3, "x" * 4097)}, "g")

    producer.commit_transaction()
    assert committed(site) is None


def test_offsets_of_an_unknown_topic_are_refused_and_harm_nothing(site: Site) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_offsets_to_transaction({TopicPartition("nowhere", 0): 3}, "g")

    producer.send_offsets_to_transaction({IN: 4}, "g")
    producer.commit_transaction()
    found = committed(site)
    assert found is not None
    assert found.offset == 4


def test_one_enrolment_serves_records_and_offsets(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    before = warehouse.transactions.refresh()
    producer.send("out", row={"account": "a", "amount": 1})

    producer.send_offsets_to_transaction({IN: 7}, "g")

    assert warehouse.transactions.refresh() == before + 1
