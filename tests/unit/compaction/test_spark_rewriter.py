"""How a compaction's tasks become Spark's: large ones alone, small neighbours together, all in order."""

from __future__ import annotations

import pytest

from txntable.compaction.spark_rewriter import shares
from txntable.compaction.spec import RewriteTask
from txntable.segments.segment_columns import PlannedSegment

MIB = 1024 * 1024


def task(size: int, sources: int) -> RewriteTask:
    each = PlannedSegment("s", 0, 0, 0, None, size // sources, 1, 0, 1)
    return RewriteTask(0, (each,) * sources)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], []),
        ([(900 * MIB, 2)], [1]),
        ([(32 * MIB, 2), (32 * MIB, 2)], [2]),
        ([(32 * MIB, 2), (33 * MIB, 2)], [1, 1]),
        ([(MIB, 2), (900 * MIB, 2), (MIB, 2), (MIB, 2)], [1, 1, 2]),
        ([(1000, 500), (1000, 500), (1000, 500)], [2, 1]),
    ],
)
def test_small_tasks_share_one_of_sparks(tasks: list[tuple[int, int]], expected: list[int]) -> None:
    given = [task(size, sources) for size, sources in tasks]

    found = list(shares(given))

    assert [len(share) for share in found] == expected
    assert [each for share in found for each in share] == given
