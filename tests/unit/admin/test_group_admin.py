"""Admins and consumer groups: what is told, what may be changed, and what is refused, by key."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import WRITES
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.group_members import (
    IN,
    IN_1,
    committed_offset,
    joined,
    sent,
    site_with_topics,
    started,
)
from txntable.coordinator.group_state import GroupState
from txntable.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    InvalidRequestError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from txntable.format.records import TopicPartition
from txntable.log.keyed_log import LARGEST_COMMIT_ROWS
from txntable.offsets.group_commit import OffsetAndMetadata

OUT = TopicPartition("out", 0)


@pytest.fixture
def site() -> Site:
    return site_with_topics()


# -- groups -------------------------------------------------------------------------------------


def test_list_names_groups_with_members_and_groups_that_only_have_offsets(site: Site) -> None:
    admin = site.open().admin()
    joined(site.open(), group="with members")
    admin.alter_consumer_group_offsets("simple", {IN: 3})

    found = admin.list_consumer_groups()

    assert [(one.group_id, one.state, one.is_simple) for one in found] == [
        ("simple", GroupState.EMPTY, True),
        ("with members", GroupState.STABLE, False),
    ]


@pytest.mark.parametrize(
    ("states", "names"),
    [(None, ["a", "b"]), ([], ["a", "b"]), (["Stable"], ["b"]), ([GroupState.EMPTY], ["a"]), (["RECONCILING"], [])],
)
def test_list_shows_groups_in_the_states_asked_for(site: Site, states: list | None, names: list[str]) -> None:
    admin = site.open().admin()
    admin.alter_consumer_group_offsets("a", {IN: 3})
    joined(site.open(), group="b")

    assert [one.group_id for one in admin.list_consumer_groups(states)] == names


@pytest.mark.parametrize("states", [["DEAD"], ["nothing"], "EMPTY", [None]])
def test_list_refuses_a_state_that_there_is_not(site: Site, states: object) -> None:
    with pytest.raises(InvalidRequestError):
        site.open().admin().list_consumer_groups(states)  # type: ignore[arg-type]


def test_describe_tells_of_each_member_what_it_owns_awaits_and_how_old_its_heartbeat_is(site: Site) -> None:
    joined(site.open(), "a", instance_id="static")
    site.advance_ms(5_000)
    joined(site.open(), "b")
    site.advance_ms(7_000)

    (found,) = site.open().admin().describe_consumer_groups(["g"]).values()

    assert (found.state, found.generation, found.partition_assignor, found.is_simple) == (
        GroupState.RECONCILING,
        2,
        "range",
        False,
    )
    first, second = found.members
    assert (first.member_id, first.group_instance_id, first.client_id, first.host) == (
        "a",
        "static",
        "client-a",
        "here",
    )
    assert (first.assignment, first.target_assignment) == ((IN, IN_1), (IN,))
    assert (second.assignment, second.target_assignment, second.member_epoch) == ((), (IN_1,), 2)
    assert first.heartbeat_age_ms == pytest.approx(12_000, abs=100)
    assert second.heartbeat_age_ms == pytest.approx(7_000, abs=100)


def test_describe_refuses_a_group_that_there_is_not(site: Site) -> None:
    with pytest.raises(GroupIdNotFoundError, match="group=nobody"):
        site.open().admin().describe_consumer_groups(["nobody"])


def test_deletion_takes_groups_with_their_pending_offsets_and_tells_what_stays(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    producer = sent(warehouse, 9)
    joined(site.open(), group="busy")

    outcomes = admin.delete_consumer_groups(["g", "busy", "nobody"])

    assert outcomes["g"] is None
    assert isinstance(outcomes["busy"], NonEmptyGroupError)
    assert isinstance(outcomes["nobody"], GroupIdNotFoundError)
    producer.commit_transaction()
    assert committed_offset(site) is None
    assert [one.group_id for one in admin.list_consumer_groups()] == ["busy"]


def test_deletion_of_a_group_with_very_many_offsets_takes_several_commits(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    admin.create_topic("wide", partitions=LARGEST_COMMIT_ROWS + 1, schema=TWO_COLUMNS)
    admin.alter_consumer_group_offsets(
        "g", {TopicPartition("wide", partition): 1 for partition in range(LARGEST_COMMIT_ROWS + 1)}
    )
    before = warehouse.offsets.refresh()

    assert admin.delete_consumer_groups(["g"]) == {"g": None}

    assert warehouse.offsets.refresh() == before + 2
    assert admin.list_consumer_groups() == []


def test_removed_members_are_gone_and_the_others_have_what_they_owned(site: Site) -> None:
    warehouse = site.open()
    joined(warehouse, "a", instance_id="static")
    joined(warehouse, "b")
    admin = warehouse.admin()

    outcomes = admin.remove_members_from_consumer_group("g", ["static", "nobody"])

    assert outcomes["static"] is None
    assert isinstance(outcomes["nobody"], UnknownMemberIdError)
    (found,) = admin.describe_consumer_groups(["g"]).values()
    assert [(member.member_id, member.assignment) for member in found.members] == [("b", (IN, IN_1))]
    assert len(site.objects_below("system/heartbeats")) == 1


def test_removal_without_names_empties_the_group(site: Site) -> None:
    warehouse = site.open()
    joined(warehouse, "a", instance_id="static")
    joined(warehouse, "b")

    assert warehouse.admin().remove_members_from_consumer_group("g") == {"static": None, "b": None}

    assert warehouse.admin().describe_consumer_groups(["g"])["g"].state is GroupState.EMPTY


# -- offsets ------------------------------------------------------------------------------------


def test_altered_offsets_are_committed_and_unknown_partitions_are_told(site: Site) -> None:
    admin = site.open().admin()
    nowhere, beyond = TopicPartition("nowhere", 0), TopicPartition("in", 7)

    outcomes = admin.alter_consumer_group_offsets("g", {IN: OffsetAndMetadata(5, "note"), nowhere: 1, beyond: 1})

    assert outcomes[IN] is None
    assert isinstance(outcomes[nowhere], UnknownTopicOrPartitionError)
    assert isinstance(outcomes[beyond], UnknownTopicOrPartitionError)
    assert admin.list_consumer_group_offsets("g") == {IN: OffsetAndMetadata(5, "note")}


def test_altering_only_unknown_partitions_writes_nothing(site: Site) -> None:
    warehouse = site.open()
    before = warehouse.offsets.refresh()

    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("nowhere", 0): 1})

    assert warehouse.offsets.refresh() == before


def test_altering_offsets_of_a_group_with_members_is_refused(site: Site) -> None:
    joined(site.open())

    with pytest.raises(UnknownMemberIdError):
        site.open().admin().alter_consumer_group_offsets("g", {IN: 5})

    assert committed_offset(site) is None


@pytest.mark.parametrize("offset", [-1, "3", True, OffsetAndMetadata(1, 5)])  # type: ignore[arg-type]
def test_altering_refuses_what_is_no_offset(site: Site, offset: object) -> None:
    with pytest.raises(InvalidRequestError):
        site.open().admin().alter_consumer_group_offsets("g", {IN: offset})  # type: ignore[dict-item]


@pytest.mark.parametrize("partition", ["in", ("in", "0"), ("in",), ("in", None), None])
def test_call_refuses_what_is_no_partition(site: Site, partition: object) -> None:
    admin = site.open().admin()
    for call in (
        lambda: admin.alter_consumer_group_offsets("g", {partition: 1}),  # type: ignore[dict-item]
        lambda: admin.list_consumer_group_offsets("g", [partition]),  # type: ignore[list-item]
        lambda: admin.delete_consumer_group_offsets("g", [partition]),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidRequestError):
            call()


@pytest.mark.parametrize("name", ["", None, 5])
def test_call_refuses_what_is_no_name_of_a_group(site: Site, name: object) -> None:
    admin = site.open().admin()
    for call in (
        lambda: admin.alter_consumer_group_offsets(name, {IN: 1}),  # type: ignore[arg-type]
        lambda: admin.list_consumer_group_offsets(name),  # type: ignore[arg-type]
        lambda: admin.delete_consumer_group_offsets(name, [IN]),  # type: ignore[arg-type]
        lambda: admin.describe_consumer_groups([name]),  # type: ignore[list-item]
        lambda: admin.delete_consumer_groups([name]),  # type: ignore[list-item]
        lambda: admin.remove_members_from_consumer_group(name),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidRequestError):
            call()


def test_altering_refuses_a_text_that_is_too_long(site: Site) -> None:
    with pytest.raises(OffsetMetadataTooLargeError):
        site.open().admin().alter_consumer_group_offsets("g", {IN: OffsetAndMetadata(1, "x" * 4097)})


def test_offsets_of_partitions_without_one_are_none(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_consumer_group_offsets("g", {IN: 5})
    nowhere = TopicPartition("nowhere", 0)

    found = admin.list_consumer_group_offsets("g", [IN, IN_1, nowhere])

    assert found == {IN: OffsetAndMetadata(5), IN_1: None, nowhere: None}
    assert admin.list_consumer_group_offsets("nobody") == {}


def test_offset_of_an_open_transaction_is_not_listed_and_waited_for_only_when_stable_is_required(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_consumer_group_offsets("g", {IN: 5})
    producer = sent(site.open(), 9)

    assert admin.list_consumer_group_offsets("g") == {IN: OffsetAndMetadata(5)}
    with pytest.raises(UnstableOffsetCommitError):
        site.open().admin().list_consumer_group_offsets("g", require_stable=True)

    producer.commit_transaction()
    assert admin.list_consumer_group_offsets("g", require_stable=True) == {IN: OffsetAndMetadata(9)}


def test_offset_of_a_topic_created_again_is_none(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    other = site.open().admin()
    admin.alter_consumer_group_offsets("g", {IN: 5, OUT: 6})

    other.delete_topic("in")
    other.create_topic("in", partitions=2, schema=TWO_COLUMNS)

    assert admin.list_consumer_group_offsets("g") == {OUT: OffsetAndMetadata(6)}


def test_deleted_offsets_are_gone_with_those_that_are_pending(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    admin.alter_consumer_group_offsets("g", {IN_1: 5})
    producer = sent(warehouse, 9)

    assert admin.delete_consumer_group_offsets("g", [IN, IN_1]) == {IN: None, IN_1: None}

    producer.commit_transaction()
    assert admin.list_consumer_group_offsets("g") == {}


def test_offsets_of_a_subscribed_topic_are_not_deleted(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_consumer_group_offsets("g", {IN: 5, OUT: 6})
    joined(site.open())

    outcomes = admin.delete_consumer_group_offsets("g", [IN, OUT])

    assert isinstance(outcomes[IN], GroupSubscribedToTopicError)
    assert outcomes[OUT] is None
    assert admin.list_consumer_group_offsets("g") == {IN: OffsetAndMetadata(5)}


def test_deletion_of_offsets_refuses_a_group_that_there_is_not(site: Site) -> None:
    with pytest.raises(GroupIdNotFoundError):
        site.open().admin().delete_consumer_group_offsets("nobody", [IN])


# -- topics -------------------------------------------------------------------------------------


def test_deleted_topic_takes_its_offsets_in_all_groups_along(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    admin.alter_consumer_group_offsets("g", {IN: 5, OUT: 6})
    admin.alter_consumer_group_offsets("h", {IN: 7})
    pending = sent(warehouse, 9, group="i")

    admin.delete_topic("in")

    warehouse.offsets.refresh()
    assert {group: list(rows) for group, rows in warehouse.offsets.log.fold.offsets.items()} == {"g": [OUT]}
    pending.commit_transaction()
    assert [one.group_id for one in admin.list_consumer_groups()] == ["g"]


def test_looking_at_groups_writes_nothing(site: Site) -> None:
    joined(site.open())
    started(site.open())
    warehouse = site.open()
    admin = warehouse.admin()
    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.steps.clear()

    admin.list_consumer_groups()
    admin.describe_consumer_groups(["g"])
    admin.list_consumer_group_offsets("g")

    written = [step.path for step in warehouse.store.steps if step.operation in WRITES]
    assert set(written) <= {"system/clock"}


@pytest.mark.parametrize("timeout_ms", [0, 1_500])
def test_stable_offset_is_waited_for_no_longer_than_the_timeout_says(site: Site, timeout_ms: int) -> None:
    """Bug: a prepared transaction held every caller for a minute, whatever it could afford."""
    site.open().admin().alter_consumer_group_offsets("g", {IN: 5})
    sent(site.open(), 9).prepare_transaction()
    warehouse = site.open()
    began = warehouse.context.environment.instant()

    with pytest.raises(UnstableOffsetCommitError) as unstable:
        warehouse.admin().list_consumer_group_offsets("g", require_stable=True, timeout_ms=timeout_ms)

    assert timeout_ms <= warehouse.context.environment.since_ms(began) <= timeout_ms + 1
    assert unstable.value.facts["tried_for_ms"] in (timeout_ms, timeout_ms + 1)


def test_stable_offset_of_a_decided_transaction_needs_no_time(site: Site) -> None:
    producer = sent(site.open(), 9)
    warehouse = site.open()
    site.advance_ms(60_001)

    found = warehouse.admin().list_consumer_group_offsets("g", [IN], require_stable=True, timeout_ms=0)

    assert found == {IN: None}, "timed out by who asked"
    assert producer.state == "IN_TRANSACTION"


@pytest.mark.parametrize("timeout_ms", [-1, 1.5, True, None, "1"])
def test_timeout_that_is_none_is_refused(site: Site, timeout_ms: int) -> None:
    with pytest.raises(InvalidRequestError, match="timeout"):
        site.open().admin().list_consumer_group_offsets("g", timeout_ms=timeout_ms)
