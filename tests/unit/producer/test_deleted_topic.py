"""A topic that is deleted under an open transaction takes its records along; the rest commits (PROTOCOL.md §6.3)."""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import accounts, row, started
from txntable.errors import UnknownTopicOrPartitionError
from txntable.producer.producer import Producer


def with_two_topics(site: Site) -> Producer:
    """A producer whose transaction has a record in the logs of both topics."""
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("goes"))
    producer.send("t", row=row("stays"))
    producer.flush()
    return producer


def test_commit_is_one_of_the_rest_when_a_topic_was_deleted_after_its_records_were_appended(site: Site) -> None:
    producer = with_two_topics(site)
    site.open().admin().delete_topic("u")

    producer.commit_transaction()

    assert accounts(site, "t") == ["stays"]
    assert producer.state == "READY"


def test_records_of_a_deleted_topic_are_not_in_the_one_that_is_created_again(site: Site) -> None:
    producer = with_two_topics(site)
    admin = site.open().admin()
    admin.delete_topic("u")
    admin.create_topic("u", schema=TWO_COLUMNS)

    producer.commit_transaction()

    assert accounts(site, "u") == []
    with producer.transaction() as txn:
        txn.send("u", row=row("new"))
    assert accounts(site, "u") == ["new"]


def test_commit_is_refused_and_an_abort_is_left_when_records_of_a_deleted_topic_were_not_appended(site: Site) -> None:
    producer = with_two_topics(site)
    producer.send("u", row=row("waiting"))
    site.open().admin().delete_topic("u")

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.commit_transaction()

    producer.abort_transaction()
    assert accounts(site, "t") == []
    assert producer.state == "READY"
