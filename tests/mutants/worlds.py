"""The worlds in which mutants are looked for: all that are simulated, and the small ones of single rules."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.small_worlds import SMALL_WORLDS
from tests.simulation.turns import World
from tests.simulation.worlds import WORLDS as SIMULATED

WORLDS: Mapping[str, World] = {**SIMULATED, **SMALL_WORLDS}
