"""Producer ids only rise."""

from __future__ import annotations

import pytest

from txntable.coordinator.errors import InvalidRequestError
from txntable.coordinator.producer_ids import LEAP, PRODUCER_ID_BLOCK_SIZE, allocate_producer_ids, leap


def test_ids_begin_at_zero_when_none_was_given() -> None:
    block = allocate_producer_ids(None)

    assert block.ids == range(PRODUCER_ID_BLOCK_SIZE)
    assert block.next_producer_id == PRODUCER_ID_BLOCK_SIZE


def test_ids_go_on_without_overlap_when_asked_again() -> None:
    first = allocate_producer_ids(40, count=2)

    second = allocate_producer_ids(first.next_producer_id, count=1)

    assert [*first.ids, *second.ids] == [40, 41, 42]


def test_ids_are_refused_when_none_is_asked_for() -> None:
    with pytest.raises(InvalidRequestError, match="count=0"):
        allocate_producer_ids(0, count=0)


def test_leap_passes_every_id_that_was_ever_given() -> None:
    assert leap(None) == LEAP
    assert leap(5000) == 5000 + LEAP
