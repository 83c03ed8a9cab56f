"""How the transactions of an id ended that came before its last decision: what late questions are answered with.

The rules are those of PROTOCOL.md §6.3.

A producer id's epochs are consecutive, and each names at most one transaction.  So the outcomes of a stretch of them
are a text of runs, the oldest first: ``C3NA`` is three committed ones, an epoch that an init gave up, an aborted
one.  The text ends just below the epoch of the last decision, and its length is bounded: what drops out at its
beginning is not known any more, which is an answer of its own.  Must not know of rows or states.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.errors import DamagedDataError

LONGEST_TEXT = 256
"""Characters: a row of the log is written by every commit, and must not grow with its id's age."""
_TEXT = re.compile(r"(?:[CAN](?:[1-9][0-9]{0,18})?)*")
_RUN = re.compile(r"([CAN])([0-9]*)")


class Ended(Enum):
    """What became of an epoch; the value is the stored letter."""

    COMMITTED = "C"
    ABORTED = "A"
    NOTHING = "N"
    """Given up by an init: nothing was ever decided under it, and nothing ever will be."""


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """The outcomes of consecutive epochs; equal ones are equal values.

    Attributes
    ----------
    runs : tuple of (Ended, int)
        The oldest first: what, and of how many epochs; no two neighbours are alike.
    """

    runs: tuple[tuple[Ended, int], ...] = ()

    def __str__(self) -> str:
        return "".join(_spelt(run) for run in self.runs)

    @property
    def epochs(self) -> int:
        """How many epochs it knows."""
        return sum(count for _, count in self.runs)

    def followed_by(self, ended: Ended, count: int = 1) -> PastDecisions:
        """Return it with `count` further epochs; the oldest runs go where the text would be too long."""
        if count == 0:
            return self
        runs = list(self.runs)
        if runs and runs[-1][0] is ended:
            count += runs.pop()[1]
        runs.append((ended, count))
        size = sum(len(_spelt(run)) for run in runs)
        while size > LONGEST_TEXT:
            size -= len(_spelt(runs.pop(0)))
        return PastDecisions(tuple(runs))

    def ago(self, distance: int) -> Ended | None:
        """Return what became of the epoch `distance` before the end, from 1; ``None``: not known any more."""
        for ended, count in reversed(self.runs):
            if distance <= count:
                return ended
            distance -= count
        return None

    @classmethod
    def parse(cls, text: str) -> PastDecisions:
        """Return what a stored text says.

        Raises
        ------
        DamagedDataError
            It is not what ``str`` writes.
        """
        runs = _RUN.findall(text) if len(text) <= LONGEST_TEXT and _TEXT.fullmatch(text) else []
        past = cls(tuple((Ended(letter), int(count or 1)) for letter, count in runs))
        alike = any(one[0] is other[0] for one, other in zip(past.runs, past.runs[1:], strict=False))
        if str(past) != text or alike:
            raise DamagedDataError("the past decisions of a stored row are misspelt", past=text[:LONGEST_TEXT])
        return past


def _spelt(run: tuple[Ended, int]) -> str:
    ended, count = run
    return ended.value if count == 1 else f"{ended.value}{count}"
