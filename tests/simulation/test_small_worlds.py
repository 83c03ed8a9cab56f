"""The small worlds hold without a mutant in them, whatever is drawn: they are the killers of many."""

from __future__ import annotations

import pytest

from tests.simulation.every_world import EVERY, SMALL, about
from tests.simulation.playing import play

SEEDS = range(500, 506)


@pytest.mark.parametrize("name", SMALL)
def test_every_check_holds_in_a_small_world(name: str) -> None:
    for seed in SEEDS:
        failure = play(SMALL[name], seed).failure
        assert failure is None, f"{name} {seed}: {failure}"


@pytest.mark.parametrize("name", EVERY)
def test_world_says_what_happens_in_it(name: str) -> None:
    assert about(name)
