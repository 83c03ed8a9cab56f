"""Members come and go: who owns what, who is to release what, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.groups import FLIGHTS, GroupLog, of_flights, topic_id_of
from tests.unit.coordinator.test_assignors import FAMILIES, a_partition
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidRequestError,
    InvalidSessionTimeoutError,
    TxnTableError,
    UnknownMemberIdError,
)
from txntable.coordinator.group import GroupRow, GroupTopic
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_request import ExpelRequest, MemberRequest
from txntable.coordinator.group_shard import assignment_of, expel, leave, refresh, release
from txntable.coordinator.group_state import GroupState


@pytest.fixture
def log() -> GroupLog:
    """m1 and m2 share six partitions of flights, three each; generation 2."""
    log = GroupLog()
    log.join("m1")
    log.join("m2")
    log.release("m1")
    return log


# -- joining --------------------------------------------------------------------------------


def test_first_member_owns_everything_at_once() -> None:
    log = GroupLog()

    found = log.join("m1")

    assert (found.generation, found.state, found.assignor) == (1, GroupState.STABLE, Assignor.STICKY)
    assert found.partitions == dict.fromkeys(of_flights(0, 1, 2, 3, 4, 5), 1)
    assert (found.to_release, found.awaited) == ({}, frozenset())


def test_second_member_waits_until_the_first_has_released() -> None:
    log = GroupLog()
    log.join("m1")

    waiting = log.join("m2")

    assert (waiting.generation, waiting.state, waiting.partitions) == (2, GroupState.RECONCILING, {})
    assert sorted(waiting.awaited) == of_flights(3, 4, 5)
    assert log.look("m1").partitions == dict.fromkeys(of_flights(0, 1, 2), 1)
    assert log.look("m1").to_release == dict.fromkeys(of_flights(3, 4, 5), 1)

    log.release("m1", *of_flights(3, 5))
    assert log.look("m2").partitions == dict.fromkeys(of_flights(3, 5), 2)
    assert log.look("m2").state is GroupState.RECONCILING

    assert log.release("m1", *of_flights(4)).state is GroupState.STABLE
    assert log.owned == {"m1": of_flights(0, 1, 2), "m2": of_flights(3, 4, 5)}
    assert log.look("m2").generation == 2


def test_join_made_again_writes_nothing(log: GroupLog) -> None:
    before = log.row

    again = log.join("m2", now_ms=5_000)

    assert log.row is before
    assert again.partitions == dict.fromkeys(of_flights(3, 4, 5), 2)


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({"session_timeout_ms": 20_000}, 2),
        ({"client_id": "c", "host": "h"}, 2),
        ({"topics": frozenset({"flights", "orders"})}, 3),
        ({"assignors": (Assignor.STICKY, Assignor.RANGE)}, 3),
    ],
)
def test_member_that_joins_otherwise_begins_a_generation_only_when_it_matters(
    log: GroupLog, change: dict[str, Any], generation: int
) -> None:
    log.join("m2", generation=2, now_ms=5_000, **change)

    assert log.row is not None
    member = log.row.members["m2"]
    assert (log.row.generation, member.joined_generation, member.joined_ms) == (generation, generation, 5_000)
    assert {epoch for partition, epoch in member.owned.items() if partition[0] == "flights"} == {2}


def test_member_that_subscribes_to_other_topics_keeps_the_old_ones_until_it_releases_them(log: GroupLog) -> None:
    found = log.join("m2", topics=frozenset({"orders"}), generation=2)

    assert found.partitions == {("orders", number): 3 for number in range(3)}
    assert found.to_release == dict.fromkeys(of_flights(3, 4, 5), 2)

    log.release("m2")
    assert log.owned["m1"] == of_flights(0, 1, 2, 3, 4, 5)


def test_member_of_an_unknown_topic_gets_nothing_until_it_exists() -> None:
    log = GroupLog()
    log.join("m1", topics=frozenset({"late"}), topics_found={"late": None})
    assert log.owned == {"m1": []}

    log.refresh({"late": GroupTopic("1" * 32, 2)})

    assert log.look("m1").partitions == {("late", 0): 2, ("late", 1): 2}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "gone", "generation": 2}, UnknownMemberIdError),
        ({"member_id": "m1", "generation": 3}, FencedMemberEpochError),
        ({"member_id": "m3", "max_size": 2}, GroupMaxSizeReachedError),
        ({"member_id": "m3", "assignors": (Assignor.RANGE,)}, InconsistentGroupProtocolError),
        ({"member_id": "m1", "instance_id": "i"}, InvalidRequestError),
        ({"member_id": "m3", "topics": frozenset()}, InvalidRequestError),
        ({"member_id": "m3", "topics": frozenset({"unseen"})}, InvalidRequestError),
        ({"member_id": "m3", "assignors": ()}, InvalidRequestError),
        ({"member_id": ""}, InvalidRequestError),
        ({"member_id": "m3", "instance_id": ""}, InvalidRequestError),
        ({"member_id": "m3", "session_timeout_ms": 5_999}, InvalidSessionTimeoutError),
        ({"member_id": "m3", "session_timeout_ms": 1_800_001}, InvalidSessionTimeoutError),
    ],
)
def test_join_is_refused_and_nothing_changes_when(
    log: GroupLog, change: dict[str, Any], error: type[TxnTableError]
) -> None:
    before = log.row

    with pytest.raises(error):
        log.join(**change)
    assert log.row is before


def test_member_that_was_in_a_group_that_is_gone_is_not_let_in_under_its_old_id() -> None:
    with pytest.raises(UnknownMemberIdError):
        GroupLog().join("m1", generation=4)


def test_full_group_takes_a_member_back() -> None:
    log = GroupLog()
    log.join("m1", max_size=1)

    assert log.join("m1", max_size=1, host="h").generation == 1


# -- static members -------------------------------------------------------------------------


def test_static_member_comes_back_under_a_new_id_and_takes_over_what_it_had(log: GroupLog) -> None:
    log.join("m3", instance_id="i")
    log.release_all()
    before = log.owned["m3"]

    found = log.join("m4", instance_id="i")

    assert sorted(found.partitions) == before
    assert (found.generation, log.members) == (3, ["m1", "m2", "m4"])
    with pytest.raises(FencedInstanceIdError, match="instance_id=i member_id=m3 current_member_id=m4"):
        log.look("m3", "i")


def test_static_member_that_comes_back_with_another_subscription_begins_a_generation(log: GroupLog) -> None:
    log.join("m3", instance_id="i")

    found = log.join("m4", instance_id="i", topics=frozenset({"orders"}))

    assert (found.generation, sorted(found.partitions)) == (4, [("orders", number) for number in range(3)])


def test_fenced_static_member_can_neither_rejoin_nor_leave_nor_release(log: GroupLog) -> None:
    log.join("m3", instance_id="i")
    log.join("m4", instance_id="i")
    fenced = MemberRequest("m3", log.head + 1, "i")

    with pytest.raises(FencedInstanceIdError):
        log.join("m3", instance_id="i", generation=3)
    with pytest.raises(FencedInstanceIdError):
        leave(log.row, fenced)
    with pytest.raises(FencedInstanceIdError):
        release(log.row, fenced)


def test_static_member_is_found_without_its_instance_id_and_not_under_another(log: GroupLog) -> None:
    log.join("m3", instance_id="i")

    assert log.look("m3").instance_id == "i"
    with pytest.raises(UnknownMemberIdError):
        log.look("m3", "j")


# -- releasing, leaving, expiry -------------------------------------------------------------


def test_release_passes_over_what_is_not_to_be_given_up(log: GroupLog) -> None:
    before = log.row

    found = log.release("m1", *of_flights(0, 4), ("orders", 0))

    assert log.row is before
    assert sorted(found.partitions) == of_flights(0, 1, 2)


def test_partition_that_came_back_to_its_owner_before_the_release_stays() -> None:
    log = GroupLog()
    log.join("m1")
    log.join("m2")
    log.leave("m2")

    found = log.release("m1", *of_flights(3, 4, 5))

    assert (found.partitions, found.state) == (dict.fromkeys(of_flights(0, 1, 2, 3, 4, 5), 1), GroupState.STABLE)


def test_partitions_of_a_member_that_leaves_go_to_the_others_at_once(log: GroupLog) -> None:
    log.leave("m1")

    assert log.look("m2").partitions == {
        **dict.fromkeys(of_flights(0, 1, 2), 3),
        **dict.fromkeys(of_flights(3, 4, 5), 2),
    }


def test_group_is_empty_when_the_last_member_has_left_and_its_generation_goes_on(log: GroupLog) -> None:
    log.leave("m1")
    log.leave("m2")

    assert log.row is not None
    assert (log.row.state, log.row.generation, log.row.assignor, log.row.topics) == (GroupState.EMPTY, 4, None, {})
    assert log.join("m3", assignors=(Assignor.RANGE,)).generation == 5


@pytest.mark.parametrize("member_id", ["m2", "gone"])
def test_leaving_twice_or_never_joined_writes_nothing(log: GroupLog, member_id: str) -> None:
    log.leave("m2")
    before = log.row

    log.leave(member_id)

    assert log.row is before
    assert leave(None, MemberRequest(member_id, 1)).group is None


@pytest.mark.parametrize(
    ("heartbeats", "now_ms", "expelled"),
    [
        ({}, 11_000, ()),
        ({}, 11_001, ("m1", "m2")),
        ({"m1": 5_000}, 11_001, ("m2",)),
        ({"m1": 5_000, "m2": 1_001}, 11_001, ()),
        ({"m1": 5_000, "m2": 0}, 11_001, ("m2",)),
        ({"m1": 5_000, "stranger": 1}, 15_001, ("m1", "m2")),
        ({"m1": 10_000_000_000}, 11_001, ("m1", "m2")),
    ],
)
def test_member_is_expelled_when_it_was_silent_for_longer_than_its_session(
    log: GroupLog, heartbeats: dict[str, int], now_ms: int, expelled: tuple[str, ...]
) -> None:
    before = log.row

    assert log.expel(heartbeats, now_ms) == expelled

    assert log.members == [name for name in ("m1", "m2") if name not in expelled]
    assert (log.row is before) == (expelled == ())


def test_partitions_of_an_expelled_member_go_to_the_others_and_it_is_told(log: GroupLog) -> None:
    log.expel({"m2": 11_000}, 11_001)

    assert log.owned == {"m2": of_flights(0, 1, 2, 3, 4, 5)}
    with pytest.raises(UnknownMemberIdError, match="join again under a new member id"):
        log.look("m1")


def test_nobody_is_in_a_group_that_is_none() -> None:
    with pytest.raises(GroupIdNotFoundError):
        assignment_of(None, MemberRequest("m1", 1))
    assert expel(None, ExpelRequest({}, now_ms=0, position=1)).answer == ()


# -- topics ---------------------------------------------------------------------------------


def test_new_partitions_are_shared_out_in_a_new_generation(log: GroupLog) -> None:
    log.refresh({"flights": GroupTopic(FLIGHTS, 8)})

    assert log.look("m1").generation == 3
    assert log.owned == {"m1": of_flights(0, 1, 2, 6), "m2": of_flights(3, 4, 5, 7)}


def test_topic_that_was_created_again_is_owned_anew(log: GroupLog) -> None:
    log.refresh({"flights": GroupTopic("2" * 32, 2)})

    assert log.owned == {"m1": of_flights(0), "m2": of_flights(1)}
    assert log.look("m1").partitions == {("flights", 0): 3}


def test_deleted_topic_is_owned_by_nobody(log: GroupLog) -> None:
    log.refresh({"flights": None})

    assert log.owned == {"m1": [], "m2": []}
    assert log.row is not None
    assert log.row.topics == {}


@pytest.mark.parametrize("topics", [{}, {"orders": GroupTopic("3" * 32, 9)}, {"flights": GroupTopic(FLIGHTS, 6)}])
def test_refresh_writes_nothing_when_no_subscribed_topic_has_changed(log: GroupLog, topics: dict[str, Any]) -> None:
    before = log.row

    log.refresh(topics)

    assert log.row is before


def test_refresh_of_a_group_without_members_writes_nothing(log: GroupLog) -> None:
    log.leave("m1")
    log.leave("m2")

    assert refresh(log.row, {"flights": None}, 99).group is None
    assert refresh(None, {"flights": None}, 99).answer is None


def test_what_a_joiner_has_not_looked_at_stays_as_it_was_known(log: GroupLog) -> None:
    log.join("m3", topics=frozenset({"orders"}), topics_found={"orders": GroupTopic("3" * 32, 1)})

    assert log.owned == {"m1": of_flights(0, 1, 2), "m2": of_flights(3, 4, 5), "m3": [("orders", 0)]}


# -- Kafka's rounds -------------------------------------------------------------------------

_STORIES = ("join-join-leave", "topic-grows", "20-partitions-grow", "topic-appears", "subscription-changes")


def a_group_after(round_: dict[str, Any], assignor: Assignor) -> GroupLog:
    """Return a group whose members own what Kafka's round gave them."""
    assigned = {name: frozenset(map(a_partition, each)) for name, each in round_["assignment"].items()}
    members = {
        name: GroupMember(
            name,
            tuple(sorted(round_["members"][name])),
            (assignor,),
            session_timeout_ms=10_000,
            joined_ms=0,
            joined_generation=1,
            owned=dict.fromkeys(partitions, 1),
            target=partitions,
        )
        for name, partitions in sorted(assigned.items())
    }
    topics = {name: GroupTopic(topic_id_of(name), count) for name, count in round_["partitions"].items()}
    row = GroupRow("g", 1, GroupState.STABLE, 1, assignor, topics, members)
    return GroupLog(row, head=1, topics=dict(topics))


