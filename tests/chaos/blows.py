"""What happens to the processes of a chaos run, and when: by a seed.

The schedule is the seed's; what the processes are at when a blow falls is the machine's, so that a run can not be
repeated exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.chaos.premises import PAUSES_MS
from txntable.testing.faulty_proxy import HttpFault, HttpRule, RequestKind

_LONGEST_QUIET_MS = 1_500
_LONGEST_ABSENCE_MS = 1_500


class Kind(Enum):
    """What a blow does."""

    KILL = "SIGKILL; another process takes its place"
    PAUSE = "SIGSTOP, and SIGCONT later"
    DOUBLE = "the same, but another process takes its place at once; soon after it goes on, it is killed"


@dataclass(frozen=True, slots=True)
class Blow:
    """One blow.

    Attributes
    ----------
    after_ms : int
        Since the one before.
    victim : str
        Whose process.
    kind : Kind
        What is done to it.
    lasts_ms : int
        How long it is paused; of a kill: how long until another process takes its place.
    """

    after_ms: int
    victim: str
    kind: Kind
    lasts_ms: int


FIRST_BLOWS = (
    (Kind.KILL, 0),
    *((kind, pause_ms) for kind in (Kind.PAUSE, Kind.DOUBLE) for pause_ms in PAUSES_MS[-2:]),
)
"""What every run has, however short."""


def blows(seed: int, victims: Sequence[str]) -> Iterator[Blow]:
    """Yield blows for ever.

    Parameters
    ----------
    seed : int
        Decides all of it.
    victims : sequence of str
        Who may be hit.
    """
    chance = random.Random(seed)
    for kind, lasts_ms in FIRST_BLOWS:
        yield Blow(chance.randrange(_LONGEST_QUIET_MS), chance.choice(victims), kind, lasts_ms)
    while True:
        kind = chance.choice([Kind.KILL, Kind.KILL, Kind.PAUSE, Kind.PAUSE, Kind.DOUBLE])
        lasts_ms = chance.randrange(_LONGEST_ABSENCE_MS) if kind is Kind.KILL else chance.choice(PAUSES_MS)
        yield Blow(chance.randrange(_LONGEST_QUIET_MS), chance.choice(victims), kind, lasts_ms)


_FAULTS = (
    HttpFault.ERROR_500,
    HttpFault.SLOW_DOWN,
    HttpFault.RESET_BEFORE,
    HttpFault.RESET_AFTER,
    HttpFault.LOST_500,
    HttpFault.SLOW,
    HttpFault.LATE,
)
_OF_WRITES = (*_FAULTS, HttpFault.CONFLICT, HttpFault.LOST_412)
_OF_READS = (*_FAULTS, HttpFault.TRUNCATED)


def http_faults(seed: int) -> Iterator[tuple[int, HttpRule]]:
    """Yield for ever what goes wrong with a server's answers, and how long until the next one, ms."""
    chance = random.Random(seed)
    while True:
        kind = chance.choice(
            [RequestKind.CONDITIONAL_PUT, RequestKind.CONDITIONAL_PUT, RequestKind.GET, RequestKind.LIST]
        )
        fault = chance.choice(_OF_WRITES if kind is RequestKind.CONDITIONAL_PUT else _OF_READS)
        yield chance.randrange(_LONGEST_QUIET_MS), HttpRule(fault, kind, first=chance.randint(1, 5))
