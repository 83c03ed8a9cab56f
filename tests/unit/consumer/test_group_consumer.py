"""Consumers in a group: who reads what, and what the others see of one that is gone."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from tests.unit.consumer.consuming import poll_all, send, values
from tests.unit.consumer.members import BEAT_MS, RAW, SESSION_MS, Told, member, numbers, settle
from txntable.errors import (
    FencedInstanceIdError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    InvalidTopicError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.format.records import TopicPartition

FIRST, SECOND = RAW


# -- who reads what -------------------------------------------------------------------------


def test_first_member_has_all_partitions_and_the_second_takes_its_share_when_they_are_released(site: Site) -> None:
    first, second = member(site), member(site)
    first.poll()
    assert numbers(first) == [0, 1]

    second.poll()
    assert numbers(second) == [], "nothing is taken from who has not released it"
    settle(site, first, second)

    assert sorted([numbers(first), numbers(second)]) == [[0], [1]]


def test_partitions_of_who_closes_go_to_the_others_at_once(site: Site) -> None:
    first, second = member(site), member(site)
    settle(site, first, second)

    first.close()
    site.advance_ms(BEAT_MS)
    second.poll()

    assert numbers(second) == [0, 1]


def test_partitions_of_who_died_go_to_the_others_after_its_session(site: Site) -> None:
    dead, survivor = member(site), member(site)
    settle(site, dead, survivor)
    site.advance_ms(SESSION_MS - 5 * BEAT_MS)
    survivor.poll()
    site.advance_ms(BEAT_MS)
    survivor.poll()
    assert len(numbers(survivor)) == 1

    for _ in range(12):
        site.advance_ms(BEAT_MS)
        survivor.poll()

    assert numbers(survivor) == [0, 1]


def test_member_that_beats_is_never_expelled(site: Site) -> None:
    first, second = member(site), member(site)
    settle(site, first, second)
    before = first.group_metadata().generation

    for _ in range(60):
        site.advance_ms(BEAT_MS)
        first.poll()
        second.poll()

    assert first.group_metadata().generation == second.group_metadata().generation == before


def test_member_that_was_expelled_is_told_what_it_lost_and_joins_under_a_new_member_id(site: Site) -> None:
    silent, other, told = member(site, subscribed=False), member(site), Told()
    silent.subscribe(["raw"], listener=told)
    settle(site, silent, other)
    had, before = numbers(silent), silent.group_metadata().member_id
    site.advance_ms(SESSION_MS + BEAT_MS)
    other.poll()
    assert numbers(other) == [0, 1]

    silent.poll()

    assert told.calls[-1] == ("lost", had)
    assert numbers(silent) == []
    settle(site, other, silent)
    assert sorted([numbers(silent), numbers(other)]) == [[0], [1]]
    assert silent.group_metadata().member_id != before


def test_listener_is_told_what_is_got_and_given_up_and_nothing_of_what_stays(site: Site) -> None:
    first, second, told = member(site, subscribed=False), member(site), Told()
    first.subscribe(["raw"], listener=told)
    first.poll()
    second.poll()
    settle(site, first, second)
    given = numbers(second)
    second.close()
    settle(site, first)

    first.close()

    assert told.calls == [("assigned", [0, 1]), ("revoked", given), ("assigned", given), ("revoked", [0, 1])]


def test_partition_that_a_topic_gets_later_is_given_to_a_member_and_read_from_its_beginning(site: Site) -> None:
    consumer = member(site, auto_offset_reset="latest")
    consumer.poll()
    site.open().admin().create_partitions({"raw": 3})
    send(site.open().producer(), "new", partition=2)

    site.advance_ms(BEAT_MS)
    found = [*values(consumer.poll()), *values(consumer.poll())]

    assert numbers(consumer) == [0, 1, 2]
    assert found == ["new"]


def test_members_of_different_topics_have_the_partitions_of_what_they_subscribe_to(site: Site) -> None:
    first, second = member(site), member(site, subscribed=False)
    second.subscribe(["u"])

    settle(site, first, second)

    assert set(first.assignment()) == set(RAW)
    assert second.assignment() == {TopicPartition("u", 0)}


def test_changed_subscription_gives_up_what_is_not_read_any_more(site: Site) -> None:
    consumer, other, told = member(site, subscribed=False), member(site), Told()
    consumer.subscribe(["raw", "u"], listener=told)
    settle(site, consumer, other)
    had = [each.partition for each in consumer.assignment() if each.topic == "raw"]

    consumer.subscribe(["u"], listener=told)
    settle(site, consumer, other)

    assert consumer.assignment() == {TopicPartition("u", 0)}
    assert numbers(other) == [0, 1]
    assert told.calls[-1] == ("revoked", had)


def test_pattern_subscribes_to_topics_that_match_whole_and_finds_new_ones(site: Site) -> None:
    consumer = member(site, subscribed=False, metadata_max_age_ms=10_000)
    consumer.subscribe(pattern="r.*|v.*")
    consumer.poll()
    assert consumer.subscription() == {"raw"}
    site.open().admin().create_topic("views", partitions=1)
    site.open().admin().create_topic("overviews", partitions=1)

    site.advance_ms(10_000)
    consumer.poll()
    consumer.poll()

    assert consumer.subscription() == {"raw", "views"}
    assert TopicPartition("views", 0) in consumer.assignment()


def test_pattern_among_names_is_refused_with_the_argument_that_takes_it(site: Site) -> None:
    consumer = member(site)

    with pytest.raises(InvalidTopicError, match="give a pattern as pattern="):
        consumer.subscribe(["^ra.*"])

    assert consumer.subscription() == {"raw"}


def test_pattern_forgets_a_topic_that_was_deleted_and_begins_anew_in_one_made_again(site: Site) -> None:
    send(site.open().producer(), "old", "older")
    consumer = member(site, subscribed=False)
    consumer.subscribe(pattern="raw")
    assert poll_all(consumer) == ["old", "older"]
    consumer.commit()
    admin = site.open().admin()
    admin.delete_topic("raw")
    site.advance_ms(BEAT_MS)
    assert consumer.poll() == {}
    assert consumer.subscription() == set()

    admin.create_topic("raw", partitions=1)
    send(site.open().producer(), "new")
    site.advance_ms(300_000)
    found = [value for _ in range(3) for value in values(consumer.poll())]

    assert found == ["new"]


def test_pattern_warns_of_a_topic_that_was_created_again(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Bug: nobody was told, and with `latest` what the new topic had was passed over."""
    consumer = member(site, subscribed=False)
    consumer.subscribe(pattern="raw")
    consumer.poll()
    site.open().admin().delete_topic("raw")
    site.open().admin().create_topic("raw", partitions=1)
    send(site.open().producer(), "new")
    site.advance_ms(300_000)

    assert [value for _ in range(3) for value in values(consumer.poll())] == ["new"]
    assert "created again, and is read as auto_offset_reset says topics=raw" in caplog.text


