"""Where a mirror goes on: nothing is passed over silently, and nothing is mirrored again."""

from __future__ import annotations

import pytest

from txntable.errors import InvalidRequestError, OffsetOutOfRangeError, TxnTableError, UnknownTopicOrPartitionError
from txntable.jobs.mirror.positions import MirrorRun, Position, Source, ranges, resumed, sought

ORIGIN, OTHER = "kafka topic_id=a", "kafka topic_id=b"
SOURCE = Source("orders", ORIGIN, {0: 10, 1: 0}, {0: 20, 1: 5})


def stored(*offsets: int, origin: str = ORIGIN) -> dict[int, Position]:
    return {number: Position(offset, origin) for number, offset in enumerate(offsets)}


def test_mirror_without_positions_begins_with_what_there_is_when_the_target_is_new() -> None:
    assert resumed(SOURCE, {}, target_is_empty=True) == {0: 10, 1: 0}


@pytest.mark.parametrize("offsets", [(10, 0), (15, 3), (20, 5)])
def test_mirror_goes_on_where_it_stands_within_the_source(offsets: tuple[int, int]) -> None:
    assert resumed(SOURCE, stored(*offsets), target_is_empty=False) == dict(enumerate(offsets))


def test_added_partition_goes_on_from_its_first_record() -> None:
    assert resumed(SOURCE, stored(12), target_is_empty=False) == {0: 12, 1: 0}


@pytest.mark.parametrize(
    ("source", "positions", "error", "words"),
    [
        (SOURCE, {}, OffsetOutOfRangeError, "no positions of this mirror"),
        (SOURCE, stored(9, 0), OffsetOutOfRangeError, "partition=0 position=9 earliest=10"),
        (SOURCE, stored(10, 6), OffsetOutOfRangeError, "partition=1 position=6 latest=5"),
        (SOURCE, stored(12, 3, origin=OTHER), UnknownTopicOrPartitionError, "created again"),
        (SOURCE, {0: Position(12, ORIGIN), 1: Position(3, OTHER)}, UnknownTopicOrPartitionError, "created again"),
        (Source("orders", ORIGIN, {0: 0, 1: 2}, {0: 9, 1: 9}), stored(3), OffsetOutOfRangeError, "partition=1"),
    ],
    ids=["expired", "retention", "lost", "created-again", "one-created-again", "added-and-deleted"],
)
def test_mirror_is_refused_with_the_remedy(
    source: Source, positions: dict[int, Position], error: type[TxnTableError], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        resumed(source, positions, target_is_empty=False)

    assert "--at PARTITION=OFFSET" in refused.value.message


@pytest.mark.parametrize(
    ("positions", "asked", "found"),
    [
        (stored(9, 3), {0: 11}, {0: 11, 1: 3}),
        ({}, {0: 10, 1: 5}, {0: 10, 1: 5}),
        (stored(12, 3, origin=OTHER), {0: 10, 1: 0}, {0: 10, 1: 0}),
        (stored(12, 3, 7), {0: 20}, {0: 20, 1: 3}),
    ],
    ids=["one", "all", "of-another-topic", "beyond-the-source"],
)
def test_positions_are_set_by_hand(
    positions: dict[int, Position], asked: dict[int, int], found: dict[int, int]
) -> None:
    assert sought(SOURCE, positions, asked) == found


@pytest.mark.parametrize(
    ("positions", "asked", "error", "words"),
    [
        ({}, {0: 10}, InvalidRequestError, r"without_position=\[1\]"),
        (stored(12, 3, origin=OTHER), {0: 10}, InvalidRequestError, r"without_position=\[1\]"),
        (stored(12, 3), {2: 0}, InvalidRequestError, r"unknown=\[2\]"),
        (stored(12, 3), {0: 9}, OffsetOutOfRangeError, "earliest=10"),
        (stored(12, 3), {0: 21}, OffsetOutOfRangeError, "latest=20"),
    ],
)
def test_positions_that_cannot_be_are_refused(
    positions: dict[int, Position], asked: dict[int, int], error: type[TxnTableError], words: str
) -> None:
    with pytest.raises(error, match=words):
        sought(SOURCE, positions, asked)


@pytest.mark.parametrize(
    ("ends", "most", "found"),
    [
        ({0: 20, 1: 5}, None, {0: (10, 20), 1: (0, 5)}),
        ({0: 20, 1: 5}, 3, {0: (10, 13), 1: (0, 3)}),
        ({0: 10, 1: 5}, None, {1: (0, 5)}),
        ({0: 9, 1: 0}, None, {}),
        ({0: 20}, None, {0: (10, 20)}),
    ],
    ids=["all", "bounded", "nothing-new-in-one", "beyond-the-goal", "added-after-the-goal"],
)
def test_transaction_reads_from_the_positions_to_the_ends(
    ends: dict[int, int], most: int | None, found: dict[int, tuple[int, int]]
) -> None:
    assert ranges({0: 10, 1: 0}, ends, most) == found


def test_run_tells_its_offsets() -> None:
    assert str(MirrorRun({1: (0, 5), 0: (10, 20)})) == "mirrored offsets=15 0=10..20 1=0..5"
