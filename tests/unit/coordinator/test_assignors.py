"""Kafka's assignors: the same input has Kafka's own result, as recorded from its Java client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txntable.coordinator.assignment import Assignment, AssignorInput, NamedPartition, Subscriber
from txntable.coordinator.assignors import (
    Assignor,
    assign,
    assignors_of,
    select_assignor,
    target_assignment,
)
from txntable.coordinator.errors import InconsistentGroupProtocolError, UnsupportedAssignorError
from txntable.coordinator.java_hash import hash_order, partition_hash, string_hash

_GOLDEN = Path(__file__).parents[2] / "golden" / "kafka_assignments.json"
FAMILIES = json.loads(_GOLDEN.read_text())["assignments"]
STICKY = (Assignor.STICKY, Assignor.COOPERATIVE_STICKY)


def a_partition(text: str) -> NamedPartition:
    topic, number = text.rsplit("-", 1)
    return topic, int(number)


def an_input(round_: dict[str, Any]) -> AssignorInput:
    instances = round_.get("instances", {})
    members = {name: Subscriber(frozenset(topics), instances.get(name)) for name, topics in round_["members"].items()}
    subscribed = {topic for member in members.values() for topic in member.topics}
    return AssignorInput(
        {topic: count for topic, count in round_["partitions"].items() if topic in subscribed},
        members,
        {name: frozenset(map(a_partition, owned)) for name, owned in round_["owned"].items()},
    )


def a_group(members: int, partitions: dict[str, int], **owned: list[int]) -> AssignorInput:
    """Members m0, m1, … of all topics; what they own is of topic t."""
    names = [f"m{number}" for number in range(members)]
    has = {name: frozenset(("t", partition) for partition in each) for name, each in owned.items()}
    return AssignorInput(partitions, {name: Subscriber(frozenset(partitions)) for name in names}, has)


def in_sets(assignment: Assignment) -> dict[str, set[NamedPartition]]:
    return {name: set(partitions) for name, partitions in assignment.items()}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family["name"])
def test_assignor_returns_what_kafka_returns(family: dict[str, Any]) -> None:
    for round_ in family["rounds"]:
        found = assign(Assignor(family["assignor"]), an_input(round_))

        assert {name: sorted(each) for name, each in found.items()} == {
            name: sorted(map(a_partition, each)) for name, each in round_["assignment"].items()
        }


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family["name"])
def test_target_of_the_cooperative_assignor_is_what_its_rounds_end_with(family: dict[str, Any]) -> None:
    for round_ in family["rounds"]:
        group = an_input(round_)
        target = target_assignment(Assignor.COOPERATIVE_STICKY, group)

        settled = AssignorInput(group.partitions, group.members, {name: frozenset(p) for name, p in target.items()})
        assert in_sets(assign(Assignor.COOPERATIVE_STICKY, settled)) == in_sets(target)
        assert sorted(p for each in target.values() for p in each) == group.all_partitions(sorted(group.partitions))


def test_range_gives_the_first_members_one_more_and_keeps_equal_topics_together() -> None:
    found = assign(Assignor.RANGE, a_group(2, {"t": 3, "u": 3}))

    assert found == {"m0": [("t", 0), ("t", 1), ("u", 0), ("u", 1)], "m1": [("t", 2), ("u", 2)]}


@pytest.mark.parametrize("assignor", [Assignor.RANGE, Assignor.ROUND_ROBIN])
def test_static_members_come_first_by_their_instance_ids(assignor: Assignor) -> None:
    topics = frozenset({"t"})
    members = {"m1": Subscriber(topics), "m2": Subscriber(topics, "z"), "m3": Subscriber(topics, "y")}

    found = assign(assignor, AssignorInput({"t": 3}, members))

    assert found == {"m1": [("t", 2)], "m2": [("t", 1)], "m3": [("t", 0)]}


def test_cooperative_sticky_holds_back_what_another_member_still_owns() -> None:
    group = a_group(2, {"t": 4}, m0=[0, 1, 2, 3])

    assert assign(Assignor.COOPERATIVE_STICKY, group) == {"m0": [("t", 0), ("t", 1)], "m1": []}
    assert assign(Assignor.STICKY, group) == {"m0": [("t", 0), ("t", 1)], "m1": [("t", 2), ("t", 3)]}


@pytest.mark.parametrize("assignor", STICKY)
def test_sticky_passes_over_partitions_that_are_gone(assignor: Assignor) -> None:
    group = a_group(2, {"t": 2}, m0=[0, 7], m1=[1])

    assert assign(assignor, group) == {"m0": [("t", 0)], "m1": [("t", 1)]}


def test_sticky_moves_to_a_poorer_member_what_it_subscribes_to() -> None:
    owned = {"m2": frozenset({("a", 0), ("b", 0), ("b", 1)})}
    members = {
        "m1": Subscriber(frozenset({"a"})),
        "m2": Subscriber(frozenset({"a", "b"})),
    }

    found = assign(Assignor.STICKY, AssignorInput({"a": 1, "b": 2}, members, owned))

    assert in_sets(found) == {"m1": {("a", 0)}, "m2": {("b", 0), ("b", 1)}}


_TOPICS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 6), min_size=1)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool) -> AssignorInput:
    partitions = draw(_TOPICS)
    names = draw(st.lists(st.text("mnop0123", min_size=1, max_size=4), min_size=1, max_size=7, unique=True))
    some = st.frozensets(st.sampled_from(sorted(partitions)), min_size=1)
    members = {name: Subscriber(frozenset(partitions) if equal else draw(some)) for name in names}
    known = {topic for member in members.values() for topic in member.topics}
    owned: dict[str, set[NamedPartition]] = {}
    for topic, count in partitions.items():
        for number in range(count):
            owner = draw(st.sampled_from([*names, None]))
            if owner is not None:
                owned.setdefault(owner, set()).add((topic, number))
    existing = {topic: count for topic, count in partitions.items() if topic in known}
    return AssignorInput(existing, members, {name: frozenset(each) for name, each in owned.items()})


@pytest.mark.parametrize("assignor", Assignor)
@given(group=groups(equal=False))
def test_every_partition_goes_to_one_member_that_subscribes_to_it(assignor: Assignor, group: AssignorInput) -> None:
    found = target_assignment(assignor, group)

    assert found.keys() == group.members.keys()
    assert sorted(p for each in found.values() for p in each) == group.all_partitions(sorted(group.partitions))
    assert all(p[0] in group.members[name].topics for name, each in found.items() for p in each)


@pytest.mark.parametrize("assignor", [Assignor.ROUND_ROBIN, *STICKY])
@given(group=groups(equal=True))
def test_members_with_equal_subscriptions_differ_by_one_partition_at_most(
    assignor: Assignor, group: AssignorInput
) -> None:
    sizes = [len(each) for each in target_assignment(assignor, group).values()]

    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("assignor", STICKY)
@given(group=groups(equal=True))
def test_sticky_member_keeps_all_it_owns_up_to_its_quota(assignor: Assignor, group: AssignorInput) -> None:
    quota = sum(group.partitions.values()) // len(group.members)

    for name, partitions in target_assignment(assignor, group).items():
        kept = group.owned.get(name, frozenset()) & set(partitions)
        assert len(kept) >= min(len(group.owned.get(name, ())), quota)


@pytest.mark.parametrize("assignor", STICKY)
@given(group=groups(equal=False))
@settings(max_examples=50)
def test_sticky_assignment_stays_when_nothing_has_changed(assignor: Assignor, group: AssignorInput) -> None:
    first = target_assignment(assignor, group)

    again = AssignorInput(group.partitions, group.members, {name: frozenset(each) for name, each in first.items()})
    assert in_sets(target_assignment(assignor, again)) == in_sets(first)


# -- Java's hash tables ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hash_"),
    [("", 0), ("m1", 3428), ("flights", 3523152387), ("Zürich", 2812851134), ("😀", 1772899)],
)
def test_string_hash_is_javas(text: str, hash_: int) -> None:
    assert string_hash(text) == hash_


def test_partition_hash_is_kafkas() -> None:
    assert partition_hash(("t", 3)) == 31 * (31 + 3) + ord("t")


def test_hash_order_is_by_bucket_then_by_insertion_and_a_table_never_shrinks() -> None:
    numbers = [33, 17, 1, 16, 2]

    assert hash_order(numbers, lambda number: number) == [16, 33, 17, 1, 2]
    assert hash_order(numbers, lambda number: number, most=13) == [33, 1, 2, 16, 17]


# -- which assignor -------------------------------------------------------------------------


def test_assignors_are_named_as_in_kafka_each_once() -> None:
    classes = "org.apache.kafka.clients.consumer."

    assert assignors_of([f"{classes}StickyAssignor", "sticky", f"{classes}RoundRobinAssignor"]) == (
        Assignor.STICKY,
        Assignor.ROUND_ROBIN,
    )
    assert assignors_of(["cooperative-sticky", "range", "range"]) == (Assignor.COOPERATIVE_STICKY, Assignor.RANGE)


@pytest.mark.parametrize("names", [[], ["range", "uniform"]])
def test_assignors_are_refused_when_one_is_unknown_or_none_is_named(names: list[str]) -> None:
    with pytest.raises(UnsupportedAssignorError, match="supported=range,roundrobin,sticky,cooperative-sticky"):
        assignors_of(names)


_R, _C, _S = Assignor.RANGE, Assignor.COOPERATIVE_STICKY, Assignor.STICKY


@pytest.mark.parametrize(
    ("supported", "selected"),
    [
        ([(_R, _C)], _R),
        ([(_R, _C), (_C, _R), (_C, _R)], _C),
        ([(_R, _C), (_C,)], _C),
        ([(_S, _R, _C), (_R, _C), (_C, _R)], _R),
    ],
)
def test_group_uses_the_assignor_that_all_support_and_most_prefer(
    supported: list[tuple[Assignor, ...]], selected: Assignor
) -> None:
    assert select_assignor(supported) is selected


def test_members_without_an_assignor_in_common_are_refused() -> None:
    with pytest.raises(InconsistentGroupProtocolError, match="supported=range; sticky"):
        select_assignor([(_R,), (_S,)])
