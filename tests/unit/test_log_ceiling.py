"""The simulation of T's slots on S3, and that the document shows what it says."""

from __future__ import annotations

import pytest

from benchmarks.log_ceiling import DOCUMENT, FASTEST_MS, SLOWEST_MS, TABLES, WAYS, ceiling

ROUND_TRIP_S = (FASTEST_MS + SLOWEST_MS) / 2 / 1000
THREE, TWO, ONE, SHARED, JOB = WAYS


@pytest.mark.parametrize(("way", "round_trips"), [(THREE, 7), (TWO, 5), (ONE, 4)], ids=["three", "two", "one"])
def test_lone_producer_waits_for_its_own_requests_only(way, round_trips: int) -> None:
    found = ceiling(way, 1, 1)

    assert found.rate == pytest.approx(1 / (round_trips * ROUND_TRIP_S), rel=0.05)
    assert found.lost == 0


@pytest.mark.parametrize("way", [THREE, TWO, ONE, SHARED], ids=["three", "two", "one", "shared"])
def test_slots_of_the_log_follow_one_another(way) -> None:
    """No two within half a round trip: who writes one has been answered what stands below."""
    found = ceiling(way, 16, 1)

    assert found.rate * way.slots <= 2 / ROUND_TRIP_S


def test_producers_that_share_entries_are_not_limited_by_their_number() -> None:
    assert ceiling(SHARED, 1, 16).rate >= 3 * ceiling(ONE, 1, 16).rate


@pytest.mark.parametrize("name", TABLES)
def test_document_shows_the_table_as_it_is_computed(name: str) -> None:
    """``python -m benchmarks.log_ceiling`` writes it again."""
    assert f"<!-- table: {name} -->\n{TABLES[name]()}\n<!-- end -->" in DOCUMENT.read_text()
