"""A thread that takes steps: it runs while something is due, and begins again when something is."""

from __future__ import annotations

import threading

import pytest

from tests.doubles.running_threads import all_ended, running
from txntable.runtime.stepping_thread import SteppingThread

NAME = "txntable-stepping-test"
FOR_EVER_MS = 3_600_000


class Steps(SteppingThread):
    """Steps that a test releases one by one, each with the rest that it names."""

    def __init__(self, *rests: int | Exception | None) -> None:
        super().__init__(NAME)
        self.rests = list(rests)
        self.taken = threading.Semaphore(0)
        self.last_steps = 0

    def step(self) -> int | None:
        rest = self.rests.pop(0)
        self.taken.release()
        if isinstance(rest, Exception):
            raise rest
        return rest

    def last_step(self) -> None:
        self.last_steps += 1


def test_no_thread_runs_before_the_first_wake() -> None:
    steps = Steps()

    assert (steps.is_running, running(NAME)) == (False, [])


def test_thread_ends_when_nothing_is_due_and_the_next_wake_begins_another() -> None:
    steps = Steps(None, None)

    for _ in range(2):
        steps.wake()
        assert steps.taken.acquire(timeout=60)
        assert all_ended(NAME)
        assert not steps.is_running

    assert steps.rests == []
    assert steps.last_steps == 0


def test_wake_lets_a_thread_that_rests_look_again() -> None:
    steps = Steps(FOR_EVER_MS, None)
    steps.wake()
    assert steps.taken.acquire(timeout=60)

    steps.wake()

    assert all_ended(NAME)
    assert steps.rests == []


def test_last_step_is_taken_when_a_thread_is_stopped_while_something_is_due() -> None:
    steps = Steps(FOR_EVER_MS, FOR_EVER_MS)
    steps.wake()
    assert steps.taken.acquire(timeout=60)

    steps.stop()

    assert all_ended(NAME)
    assert steps.last_steps == 1
    assert not steps.is_running


def test_nothing_begins_once_it_was_stopped() -> None:
    steps = Steps()
    steps.stop()

    steps.wake()

    assert (steps.is_running, running(NAME)) == (False, [])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_step_that_fails_ends_the_thread_and_not_those_to_come() -> None:
    steps = Steps(RuntimeError("a defect"), None)
    steps.wake()
    assert all_ended(NAME)
    assert not steps.is_running

    steps.wake()

    assert all_ended(NAME)
    assert steps.rests == []


def test_no_thread_begins_at_the_exit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.runtime.stepping_thread.threads_may_begin", lambda: False)
    steps = Steps()

    steps.wake()

    assert (steps.is_running, running(NAME)) == (False, [])
