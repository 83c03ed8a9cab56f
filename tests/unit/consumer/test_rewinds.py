"""When a consumer has gone back in everything that it is assigned."""

from __future__ import annotations

import pytest

from txntable.consumer.rewinds import Rewinds
from txntable.coordinator.group_request import Rewind
from txntable.format.records import TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = (ZERO, ONE)


@pytest.fixture
def rewinds() -> Rewinds:
    numbers = iter(range(1, 100))
    return Rewinds(lambda: next(numbers))


def test_rewind_of_all_is_found_when_the_last_one_was_gone_back_in(rewinds: Rewinds) -> None:
    assert rewinds.went_back([ZERO], BOTH) is None
    assert rewinds.went_back([ONE], BOTH) == 1
    assert list(rewinds.found) == [Rewind(1, 2)]


def test_rewind_that_goes_on_is_found_from_each_later_begin(rewinds: Rewinds) -> None:
    for each in (ZERO, ONE, ONE, ZERO):
        rewinds.went_back([each], BOTH)

    assert list(rewinds.found) == [Rewind(1, 2), Rewind(3, 4)]


def test_partition_that_was_gained_is_back(rewinds: Rewinds) -> None:
    rewinds.gained([ZERO])

    assert rewinds.went_back([ONE], BOTH) == 1


def test_partition_that_was_moved_elsewhere_or_lost_is_back_no_more(rewinds: Rewinds) -> None:
    rewinds.gained(BOTH)
    rewinds.went_on([ZERO])
    assert rewinds.went_back([ONE], BOTH) is None
    rewinds.lost([ONE])
    assert rewinds.went_back([ZERO], BOTH) is None


def test_there_is_no_rewind_of_nothing(rewinds: Rewinds) -> None:
    assert rewinds.went_back([], ()) is None


@pytest.mark.parametrize(
    ("handed", "committed", "stands_at", "back"),
    [
        ([], None, None, 0),
        ([], None, 7, 7),
        ([(5, 8)], None, 8, 5),
        ([(5, 8), (9, 12)], None, 12, 5),
        ([(5, 8), (2, 4)], None, 4, 2),
        ([(5, 8)], 6, 8, 6),
        ([(5, 8)], 8, 11, 11),
        ([(5, 8)], 9, 9, 9),
    ],
    ids=["nothing", "position", "first", "first of two", "lower", "committed", "all committed", "past a marker"],
)
def test_back_is_what_is_committed_or_the_first_that_was_handed_out_since(
    rewinds: Rewinds, handed: list[tuple[int, int]], committed: int | None, stands_at: int | None, back: int
) -> None:
    for start, end in handed:
        rewinds.handed_out(ZERO, start, end)
    if committed is not None:
        rewinds.committed(ZERO, committed)

    assert [rewinds.is_back(ZERO, each, stands_at) for each in (0, back, back + 1)] == [True, True, False]


def test_records_after_a_commit_are_counted_from_the_first_of_them(rewinds: Rewinds) -> None:
    rewinds.handed_out(ZERO, 0, 5)
    rewinds.committed(ZERO, 5)
    rewinds.handed_out(ZERO, 6, 9)

    assert [rewinds.is_back(ZERO, each, 9) for each in (6, 7)] == [True, False]
