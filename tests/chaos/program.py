"""What every program of a chaos run is: turns, for ever."""

from __future__ import annotations

from tests.chaos.life import Life
from txntable.errors import TxnTableError


class Program:
    """Takes one turn after the other until its process is told to stop.

    Parameters
    ----------
    life : Life
        Its process.
    """

    def __init__(self, life: Life) -> None:
        self.life, self.chance = life, life.chance

    def turn(self) -> None:
        """Do what is next."""
        raise NotImplementedError

    def recover(self, error: TxnTableError) -> None:
        """Go on after a turn that failed; what this raises is as good as what the next turn raises."""
