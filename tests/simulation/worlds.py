"""The worlds that are simulated: who works at the same time on which topics, and what is true in the end.

Each is small: a few processes that do a few things.  Together they have everything that exists.  Must not know how
turns are given, nor what goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.checker.evidence import Evidence
from tests.checker.operations import Level, Topics
from tests.simulation import ending
from tests.simulation.actor import DAY_MS
from tests.simulation.bank import MONEY, SCRATCH, SETTINGS
from tests.simulation.casting import ROLES, Role, Stage
from tests.simulation.copying import COPIERS, IN, OUT
from tests.simulation.finishing import check_state, finish_copies
from tests.simulation.journal import Journal, Witness
from tests.simulation.keyed import CONFIG, KEPT, KEYED
from tests.simulation.past import AGO_MS, keys_written, money_moved, source_filled
from tests.simulation.pipelines import PIPE, STATE
from tests.simulation.recorded import COLUMNS
from tests.simulation.site import Site
from tests.simulation.small_limits import small_limits
from tests.simulation.turns import ManySite, Process, SharedHandle, Turns
from txntable.admin.admin import Admin
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.partition.append import LARGEST_COMMIT_SEGMENTS
from txntable.warehouse.warehouse import Warehouse, create_on

__all__ = ["WORLDS", "World"]

_SMALL = {"segment.bytes": "3000"}
_AGES_MS = (60_000, -DAY_MS, 0, DAY_MS)


@dataclass(frozen=True)
class World:
    """One world.

    Attributes
    ----------
    about : str
        What races in it.
    create : callable
        Makes its topics.
    topics : tuple of str
        Their names.
    casts : tuple of str
        Who takes part: roles with spaces between, with a plus between those of one process; one of them is drawn.
    judged : Topics
        What the checker has to know.
    timeout_ms : int
        Longer than any transaction and session.
    shrinking : frozenset of str
        Topics of which records go.
    most_completed : int
        How many rows one commit of S takes of what decisions owe it.
    tidied : bool
        Whether it is also looked at when every retention is over.
    past : callable
        What happened before the run.
    finish : callable
        What the last living client does, and finds.
    """

    about: str
    create: Callable[[Admin], None]
    topics: tuple[str, ...]
    casts: tuple[str, ...]
    judged: Topics = field(default_factory=Topics)
    timeout_ms: int = 61_000
    shrinking: frozenset[str] = frozenset()
    most_completed: int = LARGEST_COMMIT_SEGMENTS
    tidied: bool = False
    past: Callable[[Warehouse, Witness], None] = lambda warehouse, witness: None
    finish: Callable[[Warehouse, ManySite, Journal], None] = lambda warehouse, site, journal: None

    def play(self, turns: Turns) -> None:
        """Start processes, let them take turns, end everything and look at what is there."""
        self.played(turns)

    def played(self, turns: Turns) -> Journal:
        """Do the same, and return what the processes wrote down."""
        base, before = _base(self)
        turns.site, stage = ManySite.like(base), Stage(Journal(before))
        with small_limits(turns.random.choice(_AGES_MS), self.most_completed):
            self._start(turns, turns.random.choice(self.casts), stage)
            turns.run()
            evidence = self._end(turns, stage)
        turns.counts.reached.update(ending.reached(evidence, stage.journal, base))
        return stage.journal

    def _start(self, turns: Turns, cast: str, stage: Stage) -> None:
        number = 0
        for process in cast.split():
            shares = SharedHandle()
            for name in process.split("+"):
                turns.start(f"{name}{number}", self._program(ROLES[name], stage), shares)
                number += 1

    def _program(self, role: Role, stage: Stage) -> Callable[[Process], None]:
        return lambda process: role(process, stage, self.topics).run()

    def _end(self, turns: Turns, stage: Stage) -> Evidence:
        site, journal = turns.site, stage.journal
        witness = journal.witness("in the end")
        warehouse = ending.heal(site, witness, stage.database, self.timeout_ms)
        self.finish(warehouse, site, journal)
        ending.fence_all(warehouse, witness)
        if turns.random.random() < 0.5:
            ending.look_at_all(warehouse, witness, [turns.random.choice(list(Level))], final=False)
            assert not any(report.failures for report in compact(warehouse))
            vacuum(warehouse, execute=True)
        fresh = site.open()
        ending.look_at_all(fresh, journal.witness("after all"), list(Level), final=True)
        ending.check_logs(site, fresh, journal, stage.database, self.shrinking)
        evidence = ending.judge(site, journal, self.judged)
        if self.tidied:
            ending.check_tidied(site, fresh)
        return evidence


_BASES: dict[str, tuple[Site, Journal]] = {}


def _base(world: World) -> tuple[Site, Journal]:
    """A warehouse with the world's topics, made once: the probe races threads, whose order no seed gives."""
    if world.about not in _BASES:
        site, journal = Site(), Journal()
        with small_limits(DAY_MS):
            warehouse = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS)
            world.create(warehouse.admin())
            world.past(warehouse, journal.witness("past"))
        site.advance_ms(AGO_MS)
        _BASES[world.about] = (site, journal)
    return _BASES[world.about]


