"""Programs of two producers of one process whose commits share an entry of T (PROTOCOL.md §4.2 rule 14).

A process that is explored has one thread.  So the second producer asks, and its request is left waiting, as its thread
would wait for the log; the first one then commits, and takes it along.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn
from unittest.mock import patch

from tests.exploration.ends import Look, check_promises, told
from tests.exploration.fencing import taking_over
from tests.exploration.manifests import ONE_COMMIT_FOR_BOTH, check_completions, send
from tests.exploration.process_tree import Actor
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, end_transaction
from tests.exploration.upkeep import completing
from txntable.errors import CommitStateUnknownError, TxnTableError
from txntable.log.request_queue import WaitingRequest
from txntable.transactions.transaction_log import TransactionLog


class LeftWaitingError(BaseException):
    """The thread stands here: its request waits for the log."""


def leave_waiting(transactions: TransactionLog, ask: Callable[[], object]) -> WaitingRequest[Any]:
    """Ask for something, and stand where the request waits."""
    left: list[WaitingRequest[Any]] = []

    queue = transactions._queue

    def wait(request: WaitingRequest[Any]) -> NoReturn:
        queue._waiting.append(request)
        left.append(request)
        raise LeftWaitingError

    with patch.object(queue, "run", wait), suppress(LeftWaitingError):
        ask()
    return left[0]


def sharing(actor: Actor) -> None:
    """Two transactions that are to be decided by one entry."""
    warehouse = actor.open()
    first, second = (warehouse.producer(each) for each in ("x", "y"))
    for producer, value in ((first, "x"), (second, "y")):
        producer.init_transactions()
        send(producer, value)
    actor.ready()
    actor.tell("asked y")
    try:
        left = leave_waiting(warehouse.transactions, second.commit_transaction)
    except TxnTableError as error:
        # Its upload, or what it reads beside, came to nothing: it has not asked.
        actor.tell(error.code)
        end_transaction(actor, first, "x", abort=False)
        return
    end_transaction(actor, first, "x", abort=False)
    if left.is_answered:
        tell_of(actor, left, "y")


def tell_of(actor: Actor, request: WaitingRequest[Any], value: str) -> None:
    """Note what a request was answered."""
    try:
        request.told()
    except CommitStateUnknownError:
        actor.tell("unknown")
    except TxnTableError as error:
        actor.tell(error.code, f"refused {value}")
    else:
        actor.tell(f"committed {value}")


ONE_ENTRY = "both decided by one entry"
ALONE = "decided alone: "


def shared(end: End) -> set[str]:
    """Two ids of one process, and somebody beside them: what one entry decided, and that all of it is there once."""
    look = Look(end, TOPICS)
    check_promises(look, look.healed(), {"x": 2, "y": 2})
    names = told(end) | check_completions(look.segments())
    for entry in look.log:
        decided = sorted(each for each, state in entry.states().items() if state == "PREPARE_COMMIT")
        if entry.operation == "COMMIT" and decided:
            names.add(ONE_ENTRY if len(decided) == 2 else f"{ALONE}{decided[0]}")
    return names


COMPLETER = Program(
    "an entry of two decisions against a completer",
    base,
    {"both": sharing, "completer": completing},
    shared,
    frozenset({ONE_ENTRY, ONE_COMMIT_FOR_BOTH, "told: committed x", "told: committed y", "told: completed 2"}),
    (Bound(kills=1), Bound(kills=1, faults=1)),
)
FENCE = Program(
    "an entry of two decisions against the next process of one of its ids",
    base,
    {"both": sharing, "second": taking_over("y", None)},
    shared,
    frozenset({ONE_ENTRY, f"{ALONE}x", "told: committed x", "told: committed y", "told: refused y", "told: took over"}),
    (Bound(kills=1), Bound(kills=1, faults=1)),
)

PROGRAMS = (COMPLETER, FENCE)
