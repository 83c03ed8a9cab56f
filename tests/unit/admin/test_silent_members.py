"""Members that have died: a group is shown without them, and a change of it by an admin expels them first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import WRITES
from tests.simulation.site import Site
from tests.unit.admin.group_members import IN, IN_1, SESSION_MS, joined, site_with_topics
from txntable.admin.admin import Admin
from txntable.coordinator.group_state import GroupState
from txntable.errors import UnknownMemberIdError
from txntable.warehouse.warehouse import open_on


@pytest.fixture
def site() -> Site:
    return site_with_topics()


@pytest.fixture
def silent(site: Site) -> Site:
    """A group of two, of whom one has died and the other has not noticed yet."""
    joined(site.open(), "dead")
    site.advance_ms(SESSION_MS - 1_000)
    joined(site.open(), "alive")
    site.advance_ms(2_000)
    return site


def test_group_of_silent_members_is_shown_as_it_is_without_them(site: Site) -> None:
    joined(site.open())
    site.advance_ms(SESSION_MS + 1)
    store = site.store()
    admin = open_on(store, site.environment()).admin()

    (listing,) = admin.list_consumer_groups()
    (described,) = admin.describe_consumer_groups(["g"]).values()

    assert (listing.state, described.state, described.members) == (GroupState.EMPTY, GroupState.EMPTY, ())
    assert [(each.member_id, each.heartbeat_age_ms) for each in described.silent_members] == [("m", SESSION_MS + 1)]
    assert [step.path for step in store.steps if step.operation in WRITES and step.path != "system/clock"] == []


def test_partitions_of_a_silent_member_are_shown_as_those_of_who_is_left(silent: Site) -> None:
    (described,) = silent.open().admin().describe_consumer_groups(["g"]).values()

    assert [(each.member_id, each.target_assignment) for each in described.members] == [("alive", (IN, IN_1))]
    assert [each.member_id for each in described.silent_members] == ["dead"]


@pytest.mark.parametrize(
    "change",
    [
        lambda admin: admin.alter_consumer_group_offsets("g", {IN: 3})[IN],
        lambda admin: admin.delete_consumer_group_offsets("g", [IN])[IN],
        lambda admin: admin.delete_consumer_groups(["g"])["g"],
    ],
    ids=["alter offsets", "delete offsets", "delete"],
)
def test_silent_member_is_expelled_by_a_change_of_its_group(site: Site, change: Callable[[Admin], object]) -> None:
    site.open().admin().alter_consumer_group_offsets("g", {IN: 1})
    joined(site.open())
    site.advance_ms(SESSION_MS + 1)

    assert change(site.open().admin()) is None

    offsets = site.open().offsets
    offsets.refresh()
    row = offsets.group("g")
    assert row is None or not row.members
    assert site.objects_below("system/heartbeats") == {}


def test_change_of_a_group_with_a_living_member_is_refused_and_expels_who_is_silent(silent: Site) -> None:
    with pytest.raises(UnknownMemberIdError, match="the group has members"):
        silent.open().admin().alter_consumer_group_offsets("g", {IN: 3})

    (described,) = silent.open().admin().describe_consumer_groups(["g"]).values()
    assert ([each.member_id for each in described.members], described.silent_members) == (["alive"], ())


@pytest.mark.parametrize("members", [None, ["m"]])
def test_silent_member_is_removed_as_others_are(site: Site, members: list[str] | None) -> None:
    joined(site.open())
    site.advance_ms(SESSION_MS + 1)

    assert site.open().admin().remove_members_from_consumer_group("g", members) == {"m": None}
