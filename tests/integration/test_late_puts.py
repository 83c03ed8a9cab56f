"""Puts that the network delivers late, on a real S3 API: told failed, and done after a retry, after others took the
slot, after the slot was cleaned up, and after the topic was made again.

Each put of a transaction is held once (the next try succeeds at once) or whenever it is tried (the call fails, and is
made again after the delivery).  Whatever was told committed is there, once; what was not, is there at most once; and
the warehouse goes on.

``HYPOTHESIS_PROFILE=explore`` tries all; else every seventh: each put, moment and number of tries is among them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.doubles.faulty_proxy import HttpFault, HttpRule, RequestKind
from tests.integration.faulty_site import FaultySite, served
from tests.simulation.site import Site
from txntable.errors import TxnTableError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.log.delta_log import DeltaLog
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

TOPICS, GROUP = ("a", "b"), "group"
EVER = 1_000
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def site() -> Iterator[FaultySite]:
    with served("late-puts") as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr("txntable.log.checkpoint.SMALLEST_INTERVAL", 4)
        yield running


@pytest.fixture(scope="module")
def base() -> Site:
    base = Site()
    warehouse = base.create()
    for topic in TOPICS:
        warehouse.admin().create_topic(topic)
    return base


@dataclass
class World:
    """What was sent, and what is known of it."""

    site: FaultySite
    memory: Site
    told: dict[str, bool | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.site.load(self.memory)
        self.victim = self.site.open()
        self.producer = self.victim.producer("victim")
        self.producer.init_transactions()

    def slot(self, log: DeltaLog, root: str) -> str:
        """Return the path of the next entry of a log."""
        return commit_path(root, (log.refresh().version or 0) + 1)

    def attempt(self, value: str, call: Callable[[], object]) -> None:
        """Make a call whose return tells that a value is committed."""
        if self.told.get(value):
            return
        try:
            call()
        except TxnTableError:
            self.told[value] = None
        else:
            self.told[value] = True

    def others(self, count: int, name: str) -> None:
        """Let somebody else commit."""
        producer = self.site.open().producer("other")
        producer.init_transactions()
        for number in range(count):
            with producer.transaction() as transaction:
                for topic in TOPICS:
                    transaction.send(topic, value=f"{name}-{number}".encode())
            self.told[f"{name}-{number}"] = True

    def clean_up(self) -> None:
        """Let others go on for weeks, and the jobs clean up all logs."""
        self.others(3, "before")
        # The group's offsets expire.
        self.with_offsets = False
        self.memory.advance_ms(40 * DAY_MS)
        self.others(3, "after")
        job = self.site.open().coordinator()
        assert job.run_once().failures == 0
        assert job.run_once().failures == 0

    def make_again(self) -> None:
        """Delete a topic, and make it again: what was in it is gone."""
        admin = self.site.open().admin()
        admin.delete_topic("a")
        admin.create_topic("a")
        self.gone = set(self.told) | {"held"}
        self.others(2, "again")

    gone: frozenset[str] | set[str] = frozenset()

    def values(self, warehouse: Warehouse, topic: str) -> list[str]:
        """Return what a topic shows."""
        return [value.decode() for value in warehouse.read_arrow(topic).read_all()["value"].to_pylist()]

    def judge(self) -> None:
        """Look with new eyes, go on, and look once more."""
        for name in ("first", "second"):
            warehouse = self.site.open()
            warehouse.coordinator().run_once()
            for topic in TOPICS:
                found = self.values(warehouse, topic)
                gone = self.gone if topic == "a" else set()
                must = {value for value, told in self.told.items() if told and value not in gone}
                assert len(found) == len(set(found)), f"{topic}: twice"
                assert must <= set(found), f"{topic}: lost {must - set(found)}"
                assert set(found) <= {value for value in self.told if value not in gone}, f"{topic}: from nowhere"
            assert ("held" in self.values(warehouse, "b")) == self.offsets_committed(warehouse) or not self.with_offsets
            assert warehouse.admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []
            self.others(3, name)

    with_offsets = False

    def offsets_committed(self, warehouse: Warehouse) -> bool:
        """Return whether the group has what the transaction has committed."""
        found = warehouse.admin().list_consumer_group_offsets(GROUP).get(TopicPartition("b", 0))
        return found is not None


# -- what is held ---------------------------------------------------------------------------

Held = tuple[list[tuple[RequestKind, str]], Callable[[], object]]


def filled(world: World) -> None:
    world.producer.begin_transaction()
    for topic in TOPICS:
        world.producer.send(topic, b"held")


def decision(world: World) -> Held:
    filled(world)
    world.producer.flush()
    slot = world.slot(world.victim.transactions.log, TRANSACTION_LOG_ROOT)
    return [(RequestKind.CONDITIONAL_PUT, slot)], world.producer.commit_transaction


def append(world: World) -> Held:
    filled(world)
    slot = world.slot(world.victim.topic_log("a").segments, segments_root("a"))
    return [(RequestKind.CONDITIONAL_PUT, slot)], world.producer.commit_transaction


def projection(world: World) -> Held:
    filled(world)
    slot = world.slot(world.victim.topic_log("a").public, public_root("a"))
    return [(RequestKind.CONDITIONAL_PUT, slot)], world.producer.commit_transaction


def offsets(world: World) -> Held:
    filled(world)
    world.producer.flush()
    world.with_offsets = True
    slot = world.slot(world.victim.offsets.log, OFFSET_LOG_ROOT)
    sent: list[bool] = []

    def send_and_commit() -> None:
        if not sent:
            world.producer.send_offsets_to_transaction({TopicPartition("b", 0): 1}, GROUP)
            sent.append(True)
        world.producer.commit_transaction()

    return [(RequestKind.CONDITIONAL_PUT, slot)], send_and_commit


def segment(world: World) -> Held:
    filled(world)
    folder = f"{segments_root('a')}/p"
    return [(RequestKind.CONDITIONAL_PUT, folder), (RequestKind.PUT, folder)], world.producer.commit_transaction


def checkpoint(world: World) -> Held:
    filled(world)
    world.producer.flush()
    kinds = (RequestKind.PUT, RequestKind.CONDITIONAL_PUT)
    return [(kind, "checkpoint") for kind in kinds], partial(go_on, world)


def go_on(world: World) -> None:
    """Commit until there have been checkpoints."""
    world.producer.commit_transaction()
    for number in range(4):
        world.told[f"more-{number}"] = None
        with world.producer.transaction() as transaction:
            for topic in TOPICS:
                transaction.send(topic, value=f"more-{number}".encode())
        world.told[f"more-{number}"] = True


HELD = (decision, append, projection, offsets, segment, checkpoint)


# -- when it is delivered -------------------------------------------------------------------


def retried(world: World) -> None:
    """At once."""


def taken(world: World) -> None:
    world.others(2, "taken")


MOMENTS: tuple[Callable[[World], None], ...] = (retried, taken, World.clean_up, World.make_again)


@dataclass(frozen=True)
class Case:
    """What is held, when it is delivered, how many of its tries are held, and what the client is told."""

    held: Callable[[World], Held]
    moment: Callable[[World], None]
    times: int
    fault: HttpFault

    def __str__(self) -> str:
        return f"{self.held.__name__}, {self.moment.__name__}, {'once' if self.times == 1 else 'ever'}"


CASES = [
    Case(held, moment, times, HttpFault.HELD if number % 2 else HttpFault.HELD_RESET)
    for number, (held, moment, times) in enumerate(
        (held, moment, times) for held in HELD for moment in MOMENTS for times in (1, EVER)
    )
]
# Each seventh, which goes through what is held, the moments and both numbers of tries in turn.
TRIED = CASES if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else CASES[2::7]


@pytest.mark.parametrize("case", TRIED, ids=str)
def test_nothing_is_lost_or_doubled_when_a_put_that_was_told_failed_lands_late(
    site: FaultySite, base: Site, case: Case
) -> None:
    world = World(site, base.copy())
    puts, call = case.held(world)
    site.server.follow(*(HttpRule(case.fault, kind, path, times=case.times) for kind, path in puts))

    world.attempt("held", call)
    site.server.stop_failing()
    assert site.server.held > 0
    case.moment(world)
    site.server.deliver()
    world.attempt("held", call)
    world.attempt("held", world.producer.commit_transaction)

    world.judge()
