"""Calls of a store that run at once: their answers, their errors, and an interrupt."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from tests.doubles.memory_store import MemoryStore
from txntable.errors import StoreUnavailableError
from txntable.storage.side_by_side import side_by_side, threads

PATIENCE_S = 30


def store_of(parallel: int) -> MemoryStore:
    store = MemoryStore()
    store.parallel_writes = parallel
    return store


@pytest.mark.parametrize("parallel", [1, 3])
def test_answers_come_in_the_order_of_the_calls(parallel: int) -> None:
    calls: list[Callable[[], int]] = [lambda number=number: number for number in range(7)]  # type: ignore[misc]

    assert side_by_side(store_of(parallel), calls) == list(range(7))


def test_first_error_in_the_order_of_the_calls_is_raised_once_all_have_ended() -> None:
    second_failed, ended = threading.Event(), []

    def fail_late() -> None:
        assert second_failed.wait(PATIENCE_S)
        raise StoreUnavailableError("the first")

    def fail_early() -> None:
        second_failed.set()
        raise StoreUnavailableError("the second")

    with pytest.raises(StoreUnavailableError, match="the first"):
        side_by_side(store_of(3), [fail_late, fail_early, lambda: ended.append("third")])

    assert ended == ["third"]


def test_calls_run_one_after_the_other_once_the_main_thread_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.storage.side_by_side.threads_may_begin", lambda: False)
    ran_in = []

    def fail() -> None:
        ran_in.append(threading.current_thread())
        raise StoreUnavailableError("the second")

    with pytest.raises(StoreUnavailableError, match="the second"):
        side_by_side(store_of(3), [lambda: ran_in.append(threading.current_thread()), fail])

    assert ran_in == [threading.current_thread()] * 2


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_interrupt_waits_for_no_call_and_begins_none() -> None:
    answer, begun, ended = threading.Event(), threading.Event(), []

    def wait_for_the_store() -> None:
        begun.set()
        ended.append(answer.wait(PATIENCE_S))

    def interrupt_it() -> None:
        assert begun.wait(PATIENCE_S)
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        side_by_side(store_of(2), [wait_for_the_store, interrupt_it, *[wait_for_the_store] * 5])
    ended_before = list(ended)
    answer.set()

    assert ended_before == []


def test_block_that_fails_waits_for_its_calls() -> None:
    answer, ended = threading.Event(), []

    def call() -> None:
        ended.append(answer.wait(PATIENCE_S))

    def block() -> None:
        with threads(1) as pool:
            pool.submit(call)
            answer.set()
            raise StoreUnavailableError("the block's own")

    with pytest.raises(StoreUnavailableError, match="the block's own"):
        block()

    assert ended == [True]
