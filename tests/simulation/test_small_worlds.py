"""What the worlds say of themselves."""

from __future__ import annotations

import pytest

from tests.simulation.every_world import EVERY, about


@pytest.mark.parametrize("name", EVERY)
def test_world_says_what_happens_in_it(name: str) -> None:
    assert about(name)