def change(log: GroupLog, round_: dict[str, Any], assignor: Assignor) -> None:
    """Let the group become that of a round: topics change, members leave, join and subscribe to others."""
    log.refresh({name: GroupTopic(topic_id_of(name), count) for name, count in round_["partitions"].items()})
    for member_id in set(log.members) - round_["members"].keys():
        log.leave(member_id)
    for member_id, topics in round_["members"].items():
        found = {topic: log.topics.get(topic) for topic in topics}
        log.join(member_id, assignors=(assignor,), topics=frozenset(topics), topics_found=found)


@pytest.mark.parametrize(
    "family",
    [family for family in FAMILIES if any(story in family["name"] for story in _STORIES)],
    ids=lambda family: family["name"],
)
def test_group_comes_to_the_assignments_of_kafkas_rounds(family: dict[str, Any]) -> None:
    """Rounds that only follow up, in which nothing changes but that members gave back, need no generation here."""
    assignor, rounds = Assignor(family["assignor"]), family["rounds"]
    log = a_group_after(rounds[0], assignor)
    for round_ in rounds[1:]:
        assigned = {name: sorted(map(a_partition, each)) for name, each in round_["assignment"].items()}
        change(log, round_, assignor)
        if assignor is Assignor.COOPERATIVE_STICKY:
            assert {name: sorted(log.look(name).partitions) for name in log.members} == assigned
            log.release_all()
        else:
            log.release_all()
            assert log.owned == assigned
