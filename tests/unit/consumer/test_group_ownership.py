"""Who may commit what was read: who has owned it without a break since then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import poll_all, send
from tests.unit.consumer.members import BEAT_MS, RAW, SESSION_MS, copier, member, numbers, offset_of, settle
from txntable.consumer.consumer import Consumer
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import (
    CommitFailedError,
    GroupIdNotFoundError,
    StaleMemberEpochError,
    TxnTableError,
    UnknownMemberIdError,
)

FIRST, SECOND = RAW


def filled(site: Site) -> None:
    """Three records in each partition."""
    for partition in (0, 1):
        send(site.open().producer(), "a", "b", "c", partition=partition)


Ending = Callable[[Consumer, Site], object]


def plain(consumer: Consumer, site: Site) -> None:
    consumer.commit(dict.fromkeys(RAW, 3))


def sent(consumer: Consumer, site: Site) -> None:
    with copier(site).transaction() as txn:
        txn.send_offsets(consumer)


def named(consumer: Consumer, site: Site) -> None:
    producer = copier(site)
    with producer.transaction():
        producer.send_offsets_to_transaction(dict.fromkeys(RAW, 3), consumer.group_metadata())


def of_ranges(consumer: Consumer, site: Site) -> None:
    consumer.commit()


ENDINGS = {"plain commit": plain, "send_offsets": sent, "offsets and group metadata": named}


def lost_and_had_back(site: Site, consumer: Consumer) -> None:
    """Let another member have a share of the partitions, and leave again."""
    other = member(site)
    settle(site, consumer, other)
    assert numbers(other)
    other.close()
    settle(site, consumer)
    assert numbers(consumer) == [0, 1]


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_what_was_lost_since_it_was_read_can_not_be_committed_even_when_it_is_had_again(
    site: Site, end: Ending
) -> None:
    filled(site)
    consumer = member(site)
    assert len(poll_all(consumer)) == 6
    lost_and_had_back(site, consumer)

    with pytest.raises(StaleMemberEpochError):
        end(consumer, site)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]
    consumer.seek_to_committed()
    assert len(poll_all(consumer)) == 6
    end(consumer, site)
    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


@pytest.mark.parametrize("end", [*ENDINGS.values(), of_ranges], ids=[*ENDINGS, "commit of what was read"])
def test_range_that_was_lost_since_can_not_be_committed_even_when_it_is_had_again(site: Site, end: Ending) -> None:
    filled(site)
    consumer = member(site)
    consumer.read_arrow()
    metadata = consumer.group_metadata()
    site.advance_ms(SESSION_MS + BEAT_MS)
    other = member(site)
    for _ in range(2):
        other.poll()
        site.advance_ms(15_000)
    assert numbers(other) == [0, 1]
    other.close()
    consumer.poll()
    assert numbers(consumer) == [0, 1]
    assert consumer.group_metadata().member_id == metadata.member_id, "frozen when the range was read"

    with pytest.raises(UnknownMemberIdError):
        end(consumer, site)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]
    assert consumer.read_arrow().read_all().num_rows == 6
    end(consumer, site)
    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


@pytest.mark.parametrize("end", [*ENDINGS.values(), of_ranges], ids=[*ENDINGS, "commit of what was read"])
def test_join_elsewhere_refuses_no_range_that_is_worked_on_for_hours(site: Site, end: Ending) -> None:
    filled(site)
    consumer = member(site)
    records = consumer.read_arrow()
    assert consumer._session._place.membership is not None
    other = member(site)
    for minute in range(2 * 60 * 20):
        site.advance_ms(BEAT_MS)
        consumer._session._place.membership.tend_in_background()
        if minute % 10 == 0:
            other.poll()
            assert numbers(other) == [], "nothing is given up under work"

    assert records.read_all().num_rows == 6
    end(consumer, site)

    settle(site, consumer, other)
    assert sorted([numbers(consumer), numbers(other)]) == [[0], [1]]
    assert poll_all(other) == []


def test_commit_of_who_was_expelled_is_refused_and_the_next_poll_joins_again(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    site.advance_ms(SESSION_MS + BEAT_MS)
    other = member(site)
    for _ in range(2):
        other.poll()
        site.advance_ms(15_000)

    with pytest.raises(UnknownMemberIdError):
        consumer.commit()

    settle(site, other, consumer)
    assert sorted([numbers(consumer), numbers(other)]) == [[0], [1]]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (GroupMetadata("nobody", "m", 1), GroupIdNotFoundError),
        (GroupMetadata("g", "stranger", 1), UnknownMemberIdError),
    ],
)
def test_offsets_of_a_stranger_are_refused_and_their_transaction_can_be_aborted(
    site: Site, metadata: GroupMetadata, error: type[TxnTableError]
) -> None:
    member(site).poll()
    producer = copier(site)
    producer.begin_transaction()

    with pytest.raises(error):
        producer.send_offsets_to_transaction({FIRST: 1}, metadata)

    producer.abort_transaction()
    assert offset_of(member(site), FIRST) is None


@pytest.mark.parametrize("end", [plain, sent, of_ranges])
def test_range_is_not_committed_when_the_group_does_not_stand_there_any_more(site: Site, end: Ending) -> None:
    filled(site)
    consumer = member(site, subscribed=False)
    consumer.assign([FIRST])
    consumer.read_arrow()
    admin = member(site, subscribed=False)
    admin.assign([FIRST])
    admin.commit({FIRST: 1})

    with pytest.raises(CommitFailedError):
        end(consumer, site)

    assert offset_of(consumer, FIRST) == 1


def given_up(consumer: Consumer, other: Consumer, site: Site) -> None:
    settle(site, other, consumer, other)


def expelled(consumer: Consumer, other: Consumer, site: Site) -> None:
    site.advance_ms(SESSION_MS + BEAT_MS)
    for _ in range(2):
        other.poll(max_records=1)
        site.advance_ms(15_000)


@pytest.mark.parametrize("lose", [given_up, expelled])
def test_what_another_member_has_copied_meanwhile_is_refused_though_the_group_stands_behind_it(
    site: Site, lose: Callable[[Consumer, Consumer, Site], None]
) -> None:
    """The transaction that is under way has the records: that their offset is committed does not make them its own."""
    filled(site)
    consumer, other = member(site), member(site)
    producer = copier(site)
    producer.begin_transaction()
    assert len(poll_all(consumer)) == 6
    lose(consumer, other, site)
    assert numbers(other)
    other.seek_to_beginning()
    poll_all(other)
    other.commit()
    other.close()
    settle(site, consumer)
    assert numbers(consumer) == [0, 1]
    poll_all(consumer)

    with pytest.raises((StaleMemberEpochError, UnknownMemberIdError)):
        producer.send_offsets_of(consumer)

    producer.abort_transaction()


def test_what_was_lost_is_not_forgotten_when_it_is_had_again_and_given_up(site: Site) -> None:
    filled(site)
    consumer, other = member(site), member(site)
    poll_all(consumer)
    expelled(consumer, other, site)
    other.commit(dict.fromkeys(RAW, 3))
    other.close()
    settle(site, consumer)
    poll_all(consumer)

    settle(site, member(site), consumer)

    assert len(numbers(consumer)) == 1
    assert consumer.offsets_to_send().offsets.keys() == set(RAW)


def test_what_was_read_before_the_member_left_can_not_be_sent_once_another_one_may_have_it(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    consumer.unsubscribe()
    member(site).poll()
    producer = copier(site)
    producer.begin_transaction()

    with pytest.raises(UnknownMemberIdError):
        producer.send_offsets_of(consumer)

    producer.abort_transaction()
    assert [offset_of(member(site), each) for each in RAW] == [None, None]


def test_partition_that_comes_back_is_the_members_own_again_when_its_offsets_were_committed_by_name(
    site: Site,
) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    named(consumer, site)
    lost_and_had_back(site, consumer)

    send(site.open().producer(), "d")
    assert poll_all(consumer) == ["d"]
    sent(consumer, site)

    assert offset_of(consumer, FIRST) == 4


def test_what_was_lost_is_refused_once(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    lost_and_had_back(site, consumer)
    with pytest.raises(StaleMemberEpochError):
        plain(consumer, site)

    assert len(poll_all(consumer)) == 3, "the one that was lost, again"
    plain(consumer, site)

    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


def test_who_is_told_by_a_refused_commit_that_it_is_no_member_joins_with_the_next_poll(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    site.open().admin().remove_members_from_consumer_group("g")
    with pytest.raises(UnknownMemberIdError):
        consumer.commit()

    consumer.poll()

    log = site.open().offsets
    log.refresh()
    group = log.group("g")
    assert group is not None
    assert len(group.members) == 1


def test_commit_of_the_positions_speaks_of_what_is_owned_now(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    lost_and_had_back(site, consumer)
    assert len(poll_all(consumer)) == 3

    consumer.commit()

    assert [offset_of(consumer, each) for each in RAW] == [3, 3]
