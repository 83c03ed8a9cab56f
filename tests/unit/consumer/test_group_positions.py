"""Consumers in a group: where they begin, and what they commit by themselves."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import offsets, poll_all, send, values
from tests.unit.consumer.members import BEAT_MS, RAW, Told, copier, member, numbers, offset_of, settle
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.consumer.subscription import Subscription
from txntable.errors import OffsetOutOfRangeError, StaleMemberEpochError
from txntable.format.records import TopicPartition

FIRST, SECOND = RAW


# -- where they begin -----------------------------------------------------------------------


def test_partition_is_read_from_what_the_group_has_committed(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    first = member(site)
    first.poll()
    first.commit({FIRST: 2})
    first.close()

    assert poll_all(member(site)) == ["c"]


@pytest.mark.parametrize(("reset", "found"), [("earliest", ["a"]), ("latest", [])])
def test_partition_without_a_committed_offset_begins_by_the_reset(site: Site, reset: str, found: list[str]) -> None:
    send(site.open().producer(), "a")

    assert poll_all(member(site, auto_offset_reset=reset)) == found


def test_partition_without_a_committed_offset_is_an_error_when_the_reset_is_none(site: Site) -> None:
    send(site.open().producer(), "a")

    with pytest.raises(OffsetOutOfRangeError):
        member(site, auto_offset_reset="none").poll()


def test_poll_does_not_wait_for_a_transaction_with_offsets_and_reads_the_other_partitions(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "a")
    send(producer, "b", partition=1)
    pending = copier(site)
    pending.begin_transaction()
    pending.send_offsets_to_transaction({FIRST: 1}, "g")
    consumer = member(site)

    assert values(consumer.poll()) == ["b"]
    pending.commit_transaction()

    assert poll_all(consumer) == []
    assert consumer.position(FIRST) == 1


def test_poll_ends_a_transaction_with_offsets_whose_timeout_has_passed(site: Site) -> None:
    send(site.open().producer(), "a")
    dead = copier(site)
    dead.begin_transaction()
    dead.send_offsets_to_transaction({FIRST: 1}, "g")
    consumer = member(site)
    assert values(consumer.poll()) == []

    site.advance_ms(60_001)

    assert poll_all(consumer) == ["a"]


def test_assigned_partitions_begin_at_the_committed_offset_without_membership(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    first = member(site, subscribed=False)
    first.assign([FIRST])
    first.poll(max_records=1)
    first.commit()

    again = member(site, subscribed=False)
    again.assign([FIRST])

    assert poll_all(again) == ["b"]
    offsets_log = site.open().offsets
    offsets_log.refresh()
    assert offsets_log.group("g") is None


def test_position_seek_and_pause_work_in_a_group(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = member(site)
    consumer.poll(max_records=1)

    consumer.seek(FIRST, 2)
    consumer.pause(FIRST)
    assert consumer.poll() == {}
    consumer.resume(FIRST)

    assert offsets(consumer.poll()) == [2]
    assert consumer.position(FIRST) == 3


def test_member_that_learns_of_its_removal_by_a_new_partition_begins_again_where_the_group_has_committed(
    site: Site,
) -> None:
    producer = site.open().producer()
    send(producer, "a")
    send(producer, "b", partition=1)
    told = Told()
    consumer, other = member(site, subscribed=False), member(site)
    consumer.subscribe(["raw"], listener=told)
    settle(site, consumer, other)
    kept = numbers(consumer)
    consumer.poll()
    admin = site.open().admin()
    admin.remove_members_from_consumer_group("g", [consumer.group_metadata().member_id])
    admin.create_partitions({"raw": 3})
    site.advance_ms(500)

    for _ in range(3):
        consumer.poll()

    assert ("lost", kept) in told.calls


# -- committing by itself -------------------------------------------------------------------


def test_positions_are_committed_by_a_later_poll_when_that_is_due(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    consumer = member(site, enable_auto_commit=True, max_poll_records=1)
    consumer.poll()
    assert offset_of(consumer, FIRST) is None

    site.advance_ms(5_000)
    consumer.poll()

    assert offset_of(consumer, FIRST) == 1, "what the poll before returned"


def test_positions_are_committed_before_partitions_are_released_and_by_close(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "a")
    send(producer, "b", partition=1)
    first, second = member(site, enable_auto_commit=True), member(site, enable_auto_commit=True)
    assert sorted(poll_all(first)) == ["a", "b"]
    settle(site, second, first)
    first.close()

    settle(site, second)

    assert numbers(second) == [0, 1]
    assert poll_all(second) == []


def test_what_was_read_before_a_partition_was_given_up_can_not_be_committed_although_the_group_left_it(
    site: Site,
) -> None:
    """The other member left between the look and the release: what was read came again, and would count twice."""
    send(site.open().producer(), "a")
    send(site.open().producer(), "b", partition=1)
    first, second, producer = member(site, subscribed=False), member(site), copier(site)

    class LetsTheOtherLeave(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            second.close()

    first.subscribe(["raw"], listener=LetsTheOtherLeave())
    producer.begin_transaction()
    before = poll_all(first)
    second.poll()
    site.advance_ms(BEAT_MS)
    again = poll_all(first)

    with pytest.raises(StaleMemberEpochError):
        producer.send_offsets_of(first)

    assert sorted(before) == ["a", "b"]
    assert len(again) == 1, "as told: revoked, and assigned again"
    assert numbers(first) == [0, 1]
    producer.abort_transaction()
    first.seek_to_committed()
    producer.begin_transaction()
    assert sorted(poll_all(first)) == ["a", "b"]
    producer.send_offsets_of(first)
    producer.commit_transaction()


def test_no_position_is_committed_when_that_is_switched_off(site: Site) -> None:
    send(site.open().producer(), "a")
    first = member(site)
    first.poll()
    site.advance_ms(10_000)
    first.poll()
    first.close()

    assert poll_all(member(site)) == ["a"]


def test_beginning_at_the_end_is_committed_too_so_that_a_restart_loses_nothing(site: Site) -> None:
    send(site.open().producer(), "old")
    first = member(site, auto_offset_reset="latest", enable_auto_commit=True)
    first.poll()
    first.close()
    send(site.open().producer(), "meanwhile")

    assert poll_all(member(site, auto_offset_reset="latest")) == ["meanwhile"]


# -- partitions that returned nothing -------------------------------------------------------


@pytest.mark.parametrize("how", ["commit", "close", "auto commit"])
def test_commit_speaks_of_all_partitions_also_of_those_that_returned_nothing(site: Site, how: str) -> None:
    send(site.open().producer(), "a", "b")
    send(site.open().producer(), "c", partition=1)
    consumer = member(site, enable_auto_commit=how != "commit")

    assert values(consumer.poll(max_records=1)) == ["a"]
    if how == "commit":
        consumer.commit()
    elif how == "close":
        consumer.close()
    else:
        consumer.pause(*RAW)
        site.advance_ms(5_000)
        consumer.poll()

    other = member(site, subscribed=False)
    assert (offset_of(other, FIRST), offset_of(other, SECOND)) == (1, 0)


def test_positions_are_known_after_a_poll_also_where_reading_is_paused(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    consumer = member(site, auto_offset_reset="latest")
    assert consumer.positions() == {}

    consumer.poll()
    consumer.pause(*RAW)
    send(site.open().producer(), "c")

    assert consumer.positions() == {FIRST: 2, SECOND: 0}
    consumer.resume(*RAW)
    assert poll_all(consumer) == ["c"]


def test_interruption_between_two_positions_moves_neither(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for partition in (0, 1):
        send(site.open().producer(), f"in {partition}", partition=partition)
    consumer = member(site)
    advance = Subscription.advance

    class Interrupted(dict[TopicPartition, int]):
        def items(self) -> Any:
            yield next(iter(super().items()))
            raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Subscription, "advance", lambda self, offsets: advance(self, Interrupted(offsets)))
        with pytest.raises(KeyboardInterrupt):
            consumer.poll()
    consumer.commit()

    assert (offset_of(consumer, FIRST), offset_of(consumer, SECOND)) == (0, 0)
    assert sorted(poll_all(consumer)) == ["in 0", "in 1"]


def test_positions_of_what_stays_are_not_touched_by_a_rebalance(site: Site) -> None:
    for partition in (0, 1):
        send(site.open().producer(), "a", "b", "c", partition=partition)
    first = member(site, max_poll_records=1)
    for other in reversed(RAW):
        first.poll()
        first.pause(RAW)
        first.resume([other])
    assert [first.position(partition) for partition in RAW] == [1, 1]
    first.resume(RAW)

    second = member(site)
    settle(site, first, second)

    assert len(numbers(first)) == 1
    assert poll_all(first) == ["b", "c"]
