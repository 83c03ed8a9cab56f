"""The worlds in which mutants are looked for: all that are simulated, small ones of single rules, explored programs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants.explored import EXPLORED
from tests.simulation.past_readers import PAST_WORLDS
from tests.simulation.regrouping import REGROUPING
from tests.simulation.slot_races import SLOT_RACES
from tests.simulation.small_worlds import SMALL_WORLDS
from tests.simulation.turns import World
from tests.simulation.upkeep_races import UPKEEP_RACES
from tests.simulation.worlds import WORLDS as SIMULATED

WORLDS: Mapping[str, World] = {
    **SIMULATED,
    **SMALL_WORLDS,
    **REGROUPING,
    **EXPLORED,
    **UPKEEP_RACES,
    **SLOT_RACES,
    **PAST_WORLDS,
}
