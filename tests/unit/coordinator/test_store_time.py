"""Ages by a store's time that may have been ahead."""

from __future__ import annotations

import pytest

from txntable.coordinator.store_time import AHEAD_MS, has_passed


@pytest.mark.parametrize(
    ("age_ms", "passed"),
    [
        (10_001, True),
        (10_000, False),
        (0, False),
        (-1, False),
        (-10_000 - AHEAD_MS, False),
        (-10_001 - AHEAD_MS, True),
        (-(10**12), True),
    ],
)
def test_time_is_over_by_age_or_when_it_is_further_ahead_than_can_be_waited_for(age_ms: int, passed: bool) -> None:
    assert has_passed(age_ms, 10_000) is passed
