"""Row groups decoded side by side: every batch once and in order, errors in their place, and never far ahead."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial

import pyarrow as pa
import pytest

from txntable.errors import DamagedDataError
from txntable.runtime.background_thread import start_in_background
from txntable.segments import decoding
from txntable.segments.decoding import RowGroup, decoded

LIMIT_S = 30
Batches = Generator[pa.RecordBatch | None, None, None]


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"number": [number]})


def numbers(first: int, count: int, _: bool = False) -> Batches:
    for number in range(first, first + count):
        yield batch(number)


def group(first: int, count: int, size: int = 1) -> RowGroup:
    return RowGroup(size, partial(numbers, first, count))


def taken(batches: Generator[pa.RecordBatch, None, None]) -> list[int]:
    return [number for each in batches for number in each.column("number").to_pylist()]


@pytest.mark.parametrize("most", [0, 1, 2, 3, 16])
@pytest.mark.parametrize("groups", [0, 1, 2, 20])
def test_every_batch_comes_once_and_in_order_whatever_is_decoded_at_once(groups: int, most: int) -> None:
    found = taken(decoded((group(100 * number, number % 7) for number in range(groups)), most))

    assert found == [100 * number + place for number in range(groups) for place in range(number % 7)]


def test_row_groups_are_decoded_at_the_same_time_when_there_are_several() -> None:
    together = threading.Barrier(2)

    def meeting(first: int, _: bool) -> Batches:
        together.wait(LIMIT_S)
        yield batch(first)

    assert taken(decoded((RowGroup(1, partial(meeting, number)) for number in range(2)), 2)) == [0, 1]


@pytest.mark.parametrize("groups", [1, 2])
def test_row_group_is_decoded_by_who_takes_it_when_no_other_fits_beside_it(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "UNDER_WAY_BYTES", 1)
    found: list[tuple[int, bool]] = []

    def telling(by_itself: bool) -> Batches:
        found.append((threading.get_ident(), by_itself))
        yield batch(0)

    assert taken(decoded([RowGroup(1, telling)] * groups, 16)) == [0] * groups
    assert found == [(threading.get_ident(), True)] * groups


def test_what_is_decoded_in_its_turn_begins_when_all_before_it_was_taken() -> None:
    events: list[str] = []

    def telling(name: str, _: bool) -> Batches:
        events.append(name)
        yield batch(0)

    groups = [
        group(0, 1),
        group(1, 1),
        RowGroup(1, partial(telling, "in turn"), in_turn=True),
        group(2, 1),
        group(3, 1),
    ]
    with closing(decoded(groups, 4)) as batches:
        for _ in range(2):
            next(batches)
            assert events == []
        next(batches)
        assert events == ["in turn"]
        assert taken(batches) == [2, 3]


def test_error_comes_behind_the_batches_before_it() -> None:
    def failing(_: bool) -> Batches:
        yield batch(7)
        raise DamagedDataError("damaged")

    batches = decoded([group(0, 2), RowGroup(1, failing), group(9, 1)], 3)

    assert [next(batches).column(0)[0].as_py() for _ in range(3)] == [0, 1, 7]
    with pytest.raises(DamagedDataError, match="damaged"):
        next(batches)


class Counting:
    """Row groups of ten batches, which count what is decoded."""

    def __init__(self) -> None:
        self.decoded = [0, 0, 0]
        self.begun, self.one, self.ended = (threading.Semaphore(0) for _ in range(3))

    def group(self, number: int, large: bool = False) -> RowGroup:
        def run(_: bool) -> Batches:
            self.begun.release()
            try:
                if large:
                    yield None
                for found in numbers(10 * number, 10):
                    self.decoded[number] += 1
                    self.one.release()
                    yield found
            finally:
                self.ended.release()

        return RowGroup(1, run)


def test_nobody_decodes_further_ahead_than_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "AHEAD_BYTES", 3 * batch(0).nbytes)
    counting = Counting()
    batches = decoded((counting.group(number) for number in range(3)), 2)

    next(batches)
    assert all(counting.one.acquire(timeout=LIMIT_S) for _ in range(1 + 3 + 2))

    # One was taken, three wait to be, and each thread holds one; of the first row group one may always wait.
    assert sum(counting.decoded) <= 1 + 3 + 2 + 1
    assert taken(batches) == list(range(1, 30))


def test_nothing_is_decoded_ahead_of_a_row_group_whose_values_are_large() -> None:
    counting = Counting()
    batches = decoded([counting.group(0), counting.group(1, large=True)], 2)

    next(batches)
    assert all(counting.begun.acquire(timeout=LIMIT_S) for _ in range(2))
    assert all(counting.one.acquire(timeout=LIMIT_S) for _ in range(10))

    assert counting.decoded[1] == 0
    assert taken(batches) == list(range(1, 20))


def test_who_stops_early_ends_all_that_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "AHEAD_BYTES", 2 * batch(0).nbytes)
    counting = Counting()
    batches = decoded((counting.group(number) for number in range(3)), 2)
    next(batches)
    assert all(counting.begun.acquire(timeout=LIMIT_S) for _ in range(2))

    batches.close()

    assert all(counting.ended.acquire(timeout=LIMIT_S) for _ in range(2))
    assert sum(counting.decoded) < 30


@pytest.mark.parametrize("stopped", [0, 1, 2])
def test_nothing_is_lost_or_doubled_when_the_threads_are_stopped_by_the_exit(
    stopped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops: list[Callable[[], None]] = []

    def start(name: str, run: Callable[[], None], stop: Callable[[], None]) -> threading.Thread:
        stops.append(stop)
        return start_in_background(name, run, stop)

    monkeypatch.setattr("txntable.segments.decoding.start_in_background", start)
    batches = decoded((group(10 * number, 10) for number in range(3)), 2)
    found = [next(batches).column(0)[0].as_py() for _ in range(1 + stopped)]

    for stop in stops:
        stop()

    assert found + taken(batches) == list(range(30))


def test_nothing_is_lost_when_no_thread_may_begin_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("txntable.segments.decoding.start_in_background", refuse)

    assert taken(decoded((group(10 * number, 10) for number in range(3)), 2)) == list(range(30))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_of_a_fork_goes_on_where_its_parent_was() -> None:
    batches = decoded((group(10 * number, 10) for number in range(3)), 2)
    found = [next(batches).column(0)[0].as_py() for _ in range(5)]
    to_read, to_write = os.pipe()

    child = os.fork()
    if not child:
        try:
            os.write(to_write, bytes(taken(batches)))
        finally:
            os._exit(0)
    os.close(to_write)
    with os.fdopen(to_read, "rb") as pipe:
        rest = list(pipe.read())
    os.waitpid(child, 0)

    assert found + rest == list(range(30))
    assert found + taken(batches) == list(range(30))
