"""Programs of decisions that carry segments: nothing of them is in a partition log before they are completed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.exploration.ends import Look, Written, check_promises, entries, told
from tests.exploration.fencing import taking_over
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, end_transaction, new_topic
from tests.exploration.upkeep import COMPACTION, completing
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.compaction.vacuum import vacuum
from txntable.errors import RetriableError
from txntable.format.layout import segments_root
from txntable.producer.producer import Producer

BEFORE_DECISION = on(Operation.PUT_IF_ABSENT, "transaction_log/_delta_log", Fault.KILL_BEFORE, occurrence=2)
BEFORE_COMPLETION = on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.KILL_BEFORE, occurrence=1)
DAY_MS = 86_400_000
ONE_COMMIT_FOR_BOTH = "one commit of S completes two decisions"


def send(producer: Producer, value: str, topics: tuple[str, ...] = ("t",)) -> None:
    """Begin, and send one record to each of two partitions: they wait for the decision."""
    producer.begin_transaction()
    for topic in topics:
        for partition in (0, 1):
            producer.send(topic, row={"account": value, "amount": 1}, partition=partition)


def carrying(transactional_id: str, value: str, topics: tuple[str, ...] = ("t",)) -> Code:
    """A transaction that is sent when the others begin: its commit uploads, decides and completes."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer(transactional_id)
        producer.init_transactions()
        send(producer, value, topics)
        actor.ready()
        end_transaction(actor, producer, value, abort=False)

    return run


def data_rows(entry: Written) -> list[dict]:
    return [row for row in entry.rows() if row["_control"] is None]


def carried_rows(entry: Written) -> int:
    return len(data_rows(entry))


def committed_epochs(look: Look) -> set[int]:
    """The epochs of which T says that they were committed, at any time."""
    rows = [row for entry in look.log for row in entry.rows() if row["_state"] == "PREPARE_COMMIT"]
    return {json.loads(row["_row"])["decision"]["epoch"] for row in rows}


def check_completions(written: list[Written]) -> set[str]:
    """Carried segments come with the marker of their transaction, in one entry; return what one entry did."""
    names = set()
    for entry in written:
        markers = [row for row in entry.rows() if row["_control"] in {"COMMIT", "ABORT"}]
        if entry.operation == "MARKERS":
            owners = {row["_producer_id"] for row in markers}
            assert all(row["_producer_id"] in owners for row in entry.rows() if row["_control"] is None)
        if len(markers) > 1:
            names.add(ONE_COMMIT_FOR_BOTH)
    return names


def both_carried(end: End) -> set[str]:
    """Two transactions: in which order they were decided, and that nothing of them was open at any time."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2, "y": 2})
    assert all(entry.operation == "MARKERS" for entry in look.segments() if carried_rows(entry))
    names = {"decided: " + ", ".join(f"{name} {state}" for name, state in look.decided())}
    return names | check_completions(look.segments()) | told(end)


TWO_PRODUCERS = Program(
    "two producers whose decisions carry",
    base,
    {"x": carrying("x", "x"), "y": carrying("y", "y")},
    both_carried,
    frozenset(
        {
            "decided: x PREPARE_COMMIT, y PREPARE_COMMIT",
            "decided: y PREPARE_COMMIT, x PREPARE_COMMIT",
            ONE_COMMIT_FOR_BOTH,
            "told: committed x",
        }
    ),
    (Bound(kills=1), Bound(kills=2, faults=1)),
)


@lru_cache
def decided() -> Site:
    """Two decisions that carry; whoever made them died at once."""
    site = new_topic()
    for value in ("x", "y"):
        producer = site.open(BEFORE_COMPLETION).producer(value)
        producer.init_transactions()
        send(producer, value)
        with suppress(ProcessKilled):
            producer.commit_transaction()
    return site


def completed(end: End) -> set[str]:
    """Two completers of the same decisions: what they carry is appended once, whoever did it."""
    look = Look(end, TOPICS)
    site = look.healed()
    check_promises(look, site, {"x": 2, "y": 2}, ("committed x", "committed y"))
    written = entries(site.objects.snapshot(), segments_root("t"))
    assert sum(carried_rows(entry) for entry in written) == 4, "what was carried was appended twice, or not"
    return told(end) | check_completions(written)


COMPLETERS = Program(
    "two completers of two decisions that carry",
    decided,
    {"one": completing, "other": completing},
    completed,
    frozenset({ONE_COMMIT_FOR_BOTH, "told: completed 2", "told: completed 0", "told: killed"}),
    (Bound(kills=1), Bound(kills=2, faults=1)),
)


def fenced(end: End) -> set[str]:
    """A decision that carries against a fence: it is made before, or not at all; nothing of a fenced one is seen."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2, "y": 2})
    # The first one's records are of epoch 0; who takes over has another, and appends before it decides.
    carried = [entry for entry in look.segments() if any(row["_producer_epoch"] == "0" for row in data_rows(entry))]
    assert all(entry.operation == "MARKERS" for entry in carried), "what is carried was appended before its decision"
    assert not carried or 0 in committed_epochs(look), "what was never decided was appended"
    return told(end) | check_completions(look.segments())


