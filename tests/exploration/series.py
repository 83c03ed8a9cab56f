"""Programs of series: an id's next entry is decided on what is known complete, and COMPLETE comes late, or never."""

from __future__ import annotations

import itertools
from contextlib import suppress
from functools import lru_cache

from tests.doubles.stepping_store import ProcessKilled
from tests.exploration.ends import Look, Written, check_promises, told
from tests.exploration.fencing import taking_over
from tests.exploration.manifests import BEFORE_COMPLETION, ONE_COMMIT_FOR_BOTH, check_completions, send, two_topics
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, end_transaction
from tests.exploration.upkeep import completing
from tests.simulation.site import Site
from txntable.errors import FatalError

SIZES = {"x": 2, "xx": 2, "y": 2}


def series(transactional_id: str, values: tuple[str, ...], *, closes: bool) -> Code:
    """Transactions of one producer, the second as soon as the first has its answer."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer(transactional_id)
        producer.init_transactions()
        actor.ready()
        with suppress(FatalError):
            for value in values:
                send(producer, value)
                end_transaction(actor, producer, value, abort=False)
        if closes:
            producer.close()

    return run


def states_of(log: list[Written], transactional_id: str) -> list[str]:
    """The states that an id's row was given, in their order."""
    return [entry.states()[transactional_id] for entry in log if transactional_id in entry.states()]


def went_on(end: End) -> set[str]:
    """A series, and somebody beside it: everything is there once, with COMPLETE between two decisions or without."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), SIZES)
    names = told(end) | check_completions(look.segments())
    states = states_of(look.log, "x")
    for state, following in itertools.pairwise(states):
        if state == "PREPARE_COMMIT" and following in {"EMPTY", "PREPARE_COMMIT"}:
            names.add(f"{state} is followed by {following}")
        if state == "COMPLETE_COMMIT" and following == "PREPARE_COMMIT":
            names.add("COMPLETE between two decisions")
    if states[-1:] == ["COMPLETE_COMMIT"]:
        names.add("COMPLETE after the last")
    return names


COMPLETER = Program(
    "a series against a completer",
    base,
    {"x": series("x", ("x", "xx"), closes=True), "completer": completing},
    went_on,
    frozenset(
        {
            "PREPARE_COMMIT is followed by PREPARE_COMMIT",
            "COMPLETE between two decisions",
            "COMPLETE after the last",
            "told: committed xx",
            "told: completed 0",
            "told: completed 1",
        }
    ),
    (Bound(), Bound(kills=1, faults=1)),
)
NEXT_PROCESS = Program(
    "a series against the next process with its id",
    base,
    {"x": series("x", ("x", "xx"), closes=False), "second": taking_over("x", None)},
    went_on,
    frozenset(
        {
            "PREPARE_COMMIT is followed by PREPARE_COMMIT",
            "PREPARE_COMMIT is followed by EMPTY",
            "told: committed xx",
            "told: refused xx",
            "told: took over",
        }
    ),
    (Bound(kills=1), Bound(kills=1, faults=1)),
)
TWO_SERIES = Program(
    "two series",
    base,
    {"x": series("x", ("x", "xx"), closes=True), "y": series("y", ("y",), closes=True)},
    went_on,
    frozenset({"PREPARE_COMMIT is followed by PREPARE_COMMIT", "told: committed xx", "told: committed y"}),
    (None, Bound(kills=1)),
)


@lru_cache
def decided_in_different_topics() -> Site:
    """Two decisions, of which the first enrolled one topic and the second two; whoever made them died at once."""
    site = two_topics()
    for value, topics in (("x", ("t",)), ("y", ("t", "u"))):
        producer = site.open(BEFORE_COMPLETION).producer(value)
        producer.init_transactions()
        send(producer, value, topics)
        with suppress(ProcessKilled):
            producer.commit_transaction()
    return site


def completed(end: End) -> set[str]:
    """What was done for the first is not taken for what the second is owed."""
    look = Look(end, {"t": 2, "u": 2})
    check_promises(look, look.healed(), {"x": 2, "y": 4}, ("committed x", "committed y"))
    return told(end) | check_completions(look.segments())


DIFFERENT_TOPICS = Program(
    "two completers of decisions in different topics",
    decided_in_different_topics,
    {"one": completing, "other": completing},
    completed,
    frozenset({ONE_COMMIT_FOR_BOTH, "told: completed 2", "told: completed 0"}),
    (Bound(), Bound(kills=1)),
)

PROGRAMS = (COMPLETER, NEXT_PROCESS, TWO_SERIES, DIFFERENT_TOPICS)
