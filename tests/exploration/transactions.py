"""Programs of producers: commits, aborts, fences, timeouts, appends of unknown outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tests.exploration.ends import Look, check_promises, told
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import FatalError, RetriableError, TxnTableError
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import create_on

TRIES = 3
TOPICS = {"t": 2}


@lru_cache
def base() -> Site:
    """A warehouse with one topic of two partitions."""
    return new_topic()


def new_topic(settings: WarehouseSettings | None = None) -> Site:
    site = Site()
    warehouse = create_on(site.store(), site.environment(), exist_ok=True, settings=settings or WarehouseSettings())
    warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)
    return site


def started(actor: Actor, transactional_id: str) -> Producer:
    """A producer that has its id before the others begin."""
    producer = actor.open().producer(transactional_id)
    producer.init_transactions()
    actor.ready()
    return producer


def write(producer: Producer, value: str, partitions: tuple[int, ...] = (0, 1)) -> None:
    """Send one record to each of these partitions, and let them be appended."""
    for partition in partitions:
        producer.send("t", row={"account": value, "amount": 1}, partition=partition)
    producer.flush()


def committing(actor: Actor, value: str, commit: Callable[[], object]) -> None:
    """Ask for a commit as often as its answer says, and note what is known then."""
    actor.tell(f"asked {value}")
    unknown = False
    for _ in range(TRIES):
        try:
            commit()
        except RetriableError:
            unknown = True
            continue
        except TxnTableError as error:
            actor.tell(error.code, *([] if unknown else [f"refused {value}"]))
            raise
        actor.tell(f"committed {value}")
        return


def stubbornly(actor: Actor, call: Callable[[], object]) -> bool:
    """Make a call again for as long as that is what its error says; return whether it ended well."""
    for _ in range(TRIES):
        try:
            call()
        except RetriableError as error:
            actor.tell(error.code)
        else:
            return True
    return False


def transfer(actor: Actor, producer: Producer, value: str, *, abort: bool = False) -> None:
    """One transaction over both partitions, of a user who does what errors say."""
    try:
        producer.begin_transaction()
        write(producer, value)
    except TxnTableError as error:
        actor.tell(error.code)
        abort = True
        if isinstance(error, FatalError):
            return
    end_transaction(actor, producer, value, abort=abort)


def end_transaction(actor: Actor, producer: Producer, value: str, *, abort: bool) -> None:
    """Commit; where that is refused, or not wanted, abort."""
    try:
        if not abort:
            committing(actor, value, producer.commit_transaction)
            return
    except TxnTableError as error:
        actor.tell(error.code)
        if isinstance(error, FatalError):
            return
    try:
        producer.abort_transaction()
    except TxnTableError as error:
        actor.tell(error.code)


def transferring(transactional_id: str, value: str, *, abort: bool = False) -> Code:
    def run(actor: Actor) -> None:
        transfer(actor, started(actor, transactional_id), value, abort=abort)

    return run


def two_transactions(end: End) -> set[str]:
    """Two ids, each with one transaction: in which order they were decided, and what one commit did for both."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2, "y": 2})
    names = {"decided: " + ", ".join(f"{name} {state}" for name, state in look.decided())}
    if any(entry.operation == "MARKERS" and len(entry.rows()) > 1 for entry in look.segments()):
        names.add(BOTH_AT_ONCE)
    return names | told(end)


BOTH_AT_ONCE = "markers of two decisions in one commit of S"


def two_producers(second: str, begin: str, *, bounds: tuple[Bound | None, Bound]) -> Program:
    """Two producers, of which the second commits or aborts.

    They meet from their first call on, or where everything is appended and only to be decided.
    """
    run = transferring if begin == "at begin" else deciding
    ends = {f"decided: x PREPARE_COMMIT, y PREPARE_{second}", f"decided: y PREPARE_{second}, x PREPARE_COMMIT"}
    return Program(
        f"two producers, commit and {second.lower()}, {begin}",
        base,
        {"x": run("x", "x"), "y": run("y", "y", abort=second == "ABORT")},
        two_transactions,
        frozenset({*ends, BOTH_AT_ONCE, "told: committed x"}),
        bounds,
    )


def deciding(transactional_id: str, value: str, *, abort: bool = False) -> Code:
    """As :func:`transferring`, but the records are appended before the others begin."""

    def run(actor: Actor) -> None:
        producer = actor.open().producer(transactional_id)
        producer.init_transactions()
        producer.begin_transaction()
        write(producer, value)
        actor.ready()
        end_transaction(actor, producer, value, abort=abort)

    return run


PROGRAMS = (
    two_producers("COMMIT", "when appended", bounds=(Bound(), Bound(kills=1, faults=1))),
    two_producers("ABORT", "when appended", bounds=(None, Bound(kills=1, faults=1))),
    two_producers("COMMIT", "at begin", bounds=(None, Bound(kills=1))),
    two_producers("ABORT", "at begin", bounds=(Bound(), Bound(kills=1))),
)
