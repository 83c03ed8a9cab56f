"""Whether very many paths are distinct, beside Python's sets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from txntable.log import distinct_paths
from txntable.log.distinct_paths import are_distinct

PATHS = [f"_segments/p{number % 7:05d}/{number * 7919:032x}-{'x' * (number % 11)}.parquet" for number in range(10_500)]


@pytest.mark.parametrize(
    "paths",
    [
        PATHS,
        [*PATHS, PATHS[3]],
        [*PATHS, PATHS[-1] + "x"],
        # One is the beginning of the other, as far as whole words go.
        [*PATHS, "a" * 16, "a" * 17],
        # Too short for a word.
        [*PATHS, "a", "b"],
        [*PATHS, "a", "a"],
        ["a", "b"],
        ["a", "a"],
        [],
    ],
)
@pytest.mark.parametrize("chunks", [1, 3])
def test_paths_are_distinct_as_a_set_says(paths: list[str], chunks: int) -> None:
    bounds = np.linspace(0, len(paths), chunks + 1).astype(int)
    parts = [pa.array(["before", *paths[a:b], "after"], pa.string())[1 : 1 + b - a] for a, b in pairwise(bounds)]

    assert are_distinct(pa.chunked_array(parts, pa.string())) is (len(set(paths)) == len(paths))


def test_paths_with_one_hash_are_compared_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_paths, "_hashes", lambda paths: np.zeros(len(paths), np.uint64))

    assert are_distinct(pa.chunked_array([PATHS]))


def test_hash_tells_paths_apart() -> None:
    hashes = distinct_paths._hashes(pa.array(PATHS))

    assert len(set(hashes.tolist())) == len(PATHS)
