"""All worlds by name: the large ones, in which everything races, and the small ones of single rules."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.simulation import (
    doubles,
    past_readers,
    regrouping,
    replacing,
    resumed_readers,
    slot_races,
    small_worlds,
    unreadable,
    upkeep_races,
    vanishing,
)
from tests.simulation.turns import World
from tests.simulation.worlds import WORLDS

SMALL: Mapping[str, World] = {
    **small_worlds.SMALL_WORLDS,
    **slot_races.SLOT_RACES,
    **past_readers.PAST_WORLDS,
    **upkeep_races.UPKEEP_RACES,
    **regrouping.REGROUPING,
    **resumed_readers.RESUMED,
    **doubles.DOUBLES,
    **unreadable.UNREADABLE,
    **replacing.REPLACING,
    **vanishing.VANISHING,
}
EVERY: Mapping[str, World] = {**WORLDS, **SMALL}
_MODULES = (
    small_worlds,
    slot_races,
    past_readers,
    upkeep_races,
    regrouping,
    replacing,
    resumed_readers,
    doubles,
    unreadable,
    vanishing,
)


def about(name: str) -> str:
    """Return what happens in a world; of a small one its module says it."""
    if name in WORLDS:
        return WORLDS[name].about
    (line,) = re.findall(rf"^\*{name}\*: (.*)\.$", "\n".join(module.__doc__ or "" for module in _MODULES), re.MULTILINE)
    return str(line)
