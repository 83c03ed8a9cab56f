"""State entries as they are stored, and which of the compactions by key they keep in mind (PROTOCOL.md §5.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.errors import DamagedDataError
from txntable.partition.producer_state import BatchMetadata, ProducerEntry
from txntable.partition.state_entry import (
    MOST_CLEANINGS,
    Cleaning,
    StateEntry,
    after_cleaning,
    expired_through,
    state_add,
    state_entry_of,
)

CLEANED = (Cleaning(10, 100), Cleaning(20, 200), Cleaning(30, 300))
PRODUCERS = {7: ProducerEntry(3, (BatchMetadata(0, 4, 10, 14, "ab"),), 50, 2, 14), 9: ProducerEntry(0)}


@pytest.mark.parametrize("cleaned", [(), CLEANED[:1], CLEANED])
def test_state_entry_is_read_as_written_with_its_cleanings(cleaned: tuple[Cleaning, ...]) -> None:
    entry = StateEntry(1, 40, PRODUCERS, cleaned)

    add = state_add(entry, 6)

    assert state_entry_of(add.path, add.partition_values, add.tag) == entry


@pytest.mark.parametrize("batch", [[0, 4, 10, 14], [0, 4, 10, 14, 7], [], "ab", [0, 4, 10, "ab"]])
def test_batch_without_its_segments_name_or_a_number_is_refused(batch: object) -> None:
    add = state_add(StateEntry(1, 40, PRODUCERS), 6)
    tag = json.loads(add.tag or "")
    tag["producers"][0]["batches"] = [batch]

    with pytest.raises(DamagedDataError):
        state_entry_of(add.path, add.partition_values, json.dumps(tag))


def test_state_entry_without_cleanings_is_written_as_before_there_were_any() -> None:
    assert "cleaned" not in (state_add(StateEntry(1, 40, PRODUCERS), 6).tag or "")


@pytest.mark.parametrize(
    ("horizon_ms", "through"), [(99, 0), (100, 10), (199, 10), (200, 20), (299, 20), (300, 30), (1000, 30)]
)
def test_tombstones_have_expired_below_the_last_cleaning_that_is_old_enough(horizon_ms: int, through: int) -> None:
    assert expired_through(CLEANED, horizon_ms) == through


def test_nothing_has_expired_where_there_was_no_cleaning() -> None:
    assert expired_through((), 1_000) == 0


@pytest.mark.parametrize(
    ("new", "horizon_ms", "kept"),
    [
        (Cleaning(40, 400), 0, [10, 20, 30, 40]),
        (Cleaning(40, 400), 100, [10, 20, 30, 40]),
        (Cleaning(40, 400), 200, [20, 30, 40]),
        (Cleaning(40, 400), 300, [30, 40]),
        (Cleaning(40, 400), 400, [30, 40]),
        (Cleaning(30, 400), 300, [10, 20, 30]),
        (Cleaning(29, 400), 300, [10, 20, 30]),
        (Cleaning(31, 400), 0, [10, 20, 30, 31]),
    ],
)
def test_cleaning_is_kept_until_a_later_one_has_expired_and_one_that_goes_no_further_is_none(
    new: Cleaning, horizon_ms: int, kept: list[int]
) -> None:
    after = after_cleaning(CLEANED, new, horizon_ms)

    assert [one.through for one in after] == kept
    assert set(after) <= {*CLEANED, new}


def test_first_cleaning_is_kept() -> None:
    assert after_cleaning((), Cleaning(5, 50), 1_000) == (Cleaning(5, 50),)


@pytest.mark.parametrize("horizon_ms", [0, 5])
def test_cleanings_are_bounded_and_those_left_out_make_tombstones_stay_longer_never_shorter(horizon_ms: int) -> None:
    cleaned: tuple[Cleaning, ...] = ()
    everything = [Cleaning(10 * number, number) for number in range(1, 3 * MOST_CLEANINGS)]

    for one in everything:
        cleaned = after_cleaning(cleaned, one, horizon_ms)

    assert len(cleaned) == MOST_CLEANINGS
    assert cleaned[-1] == everything[-1]
    assert [one.through for one in cleaned] == sorted({one.through for one in cleaned})
    for later_ms in range(3 * MOST_CLEANINGS):
        assert expired_through(cleaned, later_ms) <= expired_through(everything, later_ms)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), max_size=12),
    st.integers(0, 60),
    st.integers(0, 400),
)
def test_tombstone_goes_when_the_first_cleaning_over_it_is_old_enough(
    steps: list[tuple[int, int]], retention_ms: int, offset: int
) -> None:
    """Against the rule as it is said, over cleanings of which the expired ones were forgotten on the way."""
    cleaned: tuple[Cleaning, ...] = ()
    everything: list[Cleaning] = []
    through, now_ms = 0, 0
    for further, later_ms in steps:
        through, now_ms = through + further, now_ms + later_ms
        everything.append(Cleaning(through, now_ms))
        cleaned = after_cleaning(cleaned, everything[-1], now_ms - retention_ms)

    first = next((one for one in everything if one.through > offset), None)
    for asked_ms in range(now_ms, now_ms + 70, 7):
        gone = first is not None and first.at_ms + retention_ms <= asked_ms
        assert (offset < expired_through(cleaned, asked_ms - retention_ms)) == gone


def test_tombstones_go_in_time_also_when_there_are_more_cleanings_than_are_remembered() -> None:
    """A job each five minutes makes 288 cleanings within a day of ``delete.retention.ms``."""
    retention_ms = 5 * MOST_CLEANINGS
    cleaned: tuple[Cleaning, ...] = ()

    for number in range(1, 30 * MOST_CLEANINGS):
        cleaned = after_cleaning(cleaned, Cleaning(number, number), number - retention_ms)

    assert expired_through(cleaned, number - retention_ms) >= number - 1.1 * retention_ms