def _bank(admin: Admin) -> None:
    for name in (*MONEY, SCRATCH):
        admin.create_topic(name, partitions=2, schema=COLUMNS, key=["account"], config=_SMALL)


def _keyed(admin: Admin) -> None:
    for name in KEYED:
        admin.create_topic(name, partitions=2, schema=COLUMNS, key=["account"], config=CONFIG[name])


def _copied(admin: Admin) -> None:
    admin.create_topic(IN, partitions=3)
    admin.create_topic(OUT, partitions=2)


def _piped(admin: Admin) -> None:
    admin.create_topic(IN, partitions=2)
    admin.create_topic(OUT, partitions=2)
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", **_SMALL}
    admin.create_topic(STATE, partitions=2, schema=COLUMNS, key=["account"], config=config)


_MONEY = Topics(accounts=frozenset(MONEY), scratch=frozenset({SCRATCH}))
_COPIES = Topics(copies={OUT: (IN, COPIERS)})
_BANK_TOPICS = (*MONEY, SCRATCH)


def _copying(about: str, *casts: str) -> World:
    """Return a world in which a topic is copied by groups."""
    return World(
        about,
        _copied,
        (IN, OUT),
        casts,
        _COPIES,
        timeout_ms=601_000,
        past=source_filled,
        finish=finish_copies,
    )


WORLDS: Mapping[str, World] = {
    "bank": World(
        "transactions over several topics, plain appends, batch ids, two processes with one transactional id",
        _bank,
        MONEY,
        ("teller teller auditor", "teller teller", "teller auditor teller teller"),
        _MONEY,
    ),
    "threads": World(
        "producers of one process, which share its handle and entries of the log, beside others with the same ids",
        _bank,
        MONEY,
        (
            "cashier+cashier+cashier",
            "cashier+cashier+cashier auditor",
            "cashier+cashier cashier+cashier",
            "cashier+cashier+cashier+teller clerk",
        ),
        _MONEY,
        most_completed=4,
    ),
    "founding": World(
        "topics that are deleted, made again and grow, in the middle of transactions",
        _bank,
        _BANK_TOPICS,
        ("founder founder", "founder teller auditor"),
        _MONEY,
    ),
    "office": World(
        "coordinator jobs, admins that end and fence, expiry, checkpoints and cleanup",
        _bank,
        MONEY,
        ("teller clerk clerk", "teller clerk auditor", "teller teller clerk"),
        _MONEY,
    ),
    "exchange": World(
        "two-phase commit with an external database, and who disturbs it",
        _bank,
        MONEY,
        ("merchant merchant clerk", "merchant merchant", "merchant merchant merchant auditor"),
        _MONEY,
    ),
    "compaction": World(
        "compaction by size beside transactions, readers of now and of the past, cleanup",
        _bank,
        MONEY,
        ("teller compactor compactor", "teller compactor auditor", "merchant compactor clerk"),
        _MONEY,
        past=money_moved,
    ),
    "vacuum": World(
        "vacuum beside writers, compaction and readers of the past",
        _bank,
        MONEY,
        ("teller sweeper", "teller sweeper compactor", "merchant sweeper auditor", "teller sweeper sweeper"),
        _MONEY,
        tidied=True,
        past=money_moved,
    ),
    "keyed": World(
        "compaction by key beside transactions, plain appends, followers and snapshots",
        _keyed,
        KEYED,
        ("keeper compactor follower", "keeper compactor compactor follower", "keeper keeper compactor"),
        Topics(compacted=frozenset({"balances", KEPT})),
        shrinking=frozenset(KEYED),
        past=keys_written,
    ),
    "erasing": World(
        "retention, deletion of records and changed settings beside writers, followers, compaction and vacuum",
        _keyed,
        KEYED,
        ("keeper eraser follower", "keeper eraser eraser follower", "keeper eraser sweeper", "keeper eraser compactor"),
        Topics(compacted=frozenset({"balances", KEPT})),
        shrinking=frozenset(KEYED),
        past=keys_written,
    ),
    "groups": _copying(
        "members that join, leave, die, are silent or static; offsets in transactions and plain ones",
        "source copier copier",
        "source copier reader overseer",
        "copier copier reader",
        "source reader reader overseer",
        "source copier copier inspector",
    ),
    "migrants": _copying(
        "members that send the positions of what is assigned by then, after several polls, as Kafka's examples do",
        "source migrant migrant",
        "source migrant copier overseer",
        "migrant migrant copier",
    ),
    "loners": _copying(
        "ranges that two read at once without being members: one of them counts",
        "source loner loner",
        "source loner loner reader",
        "source loner loner inspector",
    ),
    "pipeline": World(
        "consume, transform, produce with state by key: restarts, batch ids, compaction of the state",
        _piped,
        (IN, OUT, STATE),
        (
            "source pipeline pipeline",
            "source pipeline compactor",
            "source pipeline pipeline compactor",
            "source pipeline inspector",
        ),
        Topics(copies={OUT: (IN, PIPE)}, compacted=frozenset({STATE})),
        timeout_ms=601_000,
        shrinking=frozenset({STATE}),
        past=source_filled,
        finish=check_state,
    ),
}
