"""What happens to the processes of a chaos run, and when: by a seed.

The schedule is the seed's; what the processes are at when a blow falls is the machine's, so that a run cannot be
repeated exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.scenario import FirstBlow, Kind, Who
from tests.doubles.faulty_proxy import HttpFault, HttpRule, RequestKind

_LONGEST_QUIET_MS = 1_500
_LONGEST_ABSENCE_MS = 1_500


@dataclass(frozen=True, slots=True)
class Blow:
    """One blow.

    Attributes
    ----------
    after_ms : int
        Since the one before.
    victim : Who
        Whose process.
    kind : Kind
        What is done to it.
    lasts_ms : int
        How long it is paused; of a kill: how long until another process takes its place.
    """

    after_ms: int
    victim: Who
    kind: Kind
    lasts_ms: int


def blows(seed: int, victims: Sequence[Who], first: Sequence[FirstBlow], pauses_ms: Sequence[int]) -> Iterator[Blow]:
    """Yield blows for ever.

    Parameters
    ----------
    seed : int
        Decides all of it.
    victims : sequence of Who
        Who may be hit.
    first : sequence of FirstBlow
        What comes first.
    pauses_ms : sequence of int
        How long a process may be paused.
    """
    chance = random.Random(seed)
    for each in first:
        hit = [victim for victim in victims if each.role in (None, victim[0])]
        yield Blow(chance.randrange(_LONGEST_QUIET_MS), chance.choice(hit), each.kind, each.lasts_ms)
    while True:
        kind = chance.choice([Kind.KILL, Kind.KILL, Kind.PAUSE, Kind.PAUSE, Kind.DOUBLE])
        lasts_ms = chance.randrange(_LONGEST_ABSENCE_MS) if kind is Kind.KILL else chance.choice(pauses_ms)
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


_OF_HELD = (HttpFault.HELD, HttpFault.HELD_RESET, HttpFault.LATE)


def http_faults(seed: int, *, held: bool = False) -> Iterator[tuple[int, HttpRule, int]]:
    """Yield for ever what goes wrong with a server's answers.

    Parameters
    ----------
    seed : int
        Decides all of it.
    held : bool
        Mostly puts are failed, and done later.

    Returns
    -------
    iterator of (int, HttpRule, int)
        How long until the next one, ms; what goes wrong; how many held puts are done before.
    """
    chance = random.Random(seed)
    while True:
        kind = chance.choice(
            [RequestKind.CONDITIONAL_PUT, RequestKind.CONDITIONAL_PUT, RequestKind.GET, RequestKind.LIST]
        )
        of_puts = _OF_HELD if held else _OF_WRITES
        fault = chance.choice(of_puts if kind is RequestKind.CONDITIONAL_PUT else _OF_READS)
        rule = HttpRule(fault, kind, first=chance.randint(1, 5), times=chance.choice([1, 1, 2, 9]) if held else 1)
        # Most wait long: for others to take the slot, or for its cleanup.
        yield chance.randrange(_LONGEST_QUIET_MS), rule, chance.choice([0, 0, 0, 1]) if held else 0