@pytest.mark.parametrize("group", ["g", None])
def test_subscription_goes_on_in_a_topic_that_was_created_again(site: Site, group: str | None) -> None:
    """Bug: each poll failed until somebody subscribed again."""
    send(site.open().producer(), "old", "older")
    consumer = member(site, group_id=group)
    assert poll_all(consumer) == ["old", "older"]
    if group is not None:
        consumer.commit()
    admin = site.open().admin()
    admin.delete_topic("raw")
    admin.create_topic("raw", partitions=2)
    send(site.open().producer(), "new")
    site.advance_ms(BEAT_MS)

    found = []
    for _ in range(4):
        site.advance_ms(BEAT_MS)
        found += values(consumer.poll())

    assert found == ["new"]
    assert consumer.position(RAW[0]) == 1


def test_subscription_to_a_topic_that_was_deleted_is_an_error(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    site.open().admin().delete_topic("raw")
    site.advance_ms(BEAT_MS)

    for _ in range(2):
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.poll()


def test_listener_of_a_second_subscription_is_told_of_what_the_member_has_kept(site: Site) -> None:
    """Bug: it was never called."""
    consumer, told = member(site), Told()
    consumer.poll()

    consumer.subscribe(["raw"], listener=told)
    consumer.poll()
    consumer.poll()

    assert told.calls == [("assigned", [0, 1])]


def test_pattern_without_a_group_reads_all_partitions_of_what_matches(site: Site) -> None:
    send(site.open().producer(), "a", partition=1)
    consumer = site.open().consumer(auto_offset_reset="earliest")

    consumer.subscribe(pattern="ra.")

    assert poll_all(consumer) == ["a"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"pattern": "("}, InvalidRegularExpressionError),
        ({"pattern": 1}, InvalidRegularExpressionError),
        ({"topics": ["raw"], "pattern": "raw"}, InvalidRequestError),
    ],
)
def test_pattern_that_is_none_is_refused(site: Site, call: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        member(site, subscribed=False).subscribe(**call)


def test_member_without_an_assignor_in_common_is_refused(site: Site) -> None:
    member(site, partition_assignment_strategy=["range"]).poll()

    with pytest.raises(InconsistentGroupProtocolError):
        member(site, partition_assignment_strategy=["sticky"]).poll()


# -- static members -------------------------------------------------------------------------


def test_static_member_that_restarts_goes_on_with_its_partitions_and_the_group_does_not_move(site: Site) -> None:
    other = member(site)
    first = member(site, group_instance_id="i")
    settle(site, other, first)
    had, before = first.assignment(), first.group_metadata().generation
    first.close()

    again = member(site, group_instance_id="i")
    again.poll()

    assert again.assignment() == had
    assert again.group_metadata().generation == before


def test_static_member_is_fenced_by_a_newer_one_for_good(site: Site) -> None:
    old = member(site, group_instance_id="i")
    old.poll()
    new = member(site, group_instance_id="i")
    new.poll()

    site.advance_ms(BEAT_MS)
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            old.poll()
    with pytest.raises(FencedInstanceIdError):
        old.commit()
    old.close()

    assert numbers(new) == [0, 1]
    site.advance_ms(BEAT_MS)
    new.poll()
    assert numbers(new) == [0, 1]


# -- misuse, failures, cost -----------------------------------------------------------------


def test_offsets_without_a_group_are_refused(site: Site) -> None:
    consumer = site.open().consumer()
    consumer.assign([FIRST])
    for call in (
        consumer.commit,
        consumer.group_metadata,
        lambda: consumer.committed([FIRST]),
        consumer.seek_to_committed,
    ):
        with pytest.raises(IllegalStateError, match="group_id"):
            call()


def test_commit_of_who_is_no_member_is_refused_while_the_group_has_members(site: Site) -> None:
    member(site).poll()
    outsider = member(site, subscribed=False)
    outsider.assign([FIRST])

    with pytest.raises(UnknownMemberIdError):
        outsider.commit({FIRST: 0})


def test_join_whose_answer_was_lost_is_one_join(site: Site) -> None:
    warehouse = site.open(on(Operation.PUT_IF_ABSENT, f"{OFFSET_LOG_ROOT}/_delta_log", Fault.LOST_ANSWER))
    consumer = member(warehouse)

    consumer.poll()

    assert numbers(consumer) == [0, 1]
    assert consumer.group_metadata().generation == 1


def test_heartbeat_that_fails_is_tried_again_and_harms_no_poll(site: Site) -> None:
    send(site.open().producer(), "a")
    warehouse = site.open(on(Operation.PUT, "system/heartbeats", Fault.FAIL_BEFORE))
    consumer = member(warehouse)
    consumer.poll()
    site.advance_ms(BEAT_MS)

    assert consumer.poll() == {}
    consumer.poll()

    assert len(site.objects_below("system/heartbeats")) == 1


def test_idle_poll_costs_two_gets_and_a_heartbeat_a_put_and_a_get_more(site: Site) -> None:
    warehouse = site.open()
    consumer = member(warehouse)
    consumer.poll()
    consumer.poll()
    assert isinstance(warehouse.store, SteppingStore)
    before = warehouse.store.requests
    site.advance_ms(1_000)
    consumer.poll()
    idle = warehouse.store.requests - before
    site.advance_ms(BEAT_MS)
    consumer.poll()

    assert dict(idle) == {"GET": 2}
    assert dict(warehouse.store.requests - before - idle) == {"GET": 3, "PUT": 1}


def test_looking_for_dead_members_costs_a_head_for_each_only_when_it_may_be_dead(site: Site) -> None:
    others = [member(site) for _ in range(3)]
    warehouse = site.open()
    consumer = member(warehouse)
    settle(site, *others, consumer)
    assert isinstance(warehouse.store, SteppingStore)
    before = warehouse.store.requests["HEAD"]

    for _ in range(15):
        site.advance_ms(BEAT_MS)
        for each in (*others, consumer):
            each.poll()

    assert warehouse.store.requests["HEAD"] - before <= 3
