"""Offsets of a group: which commit counts, which is refused, and what a consumer is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from tests.unit.coordinator.groups import FLIGHTS, GroupLog
from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import (
    CommitFailedError,
    InvalidRequestError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    TxnTableError,
    UnknownMemberIdError,
    UnstableOffsetCommitError,
)
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow
from txntable.coordinator.group_request import GroupMetadata, OffsetLogTransition
from txntable.coordinator.offset_request import CommitRequest, NewOffset, OffsetTransaction, RangeStart
from txntable.coordinator.offset_shard import commit, committed
from txntable.coordinator.offset_upkeep import settle

F0, F1 = ("flights", 0), ("flights", 1)
A = OffsetTransaction("etl-a", producer_id=1, epoch=0)
B = OffsetTransaction("etl-b", producer_id=2, epoch=5)
ANEW = "2" * 32


@dataclass
class Offsets:
    """The offsets of group g: requests are decided at the next slot and applied."""

    group: GroupLog = field(default_factory=GroupLog)
    rows: dict[NamedPartition, OffsetRow] = field(default_factory=dict)
    head: int = 0

    def apply(self, transition: OffsetLogTransition[object]) -> None:
        if transition.offsets or transition.removed:
            self.head += 1
        for row in transition.offsets:
            assert row.position == self.head
            assert OffsetRow.from_json(row.to_json()) == row
            self.rows[row.topic, row.partition] = row
        for row in transition.removed:
            assert self.rows.pop((row.topic, row.partition)) == row

    def commit(
        self,
        offset: int | dict[NamedPartition, NewOffset],
        transaction: OffsetTransaction | None = None,
        member: GroupMetadata | None = None,
        **changes: object,
    ) -> dict[NamedPartition, TxnTableError]:
        """Commit one offset of flights/0, or several."""
        new = {F0: NewOffset(offset, FLIGHTS)} if isinstance(offset, int) else offset
        if isinstance(offset, int):
            new = {F0: replace(new[F0], **changes)}  # type: ignore[arg-type]
        request = CommitRequest("g", new, self.head + 1, member, transaction)
        transition = commit(self.group.row, self.rows, request)
        self.apply(transition)
        return dict(transition.answer)

    def end(self, transaction: OffsetTransaction, outcome: Outcome, position: int = 70) -> None:
        decision = Decision(transaction.epoch, outcome, position)
        decisions = {(transaction.producer_id, transaction.epoch): decision}
        self.apply(settle(self.rows.values(), decisions, self.head + 1))

    def at(self, partition: NamedPartition = F0, topic_id: str = FLIGHTS) -> int | None:
        found = committed(self.rows.get(partition), topic_id, require_stable=False)
        return None if found is None else found.offset


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()


# -- which commit counts --------------------------------------------------------------------


def test_plain_commit_counts_at_once(offsets: Offsets) -> None:
    offsets.commit(42, metadata="half way")

    assert offsets.rows[F0].committed == CommittedOffset(42, "half way", FLIGHTS, request=1, position=0)


@pytest.mark.parametrize(("outcome", "offset"), [(Outcome.COMMIT, 42), (Outcome.ABORT, None)])
def test_offset_of_a_transaction_counts_when_it_commits(offsets: Offsets, outcome: Outcome, offset: int | None) -> None:
    offsets.commit(42, A)
    assert offsets.at() is None

    offsets.end(A, outcome)

    assert offsets.at() == offset
    assert (F0 in offsets.rows) == (offset is not None)


def test_committed_offset_remembers_its_transaction_and_its_request(offsets: Offsets) -> None:
    offsets.commit(42, A, metadata="m")
    offsets.end(A, Outcome.COMMIT, position=9)

    assert offsets.rows[F0].committed == CommittedOffset(42, "m", FLIGHTS, request=1, position=9)


def test_later_request_counts_although_its_transaction_commits_first(offsets: Offsets) -> None:
    offsets.commit(1, A)
    offsets.commit(2, B)

    offsets.end(B, Outcome.COMMIT)
    offsets.end(A, Outcome.COMMIT)

    assert offsets.at() == 2


@pytest.mark.parametrize(("plain_first", "offset"), [(True, 1), (False, 8)])
def test_plain_commit_and_transaction_are_ordered_by_their_requests(
    offsets: Offsets, plain_first: bool, offset: int
) -> None:
    for plain in (plain_first, not plain_first):
        offsets.commit(8 if plain else 1, None if plain else A)

    offsets.end(A, Outcome.COMMIT)

    assert offsets.at() == offset


def test_transaction_that_sends_twice_commits_what_it_sent_last(offsets: Offsets) -> None:
    offsets.commit(5, A)
    offsets.commit(3, A)

    assert len(offsets.rows[F0].pending) == 1
    offsets.end(A, Outcome.COMMIT)
    assert offsets.at() == 3


def test_same_range_of_a_topic_that_was_created_again_is_no_retry(offsets: Offsets) -> None:
    offsets.commit(5, read_from=RangeStart(None))

    offsets.commit(5, topic_id=ANEW, read_from=RangeStart(None))

    assert committed(offsets.rows[F0], ANEW, require_stable=True) is not None


def test_transaction_does_not_take_the_place_of_an_earlier_one_of_its_id(offsets: Offsets) -> None:
    offsets.commit(5, A)
    offsets.commit(6, replace(A, epoch=1))

    offsets.end(A, Outcome.COMMIT)
    offsets.end(replace(A, epoch=1), Outcome.ABORT)

    assert offsets.at() == 5


def test_settling_leaves_other_transactions_alone(offsets: Offsets) -> None:
    offsets.commit(5, A)
    offsets.commit(6, B)

    offsets.end(A, Outcome.ABORT)

    assert [pending.transactional_id for pending in offsets.rows[F0].pending] == ["etl-b"]
    assert settle(offsets.rows.values(), {}, 99) == OffsetLogTransition(None)


def test_another_epoch_of_the_producer_is_another_transaction(offsets: Offsets) -> None:
    offsets.commit(5, A)

    offsets.end(replace(A, epoch=1), Outcome.COMMIT)

    assert offsets.at() is None
    assert len(offsets.rows[F0].pending) == 1


@pytest.mark.parametrize("offset", [0, 7, 2**62])
def test_nothing_checks_where_an_offset_goes(offsets: Offsets, offset: int) -> None:
    offsets.commit(100)
    offsets.commit(offset)

    assert offsets.at() == offset


def test_negative_offset_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="offset=-1"):
        NewOffset(-1, FLIGHTS)


@pytest.mark.parametrize("transaction", [None, A])
def test_too_long_metadata_refuses_its_partition_only(offsets: Offsets, transaction: OffsetTransaction | None) -> None:
    longest, longer = "ü" * 2048, "ü" * 2048 + "x"

    refused = offsets.commit({F0: NewOffset(1, FLIGHTS, longer), F1: NewOffset(2, FLIGHTS, longest)}, transaction)

    assert list(offsets.rows) == [F1]
    assert isinstance(refused.pop(F0), OffsetMetadataTooLargeError)
    assert refused == {}


# -- who may commit -------------------------------------------------------------------------


def test_offsets_and_who_may_commit_them_are_one_decision(offsets: Offsets) -> None:
    offsets.group.join("m1")
    frozen = offsets.group.metadata("m1")
    offsets.commit({F0: NewOffset(1, FLIGHTS), ("flights", 5): NewOffset(1, FLIGHTS)}, A, frozen)
    offsets.group.join("m2")
    offsets.group.release("m1")

    with pytest.raises(StaleMemberEpochError, match="partition=5"):
        offsets.commit({F0: NewOffset(2, FLIGHTS), ("flights", 5): NewOffset(2, FLIGHTS)}, B, frozen)

    assert len(offsets.rows[F0].pending) == 1
    offsets.commit(2, B, frozen)
    assert len(offsets.rows[F0].pending) == 2


def test_plain_commit_from_outside_is_refused_while_the_group_has_members(offsets: Offsets) -> None:
    offsets.group.join("m1")

    with pytest.raises(UnknownMemberIdError):
        offsets.commit(1)
    assert offsets.rows == {}


def test_metadata_of_another_group_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="group=g metadata=other"):
        CommitRequest("g", {}, 1, GroupMetadata("other", "m1", 1))


def test_group_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="a group"):
        CommitRequest("", {}, 1)


# -- ranges ---------------------------------------------------------------------------------


@pytest.mark.parametrize("transaction", [None, A])
@pytest.mark.parametrize(
    ("committed", "read_from", "accepted"),
    [(None, None, True), (None, 0, False), (10, 10, True), (10, None, False), (12, 10, False), (9, 10, False)],
)
def test_range_counts_only_when_the_group_still_stands_where_it_was_read_from(
    offsets: Offsets,
    transaction: OffsetTransaction | None,
    committed: int | None,
    read_from: int | None,
    accepted: bool,
) -> None:
    if committed is not None:
        offsets.commit(committed)

    if accepted:
        offsets.commit(20, transaction, read_from=RangeStart(read_from))
        assert (offsets.at() == 20) == (transaction is None)
        return
    with pytest.raises(CommitFailedError, match=f"read_from={read_from} committed={committed}"):
        offsets.commit(20, transaction, read_from=RangeStart(read_from))


@pytest.mark.parametrize("transaction", [None, A])
def test_range_that_was_committed_is_not_written_again(offsets: Offsets, transaction: OffsetTransaction | None) -> None:
    offsets.commit(10)
    offsets.commit(20, transaction, read_from=RangeStart(10))
    before = dict(offsets.rows)

    offsets.commit(20, transaction, read_from=RangeStart(10))

    assert offsets.rows == before


def test_range_that_another_transaction_committed_is_refused_although_it_ends_at_the_same_offset(
    offsets: Offsets,
) -> None:
    offsets.commit(20, A, read_from=RangeStart(None))
    offsets.end(A, Outcome.COMMIT)

    with pytest.raises(CommitFailedError):
        offsets.commit(20, B, read_from=RangeStart(None))
    with pytest.raises(CommitFailedError):
        offsets.commit(20, read_from=RangeStart(None))


def test_second_range_of_a_transaction_goes_on_from_its_first(offsets: Offsets) -> None:
    offsets.commit(10, A, read_from=RangeStart(None))

    offsets.commit(20, A, read_from=RangeStart(10))

    offsets.end(A, Outcome.COMMIT)
    assert offsets.at() == 20


@pytest.mark.parametrize("transaction", [None, B])
def test_range_waits_for_another_transaction_that_may_move_the_group(
    offsets: Offsets, transaction: OffsetTransaction | None
) -> None:
    offsets.commit(10)
    offsets.commit(15, A)

    with pytest.raises(UnstableOffsetCommitError, match="transactional_id=etl-a") as caught:
        offsets.commit(20, transaction, read_from=RangeStart(10))
    assert caught.value.retriable


def test_range_of_a_topic_that_was_created_again_begins_without_an_offset(offsets: Offsets) -> None:
    offsets.commit(10)

    offsets.commit(3, topic_id=ANEW, read_from=RangeStart(None))

    assert (offsets.at(topic_id=ANEW), offsets.at(topic_id=FLIGHTS)) == (3, None)


# -- what a consumer is told ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic_id", "require_stable", "answer"),
    [
        (FLIGHTS, False, 10),
        (FLIGHTS, True, UnstableOffsetCommitError),
        (ANEW, False, None),
        (ANEW, True, None),
    ],
)
def test_pending_offset_holds_back_only_who_requires_a_stable_one(
    offsets: Offsets, topic_id: str, require_stable: bool, answer: int | type[TxnTableError] | None
) -> None:
    offsets.commit(10)
    offsets.commit(20, A)
    row = offsets.rows[F0]

    if isinstance(answer, type):
        with pytest.raises(answer, match="transactional_id=etl-a"):
            committed(row, topic_id, require_stable=require_stable)
        return
    found = committed(row, topic_id, require_stable=require_stable)
    assert answer == (None if found is None else found.offset)


def test_nothing_is_told_where_nothing_was_committed() -> None:
    assert committed(None, FLIGHTS, require_stable=True) is None


def test_offset_whose_topic_id_was_not_stored_counts_in_any_topic_of_the_name() -> None:
    row = OffsetRow("g", "flights", 0, 1, CommittedOffset(4, "", "", 1, 0))

    assert committed(row, ANEW, require_stable=True) == row.committed
