"""Where mutants are looked for: all worlds of the simulation, and explored programs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants.explored import EXPLORED
from tests.simulation.every_world import EVERY
from tests.simulation.turns import World

WORLDS: Mapping[str, World] = {**EVERY, **EXPLORED}