FENCE = Program(
    "a decision that carries against its fencing",
    base,
    {"first": carrying("etl", "x"), "second": taking_over("etl", "y")},
    fenced,
    frozenset({"told: committed x", "told: refused x", "told: committed y"}),
    (Bound(), Bound(kills=1)),
)

MERGE = replace(
    COMPACTION,
    name="a compaction against a commit that carries",
    processes={"x": carrying("x", "x"), "compactor": COMPACTION.processes["compactor"]},
)

# -- what may not be refused any more once it is decided ------------------------------------


@lru_cache
def two_topics() -> Site:
    site = new_topic()
    site.open().admin().create_topic("u", partitions=2, schema=TWO_COLUMNS)
    return site


def deleting(actor: Actor) -> None:
    """Delete one of the topics of a transaction."""
    warehouse = actor.open()
    actor.ready()
    with suppress(RetriableError):
        warehouse.admin().delete_topic("u")
        actor.tell("deleted")


def growing(actor: Actor) -> None:
    """Add partitions to one of the topics of a transaction."""
    warehouse = actor.open()
    actor.ready()
    with suppress(RetriableError):
        warehouse.admin().create_partitions({"u": 4})
        actor.tell("grown")


def changed(end: End) -> set[str]:
    """A topic that is changed beside a commit: the other one has its records exactly if that is what was told."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2}, scratch=("u",))
    return told(end) | check_completions(look.segments())


DELETION = Program(
    "a deletion of a topic against a commit that carries",
    two_topics,
    {"x": carrying("x", "x", ("t", "u")), "admin": deleting},
    changed,
    frozenset({"told: deleted", "told: committed x", "told: refused x"}),
    (Bound(), Bound(kills=1)),
)
GROWTH = replace(
    DELETION,
    name="more partitions of a topic against a commit that carries",
    processes={"x": carrying("x", "x", ("t", "u")), "admin": growing},
    ends=frozenset({"told: grown", "told: committed x"}),
    bounds=(None, Bound()),
)

# -- vacuum ---------------------------------------------------------------------------------


def vacuuming(actor: Actor) -> None:
    """Delete what no log names and nobody can name any more."""
    warehouse = actor.open()
    warehouse.context.clock.now_ms()
    actor.ready()
    try:
        report = vacuum(warehouse, execute=True)
    except RetriableError as error:
        actor.tell(error.code)
    else:
        actor.tell("deleted segments" if report.objects else "deleted nothing")


VACUUM = Program(
    "a vacuum against a commit that carries, and days in between",
    base,
    {"x": carrying("x", "x"), "vacuum": vacuuming},
    changed,
    frozenset({"told: committed x", "told: refused x", "told: deleted nothing"}),
    (None, Bound(jumps=1)),
    jump_ms=30 * DAY_MS,
)
VACUUM_OF_DECIDED = Program(
    "a vacuum against the completion of old decisions that carry",
    decided,
    {"completer": completing, "vacuum": vacuuming},
    completed,
    frozenset({ONE_COMMIT_FOR_BOTH, "told: completed 2", "told: deleted nothing", "told: killed"}),
    (Bound(kills=1), Bound(kills=2, faults=1)),
    begins_ms=30 * DAY_MS,
)


@lru_cache
def uploaded() -> Site:
    """A transaction that was uploaded; its process died before the decision."""
    site = new_topic()
    producer = site.open(BEFORE_DECISION).producer("etl")
    producer.init_transactions()
    send(producer, "x")
    with suppress(ProcessKilled):
        producer.commit_transaction()
    return site


VACUUM_OF_FENCED = Program(
    "a vacuum of old uploads against the next process with their id",
    uploaded,
    {"second": taking_over("etl", None), "vacuum": vacuuming},
    changed,
    frozenset({"told: took over", "told: deleted segments", "told: deleted nothing", "told: killed"}),
    (Bound(kills=1), Bound(kills=2, faults=1)),
    begins_ms=30 * DAY_MS,
)

PROGRAMS = (
    TWO_PRODUCERS,
    COMPLETERS,
    FENCE,
    MERGE,
    DELETION,
    GROWTH,
    VACUUM,
    VACUUM_OF_DECIDED,
    VACUUM_OF_FENCED,
)
