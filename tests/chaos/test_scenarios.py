"""Each scenario once, as short as its first blows are; longer by ``python -m tests.chaos --scenario NAME``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import run
from tests.chaos.scenario import Kind
from tests.chaos.scenarios import SCENARIOS

# Of those for S3 the puts that land late have tests of their own (tests/integration/test_late_puts.py).
OF_A_BUILD = ("exchange",)
BY_NIGHT = ("sleepers", "clocks", "erasing", "founding", "static")
SEED = 7


@pytest.mark.parametrize(
    "scenario", [*OF_A_BUILD, *(pytest.param(each, marks=pytest.mark.nightly) for each in BY_NIGHT)]
)
def test_history_has_no_anomaly_when_the_first_blows_of_a_scenario_have_fallen(scenario: str, tmp_path: Path) -> None:
    judgement, figures = run("local", tmp_path, 0, SEED, scenario)

    assert judgement.violations == []
    assert judgement.repeated_batches == {}
    assert figures["pauses"] >= sum(blow.kind is not Kind.KILL for blow in SCENARIOS[scenario].first_blows)
    assert judgement.disagreements == set()
    assert figures["committed"] >= 1
    if scenario == "sleepers":
        assert figures["longest_pause_s"] * 1000 > SCENARIOS[scenario].limits.unnamed_ms
        assert figures["cleaned"] > 0
