"""Every interleaving of small programs, within the small bound; and that a rule taken away is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.exploration.appends import IDEMPOTENT
from tests.exploration.explorer import Explorer
from tests.exploration.fencing import FENCE, FORGET
from tests.exploration.manifests import FENCE as FENCE_OF_CARRIED
from tests.exploration.manifests import VACUUM_OF_DECIDED
from tests.exploration.offsets import REBALANCE
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.programs import BOUNDS, PROGRAMS
from tests.exploration.series import COMPLETER
from tests.exploration.upkeep import CLEANUP
from tests.simulation.site import Site
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import InitRequest, ProducerIdentity, Transition
from txntable.coordinator.transaction_shard import complete, init_producer
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import StoreUnavailableError
from txntable.log.delta_log import DeltaLog
from txntable.log.outcome import Committed
from txntable.log.request_queue import RowChange
from txntable.log.table_state import TableState
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_rows import id_columns

SMALL = [program for program in PROGRAMS if program.bounds[BOUNDS["small"]] is not None]
# Takes as long as all others together.
LONG = "two producers, commit and abort, at begin"


def explore(program: Program) -> None:
    bound = program.bounds[BOUNDS["small"]]
    assert bound is not None
    Explorer(program, bound).run()


@pytest.mark.parametrize(
    "program",
    [pytest.param(each, id=each.name, marks=[pytest.mark.nightly] if each.name == LONG else []) for each in SMALL],
)
def test_promises_hold_and_every_end_is_reached_in_all_interleavings(program: Program) -> None:
    explore(program)


# -- the explorer itself --------------------------------------------------------------------


def counting(actor: Actor) -> None:
    """Read a number, and write the next one: no two may do that at once."""
    actor.ready()
    found = actor.store.get("number")
    actor.store.put("number", b"1" if found is None else b"2")


def counted(end: End) -> set[str]:
    found = end.objects.get("number")
    return {"nothing" if found is None else found.data.decode()}


COUNTERS = Program(
    "two counters", Site, {"one": counting, "other": counting}, counted, frozenset({"1", "2"}), (Bound(), Bound())
)


def test_explorer_meets_every_order_of_calls_once() -> None:
    explorer = Explorer(COUNTERS, Bound())

    figures = explorer.run()

    # Each begins, reads and writes: six steps, of which three are one's.
    assert figures.schedules == math.comb(6, 3)
    assert figures.named.keys() == {"1", "2"}
    # Before it begins; before it reads; before it writes what it read, nothing or 1.
    assert figures.places == 2 * len(("begin", "read", "write 1", "write 2", "wrote 1", "wrote 2"))


@pytest.mark.parametrize(
    ("bound", "ends"),
    [
        (Bound(kills=1), {"1", "2"}),
        (Bound(kills=2), {"nothing", "1", "2"}),
        (Bound(faults=1, any_call=True), {"1", "2"}),
    ],
    ids=["one kill", "two kills", "one fault at any call"],
)
def test_explorer_kills_and_fails_at_every_call_as_often_as_the_bound_says(bound: Bound, ends: set[str]) -> None:
    tolerant = {name: tolerating(code) for name, code in COUNTERS.processes.items()}

    figures = Explorer(replace(COUNTERS, processes=tolerant), bound).run()

    assert figures.named.keys() == ends


def tolerating(code: Code) -> Code:
    def run(actor: Actor) -> None:
        with suppress(StoreUnavailableError):
            code(actor)

    return run


def test_explorer_says_that_an_end_was_never_reached() -> None:
    with pytest.raises(AssertionError, match="never reached"):
        Explorer(replace(COUNTERS, ends=frozenset({"three"})), Bound()).run()


# -- rules that are taken away --------------------------------------------------------------


def append_is_not_verified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("txntable.producer.coordinator_client.verify", lambda *_: None)


def a_decided_transaction_is_forgotten_by_init(patch: pytest.MonkeyPatch) -> None:
    def init(row: TransactionMetadata | None, asked: InitRequest) -> Transition[ProducerIdentity | object]:
        complete = {
            TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
            TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
        }
        if row is not None and row.state in complete:
            row = replace(row, state=complete[row.state], topics={}, groups=(), started_position=None)
        return init_producer(row, asked)

    patch.setattr("txntable.producer.coordinator_client.init_producer", init)


def an_append_is_decided_on_a_stale_state(patch: pytest.MonkeyPatch) -> None:
    decide = DeltaLog._decide
    decided: dict[object, object] = {}

    def once(log: DeltaLog, asked: Callable) -> object:
        if asked not in decided:
            decided[asked] = decide(log, asked)
        return decided[asked]

    patch.setattr(DeltaLog, "_decide", once)


def a_late_answer_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeltaLog, "_locate", lambda _, commit, *__: Committed(commit.version))


def who_commits_offsets_is_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("txntable.coordinator.offset_shard.check_member", lambda *_, **__: None)


def vacuum_takes_the_next_epoch_for_that_of_a_decision(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("txntable.compaction.vacuum._epoch_of", lambda row: row.producer_epoch)


def what_a_decision_carries_is_appended_before_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("txntable.partition.manifest.LARGEST_MANIFEST_BYTES", 10)


def complete_is_decided_on_what_was_seen(patch: pytest.MonkeyPatch) -> None:
    def record(completer: Completer, ids: Collection[str] | None = None) -> int:
        transactions = completer.transactions
        rows = [row for row in transactions.log.fold.unrecorded() if ids is None or row.transactional_id in ids]

        def request(table: TableState) -> RowChange[int]:
            done = [complete(row, row.position, table.next_version).row for row in rows]
            return RowChange(len(rows), [id_columns(row) for row in done if row is not None])

        return transactions.run("COMPLETE", request) if rows else 0

    patch.setattr(Completer, "record", record)


def what_was_decided_is_taken_for_complete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Completer, "bring_row", lambda completer, row: completer.transactions.know_complete(lambda _: True))


@pytest.mark.parametrize(
    ("take_away", "program", "found"),
    [
        (what_a_decision_carries_is_appended_before_it, FENCE_OF_CARRIED, "carried was appended before its decision"),
        (vacuum_takes_the_next_epoch_for_that_of_a_decision, VACUUM_OF_DECIDED, "dangling reference"),
        (complete_is_decided_on_what_was_seen, COMPLETER, "an epoch fell"),
        (what_was_decided_is_taken_for_complete, COMPLETER, r"x: \['asked x', "),
        (append_is_not_verified, FORGET, "a transaction hangs"),
        (a_decided_transaction_is_forgotten_by_init, FENCE, "a transaction hangs"),
        (an_append_is_decided_on_a_stale_state, IDEMPOTENT, "offsets of t-0"),
        (a_late_answer_is_believed, CLEANUP, "producer ids were given twice"),
        (who_commits_offsets_is_not_checked, REBALANCE, "a member that had left has committed"),
    ],
)
def test_exploration_fails_when_a_rule_is_taken_away(
    take_away: Callable[[pytest.MonkeyPatch], None], program: Program, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch)

    with pytest.raises(AssertionError, match=found) as failure:
        explore(program)

    assert f"program: {program.name}" in failure.value.__notes__[0], "it does not say by which steps"
