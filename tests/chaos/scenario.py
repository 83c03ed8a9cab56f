"""What a run of chaos is about: who takes part, on which topics, under which bounds, and what hits them first.

Values only; the catalogue is in ``scenarios``, what each role does in ``programs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa

from tests.chaos.limits import Limits
from tests.chaos.premises import PARTITIONS, PAUSES_MS, SETTINGS, TRANSACTION_TIMEOUT_MS
from tests.checker.operations import Topics

Who = tuple[str, str]
"""A role, and who has it."""


class Kind(Enum):
    """What a blow does."""

    KILL = "SIGKILL; another process takes its place"
    PAUSE = "SIGSTOP, and SIGCONT later"
    DOUBLE = "the same, but another process takes its place at once; soon after it goes on, it is killed"


@dataclass(frozen=True, slots=True)
class FirstBlow:
    """A blow that every run of a scenario has: to one of a role, or (without one) to anybody."""

    kind: Kind
    lasts_ms: int
    role: str | None = None


FIRST_BLOWS = (
    FirstBlow(Kind.KILL, 0),
    *(FirstBlow(kind, pause_ms) for kind in (Kind.PAUSE, Kind.DOUBLE) for pause_ms in PAUSES_MS[-2:]),
)

_SLOWER = 4
_IN_DAYS = ("vacuum_retention_ms", "transactional_id_expiration_ms", "producer_id_expiration_ms")
_SMALL: Mapping[str, str] = {"segment.bytes": "20000"}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """How a topic is made."""

    config: Mapping[str, str] = field(default_factory=lambda: _SMALL)
    partitions: int = PARTITIONS
    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of run.

    Attributes
    ----------
    about : str
        For people.
    roles : mapping of str to sequence of str
        What there is of each; its second name says who, and for some how.
    topics : mapping of str to TopicPlan
        What is there from the beginning.
    checked : Topics
        What the checker must know of them.
    groups : sequence of str
        Of consumers.
    ids : sequence of str
        Transactional ids.
    limits : Limits
        Bounds that are lowered.
    settings : mapping of str to int
        The warehouse's.
    first_blows : sequence of FirstBlow
        What every run has, however short.
    pauses_ms : sequence of int
        How long a process may sleep.
    stores : sequence of str
        Where it makes sense.
    clocks : bool
        Whether each process has a wall clock of its own, and the store one that jumps.
    held : bool
        Whether puts that a server has failed are done some time later.
    reads : bool
        Whether somebody polls and reads snapshots: proofs that the blows have not stopped it.
    spared : frozenset of Who
        Who lives as long as the run, and is never hit.
    rests : int
        So many times as long everybody rests between turns.
    transaction_timeout_ms : int
        Of every producer.
    """

    about: str
    roles: Mapping[str, Sequence[str]]
    topics: Mapping[str, TopicPlan]
    checked: Topics
    groups: Sequence[str] = ()
    ids: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    settings: Mapping[str, int] = field(default_factory=lambda: SETTINGS)
    first_blows: Sequence[FirstBlow] = FIRST_BLOWS
    pauses_ms: Sequence[int] = PAUSES_MS
    stores: Sequence[str] = ("local", "s3")
    clocks: bool = False
    held: bool = False
    reads: bool = True
    spared: frozenset[Who] = frozenset()
    rests: int = 1
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS

    def on(self, url: str) -> Scenario:
        """Return the scenario for a store: what opens a log across a network needs a longer guard, and days as well."""
        limits = self.limits.times(_SLOWER)
        if "://" not in url or limits == self.limits:
            return self
        first = [replace(blow, lasts_ms=blow.lasts_ms * _SLOWER) for blow in self.first_blows]
        settings = {name: ms * (_SLOWER if name in _IN_DAYS else 1) for name, ms in self.settings.items()}
        pauses_ms = (*self.pauses_ms[:-1], self.pauses_ms[-1] * _SLOWER)
        return replace(self, limits=limits, settings=settings, first_blows=first, pauses_ms=pauses_ms)

    @property
    def everybody(self) -> list[Who]:
        """Who takes part."""
        return [(role, name) for role, names in self.roles.items() for name in names]

    @property
    def victims(self) -> list[Who]:
        """Who may be hit."""
        return [who for who in self.everybody if who not in self.spared]
