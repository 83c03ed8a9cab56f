"""Requests that wait for a log at the same time, and share an entry (PROTOCOL.md §4.2 rule 14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.doubles.crowded_lock import CrowdedLock
from txntable.errors import (
    CommitStateUnknownError,
    InvalidRequestError,
    ProducerFencedError,
    StoreUnavailableError,
    TransactionCoordinatorFencedError,
    TxnTableError,
)
from txntable.log import request_queue
from txntable.log.actions import Txn
from txntable.log.keyed_table import ROW
from txntable.log.outcome import Unknown, unknown_error
from txntable.log.request_queue import RequestQueue, RowChange, WaitingRequest, decide_together
from txntable.log.table_state import TableState

Written = list[tuple[str, list[str]]]


@dataclass
class Log:
    """What is written by requests of threads that all wait before the first one gets the log."""

    fails: list[BaseException | None] = field(default_factory=list)
    """What the writes come to, the first ones."""
    slots: list[TableState] = field(default_factory=lambda: [TableState()])
    """The states that a write is decided on, one after the other, until its slot is won."""
    written: Written = field(default_factory=list)
    told: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = CrowdedLock()
        self.queue = RequestQueue(self.lock, self._write)

    def _write(self, operation: str, requests: Sequence[WaitingRequest[Any]]) -> None:
        *_, change = [decide_together(requests, table) for table in self.slots]
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None:
            raise failure
        self.written.append((operation, [str(row[ROW]) for row in change.rows]))

    def ask(
        self, key: str, decide: Callable[[TableState], RowChange[str]] | None = None, operation: str = "ASK"
    ) -> None:
        """Ask for something, and note what is told."""
        request = WaitingRequest(operation, decide or writes(key), {"id": key})
        try:
            self.told[key] = self.queue.run(request)
        except TxnTableError as error:
            self.told[key] = error

    def crowd(self, *asked: Callable[[], None]) -> None:
        """Let all ask at the same time; the first one gets the log."""
        for other in asked[1:]:
            self.lock.will_come(other)
        with suppress(KeyboardInterrupt):
            asked[0]()
        for thread in self.lock.threads:
            thread.join()


@pytest.fixture
def log() -> Log:
    """A log."""
    return Log()


def writes(key: str, *numbers: Txn) -> Callable[[TableState], RowChange[str]]:
    """A request that writes a row."""
    return lambda table: RowChange(f"did {key}", [{ROW: key}], numbers=numbers)


def refuses(error: TxnTableError) -> Callable[[TableState], RowChange[str]]:
    """A request that is refused."""

    def decide(table: TableState) -> RowChange[str]:
        raise error

    return decide


def test_request_that_is_alone_is_written_alone(log: Log) -> None:
    log.crowd(lambda: log.ask("a"))

    assert log.written == [("ASK", ["a"])]
    assert log.told == {"a": "did a"}


def test_requests_that_wait_are_written_together_and_each_is_told_its_own_answer(log: Log) -> None:
    log.crowd(*(lambda key=key: log.ask(key) for key in "abc"))

    assert log.written == [("ASK", ["a", "b", "c"])]
    assert log.told == {"a": "did a", "b": "did b", "c": "did c"}


def test_request_that_is_refused_raises_for_who_asked_and_holds_nobody_up(log: Log) -> None:
    fenced = ProducerFencedError("a newer producer took over")

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b", refuses(fenced)), lambda: log.ask("c"))

    assert log.written == [("ASK", ["a", "c"])]
    assert log.told == {"a": "did a", "b": fenced, "c": "did c"}


def test_leader_that_is_refused_writes_what_the_others_ask_for(log: Log) -> None:
    fenced = ProducerFencedError("a newer producer took over")

    log.crowd(lambda: log.ask("a", refuses(fenced)), lambda: log.ask("b"))

    assert log.written == [("ASK", ["b"])]
    assert log.told == {"a": fenced, "b": "did b"}


def test_requests_of_one_key_are_written_one_after_the_other(log: Log) -> None:
    log.crowd(lambda: log.ask("a"), lambda: log.ask("a", writes("again")), lambda: log.ask("c"))

    assert log.written == [("ASK", ["a", "c"]), ("ASK", ["again"])]


def test_request_of_another_operation_has_an_entry_of_its_own(log: Log) -> None:
    log.crowd(lambda: log.ask("a"), lambda: log.ask("b", operation="OTHER"), lambda: log.ask("c"))

    assert log.written == [("ASK", ["a", "c"]), ("OTHER", ["b"])]


def test_requests_that_set_one_number_are_written_one_after_the_other(log: Log) -> None:
    log.crowd(
        lambda: log.ask("a", writes("a", Txn("next", 1))),
        lambda: log.ask("b", writes("b", Txn("next", 2))),
        lambda: log.ask("c"),
    )

    assert log.written[0] == ("ASK", ["a"])
    assert sorted(row for _, rows in log.written for row in rows) == ["a", "b", "c"]
    assert log.told == {"a": "did a", "b": "did b", "c": "did c"}


def test_rows_beyond_the_limit_wait_for_the_next_entry(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "LARGEST_TOGETHER_BYTES", 8)

    log.crowd(*(lambda key=key: log.ask(key) for key in ("aaaa", "bbbb", "cccc", "d" * 20)))

    assert log.written[0] == ("ASK", ["aaaa", "bbbb"])
    assert sorted(log.written[1:]) == [("ASK", ["cccc"]), ("ASK", ["d" * 20])]


def test_requests_beyond_the_limit_wait_for_the_next_entry(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "MOST_TOGETHER", 2)

    log.crowd(*(lambda key=key: log.ask(key) for key in "abc"))

    assert log.written == [("ASK", ["a", "b"]), ("ASK", ["c"])]


def test_what_was_decided_for_a_slot_that_was_lost_is_told_to_nobody(log: Log) -> None:
    lost, won = TableState(), TableState()
    log.slots = [lost, won]
    fenced = ProducerFencedError("a newer producer took over")

    def since_refused(table: TableState) -> RowChange[str]:
        if table is won:
            raise fenced
        return RowChange("did b", [{ROW: "b"}])

    def since_granted(table: TableState) -> RowChange[str]:
        if table is lost:
            raise fenced
        return RowChange("did c", [{ROW: "c"}])

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b", since_refused), lambda: log.ask("c", since_granted))

    assert log.written == [("ASK", ["a", "c"])]
    assert log.told == {"a": "did a", "b": fenced, "c": "did c"}


def test_request_that_had_room_only_in_a_slot_that_was_lost_is_not_told_that_it_is_done(log: Log) -> None:
    lost, won = TableState(), TableState()
    log.slots = [lost, won]

    def takes_a_number(key: str) -> Callable[[TableState], RowChange[str]]:
        return lambda table: RowChange(f"did {key}", [{ROW: key}], numbers=[Txn("next", 1)] if table is won else [])

    log.crowd(
        lambda: log.ask("a", takes_a_number("a")), lambda: log.ask("b", takes_a_number("b")), lambda: log.ask("c")
    )

    assert [sorted(rows) for _, rows in log.written] == [["a"], ["b", "c"]]
    assert log.told == {"a": "did a", "b": "did b", "c": "did c"}


def test_unknown_outcome_is_told_to_each_who_wrote_with_its_own_key(log: Log) -> None:
    log.fails = [unknown_error(Unknown(1, StoreUnavailableError("the disk is full; make room")), operation="ASK")]

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b"))

    assert log.written == []
    for key in "ab":
        error = log.told[key]
        assert isinstance(error, CommitStateUnknownError)
        assert f"id={key}" in str(error)
        assert "the disk is full" in str(error)
    assert log.told["a"] is not log.told["b"]


def test_request_that_wrote_nothing_is_made_again_after_an_unknown_outcome(log: Log) -> None:
    log.fails = [CommitStateUnknownError("the store cannot be reached", operation="ASK")]
    fenced = ProducerFencedError("a newer producer took over")

    log.crowd(
        lambda: log.ask("a"),
        lambda: log.ask("b", refuses(fenced)),
        lambda: log.ask("c", lambda _: RowChange("was done")),
    )

    assert isinstance(log.told["a"], CommitStateUnknownError)
    assert (log.told["b"], log.told["c"]) == (fenced, "was done")


def test_refusal_of_what_one_of_them_writes_is_told_to_that_one_alone(log: Log) -> None:
    nobody_could_read_it = InvalidRequestError("nobody could read what was decided")
    log.fails = [nobody_could_read_it, nobody_could_read_it]

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b"), lambda: log.ask("c"))

    assert log.told["a"] is nobody_could_read_it
    assert sorted(log.written) == [("ASK", ["b"]), ("ASK", ["c"])]


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailableError("the store does not answer; try again"),
        TransactionCoordinatorFencedError("another job has the lease"),
    ],
)
def test_failure_that_is_about_the_log_is_told_to_all_each_with_an_error_of_its_own(
    log: Log, error: TxnTableError
) -> None:
    log.fails = [error]

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b"))

    assert log.told["a"] is error
    other = log.told["b"]
    assert type(other) is type(error)
    assert other is not error
    assert str(other) == str(error)
    assert log.written == []


def test_interrupt_of_who_writes_leaves_the_others_outcome_unknown(log: Log) -> None:
    log.fails = [KeyboardInterrupt()]
    fenced = ProducerFencedError("a newer producer took over")

    log.crowd(lambda: log.ask("a"), lambda: log.ask("b"), lambda: log.ask("c", refuses(fenced)))

    assert isinstance(log.told["b"], CommitStateUnknownError)
    assert log.told["c"] is fenced
    assert "a" not in log.told


def test_who_has_left_before_it_was_taken_along_is_not_written(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(log.lock, "acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.ask("a")

    log.crowd(lambda: log.ask("b"))

    assert log.written == [("ASK", ["b"])]
