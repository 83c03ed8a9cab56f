"""Who can take part in a simulation: a name for each kind of actor, and what they share outside of the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.simulation.actor import Actor
from tests.simulation.bank import Auditor, Cashier, Founder, Teller
from tests.simulation.copying import Copier, Loner, Migrant, Reader, Source
from tests.simulation.exchange import ExternalDatabase, Merchant
from tests.simulation.inspector import Inspector
from tests.simulation.journal import Journal
from tests.simulation.keyed import Eraser, Follower, Keeper
from tests.simulation.office import Clerk
from tests.simulation.overseer import Overseer
from tests.simulation.pipelines import Pipeline, Schedule
from tests.simulation.turns import Process
from tests.simulation.upkeep import Compactor, Sweeper


@dataclass
class Stage:
    """What the processes of one run share outside of the warehouse."""

    journal: Journal
    database: ExternalDatabase = field(default_factory=ExternalDatabase)
    schedule: Schedule = field(default_factory=Schedule)


Role = Callable[[Process, Stage, tuple[str, ...]], Actor]


def _merchant(process: Process, stage: Stage, topics: tuple[str, ...]) -> Actor:
    return Merchant(process, stage.journal, topics, stage.database)


def _pipeline(process: Process, stage: Stage, topics: tuple[str, ...]) -> Actor:
    return Pipeline(process, stage.journal, topics, stage.schedule)


def _of(kind: Callable[[Process, Journal, tuple[str, ...]], Actor]) -> Role:
    return lambda process, stage, topics: kind(process, stage.journal, topics)


ROLES: Mapping[str, Role] = {
    "teller": _of(Teller),
    "cashier": _of(Cashier),
    "founder": _of(Founder),
    "auditor": _of(Auditor),
    "clerk": _of(Clerk),
    "merchant": _merchant,
    "compactor": _of(Compactor),
    "sweeper": _of(Sweeper),
    "keeper": _of(Keeper),
    "eraser": _of(Eraser),
    "follower": _of(Follower),
    "source": _of(Source),
    "copier": _of(Copier),
    "migrant": _of(Migrant),
    "loner": _of(Loner),
    "reader": _of(Reader),
    "overseer": _of(Overseer),
    "inspector": _of(Inspector),
    "pipeline": _pipeline,
}
