"""Programs of producers without transactions: appends of unknown outcome, and their publication."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.exploration.ends import Look, check_promises, told
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, new_topic, stubbornly
from tests.simulation.site import Site
from txntable.errors import RetriableError


def sending(value: str) -> Code:
    """A producer without a transactional id, that flushes until it is told that it is done."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer()
        producer.send("t", row={"account": "first of " + value, "amount": 1}, partition=0)
        producer.flush()
        actor.tell(f"sent first of {value}")
        actor.ready()
        record = {"account": value, "amount": 1}
        if stubbornly(actor, lambda: producer.send("t", row=record, partition=0)):
            actor.tell(f"sending {value}")
            if stubbornly(actor, producer.flush):
                actor.tell(f"sent {value}")

    return run


def sent(end: End) -> set[str]:
    """Two plain producers: whose append was first, and what was not known on the way."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), dict.fromkeys(("x", "y", "first of x", "first of y"), 1))
    names = set(told(end))
    appends = [entry.rows()[0]["_producer_id"] for entry in look.segments() if entry.operation == "APPEND"][-2:]
    if len(appends) == 2:
        names.add("x first" if appends[0] < appends[1] else "y first")
    return names


IDEMPOTENT = Program(
    "two idempotent appends, one with a fault",
    base,
    {"x": sending("x"), "y": sending("y")},
    sent,
    frozenset({"x first", "y first", "told: sent x", "told: sent y"}),
    (Bound(faults=1), Bound(faults=2, kills=1, any_call=True)),
)

BEFORE_PROJECTION = on(Operation.PUT_IF_ABSENT, "topics/t/_delta_log", Fault.KILL_BEFORE)


@lru_cache
def unpublished() -> Site:
    """A plain append whose writer died before it published."""
    site = new_topic()
    producer = site.open(BEFORE_PROJECTION).producer()
    producer.send("t", row={"account": "x", "amount": 1}, partition=0)
    with suppress(ProcessKilled):
        producer.flush()
    return site


def catching_up(actor: Actor) -> None:
    log = actor.open().topic_log("t")
    actor.ready()
    try:
        actor.tell("projected" if log.catch_up() else "up to date")
    except RetriableError as error:
        actor.tell(error.code)


def appending(value: str) -> Code:
    """A producer without a transactional id and without sequences, that tries once."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer(enable_idempotence=False)
        actor.ready()
        producer.send("t", row={"account": value, "amount": 1}, partition=0)
        actor.tell(f"sending {value}")
        try:
            producer.flush()
        except RetriableError as error:
            actor.tell(error.code)
        else:
            actor.tell(f"sent {value}")

    return run


def projected(end: End) -> set[str]:
    """Projections of several processes: all the same; which version of S each shows."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 1, "y": 1}, ("sent x",))
    shown = [
        action["txn"]["version"]
        for entry in look.public()
        for action in entry.actions
        if action.get("txn", {}).get("appId") == "reflects"
    ]
    assert shown == sorted(set(shown)), f"the public table went back: {shown}"
    return told(end) | {f"{len(shown) - 1} projections"}


PROJECTIONS = Program(
    "two projections and an append",
    unpublished,
    {"one": catching_up, "other": catching_up, "writer": appending("y")},
    projected,
    frozenset({"1 projections", "2 projections", "told: projected", "told: up to date", "told: sent y"}),
    (Bound(), Bound(kills=1, faults=1)),
)

PROGRAMS = (IDEMPOTENT, PROJECTIONS)
