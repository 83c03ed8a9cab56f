"""Of which versions whoever commits writes a checkpoint (PROTOCOL.md §4.2 rule 7)."""

from __future__ import annotations

import pytest

from txntable.log.checkpoint import interval, is_due


@pytest.mark.parametrize(
    ("live", "expected"),
    [(0, 100), (9_999, 100), (10_000, 200), (19_999, 200), (20_000, 400), (100_000, 1_600), (1_000_000, 12_800)],
)
def test_interval_is_the_largest_doubling_of_100_that_is_at_most_a_fiftieth_of_the_live_files(
    live: int, expected: int
) -> None:
    assert interval(live) == expected


@pytest.mark.parametrize("files_a_version", [0.1, 0.5, 1, 2, 7])
def test_checkpoints_cost_each_version_a_constant_share_however_a_table_grows(files_a_version: float) -> None:
    """With an interval that grew with each file, a table of a file a version met a multiple of it every 50 versions."""
    written, rows = 0, 0
    for version in range(200_001):
        live = int(version * files_a_version)
        if is_due(version, live):
            written, rows = written + 1, rows + live

        if version and version % 10_000 == 0:
            assert rows <= 100 * version
            assert written >= version / interval(live)
