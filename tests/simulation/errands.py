"""What processes of the small worlds have in common: each does a few things, each on its own."""

from __future__ import annotations

from typing import Any

from tests.doubles.fault_plan import Step
from tests.simulation.turns import Process
from txntable.errors import DamagedDataError, TxnTableError


class Errands:
    """A process that does a few things; what fails is left as it is.

    Parameters
    ----------
    process : Process
        Whose turns they take.
    told : object
        Where all processes of the run write down what they were told.
    """

    kinds: tuple[str, ...] = ()
    """Names of its methods, of which one is drawn each time."""
    most = 6
    fewest_of = 3
    """At least a given fraction of the most."""

    def __init__(self, process: Process, told: Any) -> None:
        self.process, self.random, self.told = process, process.random, told
        self.site = process.turns.site
        self.count = 0

    def run(self) -> None:
        """Open the warehouse and do a few things."""
        self.warehouse = self.process.opened(self.before)
        for _ in range(self.random.randint(self.most // self.fewest_of, self.most)):
            kind = self.random.choice(self.kinds)
            self.process.doing(kind)
            try:
                getattr(self, kind)()
            except DamagedDataError:
                raise
            except TxnTableError:
                continue

    def before(self, step: Step) -> None:
        """What it does before each of its storage calls: nothing."""
