"""Programs of those who complete, compact and clean up what others left."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from itertools import pairwise

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.exploration.ends import Look, check_promises, entries, told
from tests.exploration.process_tree import Actor
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import BOTH_AT_ONCE, TOPICS, deciding, new_topic, write
from tests.simulation.rubbish import merge
from tests.simulation.site import Site
from txntable.errors import CommitStateUnknownError, RetriableError
from txntable.format.layout import TRANSACTION_LOG_ROOT, segments_root
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.cleanup import clean_up
from txntable.warehouse.warehouse import Warehouse

DAY_MS = 86_400_000
BEFORE_MARKERS = on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.KILL_BEFORE, occurrence=2)


# -- completers -----------------------------------------------------------------------------


@lru_cache
def decided() -> Site:
    """One transaction was committed, one aborted; whoever decided them died at once."""
    site = new_topic()
    for value in ("x", "y"):
        producer = site.open(BEFORE_MARKERS).producer(value)
        producer.init_transactions()
        producer.begin_transaction()
        write(producer, value)
        with suppress(ProcessKilled):
            (producer.commit_transaction if value == "x" else producer.abort_transaction)()
    return site


COMPLETE_OF_BOTH = "COMPLETE of several rows in one commit"


def completing(actor: Actor) -> None:
    warehouse = actor.open()
    actor.ready()
    try:
        actor.tell(f"completed {warehouse.completer.complete_decided()}")
    except RetriableError as error:
        actor.tell(error.code)


def completed(end: End) -> set[str]:
    """Two completers of the same two decisions: the end is the same, whoever did what."""
    look = Look(end, TOPICS)
    site = look.healed()
    check_promises(look, site, {"x": 2, "y": 2}, ("committed x", "refused y"))
    written = [entry.operation for entry in entries(site.objects.snapshot(), segments_root("t"))]
    assert written.count("MARKERS") == 1, "markers were written twice"
    return told(end) | done_for_both(look)


def done_for_both(look: Look) -> set[str]:
    """What one commit did for two transactions."""
    names = set()
    if any(entry.operation == "MARKERS" and len(entry.rows()) > 1 for entry in look.segments()):
        names.add(BOTH_AT_ONCE)
    if any(len(entry.states()) > 1 for entry in look.log if entry.operation == "COMPLETE"):
        names.add(COMPLETE_OF_BOTH)
    if not any(entry.operation == "COMPLETE" for entry in look.log):
        names.add("both died before COMPLETE")
    return names


COMPLETERS = Program(
    "two completers of two decisions",
    decided,
    {"one": completing, "other": completing},
    completed,
    frozenset({BOTH_AT_ONCE, COMPLETE_OF_BOTH, "told: completed 2", "told: completed 0", "told: killed"}),
    (Bound(kills=1), Bound(kills=2, faults=1)),
)

# -- compaction -----------------------------------------------------------------------------


@lru_cache
def untidy() -> Site:
    """Two small committed segments and an aborted one, which will be eligible when all begin."""
    site = new_topic(WarehouseSettings(snapshot_retention_ms=60_000))
    warehouse = site.open()
    producer = warehouse.producer("before")
    producer.init_transactions()
    for value in ("a", "b", "c"):
        producer.begin_transaction()
        write(producer, value, (0,))
        (producer.abort_transaction if value == "c" else producer.commit_transaction)()
    return site


def merging(actor: Actor) -> None:
    """Merge what is committed, take away what was aborted."""
    warehouse = actor.open()
    actor.ready()
    try:
        merge(warehouse, "t")
    except RetriableError as error:
        actor.tell(error.code)


def compacted(end: End) -> set[str]:
    """A compaction beside a transaction: nothing that was there is changed, nothing of the other is lost."""
    look = Look(end, TOPICS)
    before = ("committed a", "committed b", "refused c")
    check_promises(look, look.healed(), {"a": 1, "b": 1, "c": 1, "x": 2}, before)
    order = [entry.operation for entry in look.segments() if entry.operation in {"MARKERS", "COMPACT"}][3:]
    return {name for name in told(end) if " x" in name} | {", ".join(order)}


COMPACTION = Program(
    "a compaction against a commit",
    untidy,
    {"x": deciding("x", "x"), "compactor": merging},
    compacted,
    frozenset({"MARKERS, COMPACT", "COMPACT, MARKERS", "told: committed x"}),
    (Bound(), Bound(kills=1, faults=1)),
    begins_ms=120_000,
)

# -- cleanup --------------------------------------------------------------------------------


def take_ids(actor: Actor, warehouse: Warehouse) -> None:
    """Take producer ids; where it cannot be told whether that was granted, others."""
    try:
        actor.tell(f"took {warehouse.transactions.allocate_producer_ids()}")
    except CommitStateUnknownError:
        actor.tell("not known", f"took {warehouse.transactions.allocate_producer_ids()}")


def allocating(actor: Actor) -> None:
    """One commit of the transaction log, whose put may be held up for days."""
    warehouse = actor.open()
    warehouse.context.clock.now_ms()
    actor.ready()
    take_ids(actor, warehouse)


def cleaning(actor: Actor) -> None:
    """Others go on writing; then, if days have passed, the old entries go."""
    warehouse = actor.open()
    warehouse.context.clock.now_ms()
    actor.ready()
    for _ in range(2):
        take_ids(actor, warehouse)
    try:
        warehouse.transactions.log.write_checkpoint()
        spec = clean_up(warehouse.context, TRANSACTION_LOG_ROOT, DAY_MS)
    except RetriableError as error:
        actor.tell(error.code)
    else:
        actor.tell("cleaned up" if spec.paths else "nothing to clean up")


def cleaned(end: End) -> set[str]:
    """A writer that slept while its slot was taken and cleaned up: it must not believe what it is answered there."""
    look = Look(end, TOPICS)
    taken = [fact for facts in end.told.values() for fact in facts if fact.startswith("took")]
    assert len(taken) == len(set(taken)), f"producer ids were given twice: {taken}"
    look.healed()
    names = {fact for fact in end.facts if fact not in taken}
    if any(above.previous != entry.commit_id for entry, above in pairwise(look.log)):
        names.add("a put landed in a slot that was cleaned up")
    return names


CLEANUP = Program(
    "a cleanup of the transaction log against a stalled writer",
    new_topic,
    {"writer": allocating, "cleaner": cleaning},
    cleaned,
    frozenset({"cleaned up", "nothing to clean up", "a put landed in a slot that was cleaned up"}),
    (Bound(jumps=1), Bound(kills=1, faults=1, jumps=1)),
    jump_ms=3 * DAY_MS,
)

PROGRAMS = (COMPLETERS, COMPACTION, CLEANUP)
