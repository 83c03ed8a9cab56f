"""A listener of a consumer without a group: it has all partitions, and is told of what comes and goes."""

from __future__ import annotations

from tests.simulation.site import Site
from txntable.consumer.consumer import Consumer
from txntable.format.records import TopicPartition

T0, T1, T2, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)


class Told:
    """What a listener was called with."""

    def __init__(self, consumer: Consumer, *topics: str) -> None:
        self.assigned: list[set[TopicPartition]] = []
        self.revoked: list[set[TopicPartition]] = []
        consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: self.assigned.append(set(partitions)),
            on_revoke=lambda _, partitions: self.revoked.append(set(partitions)),
        )


def test_all_partitions_are_told_once_by_the_first_poll(site: Site) -> None:
    with site.open().consumer() as consumer:
        told = Told(consumer, "t", "u")
        assert told.assigned == []

        consumer.poll()
        consumer.poll()

        assert (told.assigned, told.revoked) == ([{T0, T1, U0}], [])


def test_partitions_that_a_topic_gets_are_told_when_they_are_read(site: Site) -> None:
    with site.open().consumer() as consumer:
        told = Told(consumer, "t")
        consumer.poll()

        site.open().admin().create_partitions({"t": 3})
        while len(consumer.assignment()) < 3:
            consumer.poll()
        consumer.poll()

        assert told.assigned == [{T0, T1}, {T2}]


def test_partitions_are_told_revoked_when_they_are_read_no_more(site: Site) -> None:
    consumer = site.open().consumer()
    told = Told(consumer, "t")
    consumer.poll()

    consumer.unsubscribe()

    assert told.revoked == [{T0, T1}]


def test_partitions_are_told_revoked_when_the_consumer_is_closed(site: Site) -> None:
    with site.open().consumer() as consumer:
        told = Told(consumer, "t")
        consumer.poll()

    assert told.revoked == [{T0, T1}]


def test_new_listener_is_told_of_what_is_read_already(site: Site) -> None:
    with site.open().consumer() as consumer:
        Told(consumer, "t")
        consumer.poll()

        told = Told(consumer, "t", "u")
        consumer.poll()

        assert told.assigned == [{T0, T1, U0}]


def test_partitions_that_are_assigned_by_hand_are_told_to_nobody(site: Site) -> None:
    with site.open().consumer() as consumer:
        told = Told(consumer, "t")
        consumer.unsubscribe()
        consumer.assign([U0])

        consumer.poll()

        assert (told.assigned, told.revoked) == ([], [])
