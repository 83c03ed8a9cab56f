"""Programs of processes that fence each other, and of transactions that time out."""

from __future__ import annotations

from dataclasses import replace

from tests.exploration.ends import Look, check_promises, told
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, deciding, stubbornly, transfer, transferring
from tests.simulation.rubbish import merge
from txntable.errors import RetriableError

MINUTE_MS = 60_000


def taking_over(transactional_id: str, value: str | None) -> Code:
    """Another process with the same id; it may have a transaction of its own."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer(transactional_id)
        actor.ready()
        if stubbornly(actor, producer.init_transactions):
            actor.tell("took over")
            if value is not None:
                transfer(actor, producer, value)

    return run


def fenced(end: End) -> set[str]:
    """One id with two processes: where the first one was when it was fenced."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2, "y": 2})
    appended = any(
        row["_producer_epoch"] == "0" for entry in look.segments() for row in entry.rows() if not row["_control"]
    )
    operations = [entry.operation for entry in look.log]
    names = set(told(end))
    if "took over" in end.facts and not appended:
        names.add("fenced before its append")
    if {"refused x", "took over"} <= end.facts:
        names.add("fenced between its append and its decision")
    if "committed x" in end.facts and "took over" in end.facts:
        names.add("committed before it was fenced")
    if "ENROL" in operations and "took over" in end.facts and not appended:
        names.add("fenced between its enrolment and its append")
    return names


FENCE = Program(
    "two processes with one transactional id",
    base,
    {"first": transferring("etl", "x"), "second": taking_over("etl", None)},
    fenced,
    frozenset(
        {
            "committed before it was fenced",
            "fenced between its append and its decision",
            "fenced before its append",
            "fenced between its enrolment and its append",
        }
    ),
    (Bound(kills=1), Bound(kills=1, faults=1)),
)


def fencing_and_forgetting(actor: Actor) -> None:
    """Take the id over; then the partitions lose the marker and forget the producer: only T knows that it is fenced."""
    warehouse = actor.open()
    producer = warehouse.producer("etl")
    actor.ready()
    try:
        producer.init_transactions()
        actor.tell("took over")
        merge(warehouse, "t")
        # In-commit times are ahead of a clock that stands still: so not even what is of the future stays.
        forgotten = warehouse.topic_log("t").expire_producers(-MINUTE_MS)
    except RetriableError as error:
        actor.tell(error.code)
    else:
        actor.tell("forgotten" if forgotten else "nothing to forget")


FORGET = replace(
    FENCE,
    name="a zombie's append against its fencing, which the partitions forget",
    processes={"first": transferring("etl", "x"), "second": fencing_and_forgetting},
    ends=FENCE.ends | {"told: forgotten", "told: nothing to forget"},
    bounds=(Bound(), Bound(kills=1, faults=1)),
)
FENCE_AND_GO_ON = replace(
    FENCE,
    name="two processes with one transactional id, both with a transaction",
    processes={"first": transferring("etl", "x"), "second": taking_over("etl", "y")},
    ends=FENCE.ends | {"told: committed y"},
    bounds=(None, Bound()),
)


def reaping(actor: Actor) -> None:
    """Somebody who aborts what has timed out, and completes what is decided."""
    warehouse = actor.open()
    actor.ready()
    try:
        warehouse.completer.abort_timed_out()
        warehouse.completer.complete_decided()
    except RetriableError as error:
        actor.tell(error.code)


def coordinating(actor: Actor) -> None:
    """The coordinator job, for one round."""
    job = actor.open().coordinator()
    actor.ready()
    try:
        job.run_once()
    except RetriableError as error:
        actor.tell(error.code)


def timed_out(end: End) -> set[str]:
    """A commit against its timeout: who was first."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2})
    operations = [entry.operation for entry in look.log]
    names = set(told(end))
    if "TIME_OUT" in operations:
        names.add("timed out before it was decided")
        appended = any(not row["_control"] for entry in look.segments() for row in entry.rows())
        names.add("timed out after its append" if appended else "timed out before its append")
    elif "committed x" in end.facts and end.time_ms:
        names.add("decided just before its timeout")
    return names


TIMEOUT = Program(
    "a commit against its timeout",
    base,
    {"x": transferring("x", "x"), "reaper": reaping},
    timed_out,
    frozenset(
        {
            "timed out before it was decided",
            "timed out after its append",
            "timed out before its append",
            "decided just before its timeout",
            "told: refused x",
        }
    ),
    (None, Bound(jumps=1, kills=1)),
    jump_ms=61_000,
)
TIMED_OUT = replace(
    TIMEOUT,
    name="a commit after its timeout has passed",
    processes={"x": deciding("x", "x"), "reaper": reaping},
    ends=TIMEOUT.ends - {"timed out before its append"},
    bounds=(Bound(), Bound(kills=1, faults=1)),
    begins_ms=61_000,
)
JOB = replace(
    TIMEOUT,
    name="a commit against a round of the coordinator job",
    processes={"x": transferring("x", "x"), "job": coordinating},
    bounds=(None, Bound(jumps=1)),
)

PROGRAMS = (FENCE, FORGET, FENCE_AND_GO_ON, TIMEOUT, TIMED_OUT, JOB)
