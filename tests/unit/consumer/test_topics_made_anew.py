"""A topic that is deleted and created again under a loop of read, write and commit: nothing of it is mixed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, poll_all, send, values
from tests.unit.consumer.members import BEAT_MS, RAW, copier, member, offset_of
from txntable.consumer.consumer import Consumer
from txntable.errors import IllegalStateError, UnknownTopicOrPartitionError
from txntable.producer.producer import Producer

NEW = [f"new{number}" for number in range(8)]

Send = Callable[[Consumer, Producer], None]


def make_anew(site: Site) -> None:
    admin = site.open().admin()
    admin.delete_topic("raw")
    admin.create_topic("raw", partitions=1)
    send(site.open().producer(), *NEW)


def send_positions(consumer: Consumer, producer: Producer) -> None:
    producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())


def send_of_consumer(consumer: Consumer, producer: Producer) -> None:
    producer.send_offsets_of(consumer)


@pytest.mark.parametrize("offer", [send_positions, send_of_consumer])
def test_offsets_of_what_was_read_of_a_topic_are_not_those_of_the_one_that_has_its_name_now(
    site: Site, offer: Send
) -> None:
    """Bug: as positions they were committed in the new topic, whose first records nobody read."""
    send(site.open().producer(), "old0", "old1", "old2", "old3", "old4")
    consumer, producer = member(site), copier(site)
    assert len(poll_all(consumer)) == 5
    make_anew(site)

    with producer.transaction():
        offer(consumer, producer)
    consumer.close()

    assert poll_all(member(site)) == NEW


def test_positions_and_metadata_of_before_are_those_of_the_topic_that_was_read(site: Site) -> None:
    send(site.open().producer(), "old0", "old1")
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    kept = consumer.positions(), consumer.group_metadata()
    make_anew(site)

    with producer.transaction():
        producer.send_offsets_to_transaction(*kept)
    consumer.close()

    assert poll_all(member(site)) == NEW


@pytest.mark.parametrize("reads_on", [True, False])
def test_positions_of_the_topic_before_take_nothing_away_that_is_committed_in_the_new_one(
    site: Site, reads_on: bool
) -> None:
    send(site.open().producer(), "old0", "old1")
    late, producer = member(site, subscribed=False), copier(site)
    late.assign([FIRST])
    poll_all(late)
    make_anew(site)
    other = member(site, subscribed=False)
    other.assign([FIRST])
    poll_all(other)
    other.commit()
    positions = late.positions()
    if not reads_on:
        late.unsubscribe()

    with producer.transaction():
        producer.send_offsets_to_transaction(positions, late.group_metadata())

    assert offset_of(other, FIRST) == len(NEW)


def seek_to_committed(consumer: Consumer) -> None:
    consumer.seek_to_committed()


def seek_to_committed_as_position(consumer: Consumer) -> None:
    consumer.seek_to_committed()
    # The group has not given out partitions of the new topic yet.
    with suppress(IllegalStateError):
        consumer.position(FIRST)


def seek_to_what_is_committed(consumer: Consumer) -> None:
    for partition, committed in consumer.committed(consumer.assignment()).items():
        if committed is None:
            consumer.seek_to_beginning(partition)
        else:
            consumer.seek(partition, committed.offset)


@pytest.mark.parametrize("go_back", [seek_to_committed, seek_to_committed_as_position, seek_to_what_is_committed])
@pytest.mark.parametrize("rested_ms", [0, BEAT_MS])
def test_rewind_after_an_abort_does_not_read_again_what_was_committed_of_the_topic_before(
    site: Site, go_back: Callable[[Consumer], None], rested_ms: int
) -> None:
    """Bug: what was committed went with the topic, so the earlier one was read from its beginning."""
    send(site.open().producer(), "old0", "old1", "old2", "old3")
    consumer, producer = member(site, max_poll_records=2), copier(site)
    with producer.transaction() as txn:
        assert values(consumer.poll()) == ["old0", "old1"]
        txn.send_offsets(consumer)
    assert values(consumer.poll()) == ["old2", "old3"]
    producer.begin_transaction()
    make_anew(site)
    producer.abort_transaction()
    site.advance_ms(rested_ms)

    go_back(consumer)
    # At once, and when its time has come to look for what is new anyway.
    found = values(consumer.poll())
    for _ in range(12):
        site.advance_ms(BEAT_MS)
        found += values(consumer.poll())

    assert found == NEW


def test_warning_names_the_topic_that_was_made_anew_and_no_other(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Bug: it named all topics of the subscription, as if each was read from its beginning."""
    site.open().admin().create_topic("other", partitions=1)
    send(site.open().producer(), "old0")
    consumer = member(site, subscribed=False)
    consumer.subscribe(["raw", "other"])
    poll_all(consumer)
    make_anew(site)

    poll_all(consumer)

    (said,) = [one.getMessage() for one in caplog.records if "created again" in one.getMessage()]
    assert said.endswith(" topics=raw")


def test_partition_that_a_member_gains_is_not_read_of_the_topic_before(site: Site) -> None:
    send(site.open().producer(), "old0", "old1")
    first, second = member(site, heartbeat_interval_ms=100), member(site, heartbeat_interval_ms=100)
    assert len(poll_all(first)) == 2
    first.commit()
    for _ in range(8):
        site.advance_ms(100)
        first.poll()
        second.poll()
    assert second.assignment() == {RAW[1]}
    first.close()
    second.poll()
    make_anew(site)

    found = []
    for _ in range(80):
        site.advance_ms(100)
        found += values(second.poll())

    assert found == NEW


def test_assigned_partition_of_a_topic_that_was_made_anew_is_refused_after_a_rewind(site: Site) -> None:
    send(site.open().producer(), "old0", "old1")
    consumer = member(site, subscribed=False)
    consumer.assign([FIRST])
    assert len(poll_all(consumer)) == 2
    make_anew(site)
    consumer.seek_to_committed()

    with pytest.raises(UnknownTopicOrPartitionError, match="created again; assign or subscribe again"):
        consumer.poll()
