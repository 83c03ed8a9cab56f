"""How often things go wrong in a run, and what a storage call meets: all drawn from the run's tape.

A quarter of the runs has fair weather, each of the others some of the faults.  Chances that are calm mean fair weather
(see ``tape``).  Must not know which processes there are.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.doubles.fault_plan import WRITES, Fault, Operation, Step
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT

MINUTE_MS = 60_000
JUMPS_MS = (61_000, 61_000, 310_000, 31 * MINUTE_MS, 2 * 1_440 * MINUTE_MS)
"""Beyond a session and a transaction's timeout, a log's guard, an id's expiry, a log's cleanup."""
SLOW_MS = (300, 5_000, 46_000, 61_000, 310_000, 31 * MINUTE_MS)
CLOCK_JUMPS_MS = (-1_000, 1_000, -120 * MINUTE_MS, 120 * MINUTE_MS, -1_440 * MINUTE_MS, 1_440 * MINUTE_MS)
_DECIDING = (TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT)
_READ = (Fault.FAIL_BEFORE, Fault.SLOW)
_WRITTEN = (Fault.FAIL_BEFORE, Fault.LOST_ANSWER, Fault.LATE_LANDING, Fault.DUPLICATE, Fault.SLOW)
MEETS: dict[Operation, tuple[Fault, ...]] = {
    Operation.GET: _READ,
    Operation.HEAD: _READ,
    Operation.LIST: _READ,
    Operation.PUT: _WRITTEN,
    Operation.WRITE: _WRITTEN,
    Operation.DELETE: _WRITTEN,
    Operation.PUT_IF_ABSENT: (*_WRITTEN, Fault.EXISTS_LOST, Fault.CONFLICT_409),
}
ORDINARY = tuple(dict.fromkeys(fault for faults in MEETS.values() for fault in faults))


@dataclass(frozen=True)
class Weather:
    """How often things go wrong: as chances for each storage call, or for each turn.

    Attributes
    ----------
    fault : float
        That a call meets one of `faults`.
    faults : tuple of Fault
        Those that there are.
    burst : float
        That a call, and some more of the same process after it, fail.
    late : float
        That a commit of the transaction log or the offset log lands late: a decision, an enrolment, offsets.
    land : float
        That something late lands; what is left lands in the end.
    kill, pause, clock : float
        That a process dies, does nothing for a while in which time passes, or has its wall clock set.
    jump : float
        That time passes for all.
    stale : float
        That a LIST is not up to date, which no store that the probe accepts does.
    tick_ms : int
        How much time a turn takes at most; 0: everything happens within one millisecond.
    """

    fault: float = 0.0
    faults: tuple[Fault, ...] = ORDINARY
    burst: float = 0.0
    late: float = 0.0
    land: float = 0.05
    kill: float = 0.0
    pause: float = 0.0
    clock: float = 0.0
    jump: float = 0.0
    stale: float = 0.0
    tick_ms: int = 20

    @classmethod
    def drawn(cls, chance: random.Random) -> Weather:
        """Draw the weather of a run."""
        if chance.random() >= 0.75:
            return cls()

        def sometimes(*rates: float) -> float:
            return chance.choice(rates) if chance.random() < 0.4 else 0.0

        return cls(
            fault=chance.choice((0.0, 0.01, 0.03, 0.1, 0.3)),
            faults=tuple(fault for fault in ORDINARY if chance.random() < 0.6),
            burst=sometimes(0.002, 0.01),
            late=sometimes(0.05, 0.15),
            land=chance.choice((0.05, 0.3, 0.01, 0.002)),
            kill=sometimes(0.001, 0.003, 0.01),
            pause=sometimes(0.002, 0.01),
            clock=sometimes(0.002, 0.01),
            jump=sometimes(0.001, 0.003, 0.01),
            tick_ms=chance.choice((20, 20, 0, 1, 400)),
        )

    @property
    def is_fair(self) -> bool:
        """Return whether nothing goes wrong."""
        rates = (self.fault, self.burst, self.late, self.kill, self.pause, self.clock, self.jump, self.stale)
        return not any(rates)

    def meets(self, step: Step, chance: random.Random) -> Fault | None:
        """Draw what a call meets.

        Parameters
        ----------
        step : Step
            The call.
        chance : random.Random
            The chances of the process that makes it.
        """
        operation = step.operation
        decides = operation is Operation.PUT_IF_ABSENT and step.path.startswith(_DECIDING)
        if self.late and decides and chance.random() < self.late:
            return Fault.LATE_LANDING
        if self.stale and operation is Operation.LIST and chance.random() < self.stale:
            return Fault.STALE_LIST
        # Most calls read, and a failed read is only made again: what writes meet is worth more.
        rate = self.fault if operation in WRITES else self.fault / 4
        if rate and chance.random() < rate:
            possible = [fault for fault in MEETS[operation] if fault in self.faults]
            return chance.choice(possible) if possible else None
        return None
