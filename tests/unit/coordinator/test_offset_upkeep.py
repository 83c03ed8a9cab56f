"""Offsets are deleted and expire; with a row go its pending offsets."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.groups import FLIGHTS, ORDERS, GroupLog
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import GroupIdNotFoundError, GroupSubscribedToTopicError, NonEmptyGroupError
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.offset_upkeep import delete_group, delete_offsets, expire_offsets, forget_topic, settle

F0, F1, O0 = ("flights", 0), ("flights", 1), ("orders", 0)
PENDING = (PendingOffset("etl", 1, 0, offset=9, metadata="", request=4, topic_id=FLIGHTS),)
DAY_MS = 24 * 60 * 60 * 1_000


def a_row(partition: tuple[str, int] = F0, *, request: int | None = 3, pending: bool = False) -> OffsetRow:
    topic_id = FLIGHTS if partition[0] == "flights" else ORDERS
    found = None if request is None else CommittedOffset(5, "", topic_id, request, 0)
    return OffsetRow("g", *partition, 4, found, PENDING if pending else ())


def an_empty_group(position: int = 2) -> GroupLog:
    log = GroupLog(head=position - 2)
    log.join("m1")
    log.leave("m1")
    return log


# -- deleting -------------------------------------------------------------------------------


def test_deleted_offset_takes_its_pending_ones_along() -> None:
    rows = {F0: a_row(pending=True), F1: a_row(F1)}

    transition = delete_offsets(None, rows, [F0, ("flights", 7)])

    assert transition == OffsetLogTransition({}, removed=(rows[F0],))
    decisions = {(1, 0): Decision(0, Outcome.COMMIT, 8)}
    assert settle([rows[F1]], decisions, 9) == OffsetLogTransition(None)


def test_offsets_of_a_topic_that_a_member_subscribes_to_are_not_deleted() -> None:
    log = GroupLog()
    log.join("m1")
    rows = {F0: a_row(), O0: a_row(O0)}

    transition = delete_offsets(log.row, rows, [F0, O0])

    assert transition.removed == (rows[O0],)
    assert isinstance(transition.answer[F0], GroupSubscribedToTopicError)


def test_group_is_deleted_with_all_its_offsets() -> None:
    log, rows = an_empty_group(), {F0: a_row(), O0: a_row(O0, request=None, pending=True)}

    transition = delete_group(log.row, rows, 3)

    assert transition.group is not None
    assert (transition.group.state, transition.group.position) == (GroupState.DEAD, 3)
    assert transition.removed == tuple(rows.values())


def test_group_that_never_had_members_is_deleted_too() -> None:
    assert delete_group(None, {F0: a_row()}, 3) == OffsetLogTransition(None, removed=(a_row(),))


def test_group_with_members_is_not_deleted() -> None:
    log = GroupLog()
    log.join("m1")

    with pytest.raises(NonEmptyGroupError, match="members=1"):
        delete_group(log.row, {}, 2)


def test_group_that_there_is_not_can_not_be_deleted() -> None:
    with pytest.raises(GroupIdNotFoundError):
        delete_group(None, {}, 1)
    with pytest.raises(GroupIdNotFoundError):
        delete_offsets(None, {}, [F0])


def test_offsets_of_a_deleted_topic_are_forgotten_but_not_those_of_its_successor() -> None:
    later = OffsetRow("h", "flights", 0, 5, CommittedOffset(1, "", "2" * 32, 5, 0))
    rows = [a_row(pending=True), a_row(F1, request=None, pending=True), a_row(O0), later]

    assert forget_topic(rows, "flights", FLIGHTS).removed == (rows[0], rows[1])


# -- settling -------------------------------------------------------------------------------


def test_row_that_holds_nothing_after_an_abort_is_removed() -> None:
    row = a_row(request=None, pending=True)

    settled = settle([row, a_row(F1)], {(1, 0): Decision(0, Outcome.ABORT, 8)}, 9)

    assert settled == OffsetLogTransition(None, removed=(row,))


# -- expiry ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_ms", "expires"), [(7 * DAY_MS - 1, False), (7 * DAY_MS, True), (8 * DAY_MS, True), (None, True)]
)
def test_offset_without_a_group_expires_a_retention_after_its_commit(age_ms: int | None, expires: bool) -> None:
    row = a_row(request=3)

    transition = expire_offsets(None, {F0: row}, {3: age_ms}.__getitem__, 9)

    assert transition.removed == ((row,) if expires else ())
    assert transition.group is None


@pytest.mark.parametrize(("request_", "pending"), [(3, True), (None, True)])
def test_pending_offset_is_never_lost_by_expiry_and_keeps_its_group(request_: int | None, pending: bool) -> None:
    log = an_empty_group()
    rows = {F0: a_row(request=request_, pending=pending), O0: a_row(O0, request=1)}

    transition = expire_offsets(log.row, rows, lambda version: None, 9)

    assert (transition.group, transition.removed) == (None, (rows[O0],))


@pytest.mark.parametrize(
    ("emptied_ms_ago", "committed_ms_ago", "expires"),
    [(DAY_MS, None, False), (None, DAY_MS, False), (None, None, True)],
)
def test_offsets_of_an_empty_group_expire_a_retention_after_it_became_empty(
    emptied_ms_ago: int | None, committed_ms_ago: int | None, expires: bool
) -> None:
    log = an_empty_group(position=2)
    request = 1 if emptied_ms_ago is not None else 3
    ages = {2: emptied_ms_ago, request: committed_ms_ago}

    transition = expire_offsets(log.row, {F0: a_row(request=request)}, ages.__getitem__, 9)

    assert (transition.removed != ()) == expires
    assert (transition.group is not None) == expires


@pytest.mark.parametrize(("age_ms", "dead"), [(DAY_MS, False), (None, True)])
def test_empty_group_without_offsets_expires_too(age_ms: int | None, dead: bool) -> None:
    transition = expire_offsets(an_empty_group().row, {}, lambda version: age_ms, 9)

    assert (transition.group is not None) == dead
    assert transition.group is None or transition.group.state is GroupState.DEAD


def test_members_keep_the_offsets_of_what_they_subscribe_to() -> None:
    log = GroupLog()
    log.join("m1")
    rows = {F0: a_row(), O0: a_row(O0)}

    transition = expire_offsets(log.row, rows, lambda version: None, 9)

    assert (transition.group, transition.removed) == (None, (rows[O0],))


def test_nothing_expires_while_a_group_is_reconciling() -> None:
    log = GroupLog()
    log.join("m1")
    log.join("m2")

    assert expire_offsets(log.row, {O0: a_row(O0)}, lambda version: None, 9) == OffsetLogTransition(None)
