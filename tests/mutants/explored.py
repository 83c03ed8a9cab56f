"""Programs of which every order is explored, as worlds in which mutants are looked for: one run is all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.exploration.explorer import Explorer
from tests.exploration.fencing import FENCE_AND_GO_ON, FORGET
from tests.exploration.program import Bound, Program
from tests.exploration.series import DIFFERENT_TOPICS
from tests.exploration.upkeep import CLEANUP
from tests.simulation.turns import Turns, World


@dataclass(frozen=True, slots=True)
class Explored:
    """All orders of a program's storage calls within a bound; no seed changes them."""

    program: Program
    bound: Bound

    def play(self, turns: Turns) -> None:
        """Explore everything: the first promise that is broken fails the run."""
        del turns
        Explorer(self.program, self.bound).run()


EXPLORED: Mapping[str, World] = {
    "every-order-forgotten-fence": Explored(FORGET, Bound()),
    "every-order-fence-and-go-on": Explored(FENCE_AND_GO_ON, Bound()),
    "every-order-different-topics": Explored(DIFFERENT_TOPICS, Bound()),
    "every-order-cleaned-slot": Explored(CLEANUP, Bound(jumps=1)),
}
