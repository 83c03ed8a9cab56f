"""Objects that are fetched ahead: their order, what is under way at once, failures in their turn, early ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, Rule, on
from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.errors import DamagedDataError, StoreUnavailableError, TxnTableError
from txntable.storage.object_reader import WHOLE_BYTES
from txntable.storage.read_window import ReadWindow, readers_ahead

PARALLEL = 4
TEN = [bytes([number]) * 100 for number in range(10)]


class AtOnce(Executor):
    """Does what it is given before it returns, but for what is behind the first few: that never begins."""

    def __init__(self, most: int = 1_000) -> None:
        self.given: list[Future[Any]] = []
        self._most = most

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append(future)
        if len(self.given) <= self._most:
            try:
                future.set_result(call(*args, **kwargs))
            except TxnTableError as error:
                future.set_exception(error)
        return future


class Shut(Executor):
    """Takes nothing any more, as every pool does when the process ends."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")


def store_with(objects: list[bytes], *plan: Rule, parallel: int = PARALLEL) -> SteppingStore:
    inner = MemoryStore()
    for number, data in enumerate(objects):
        inner.put(f"o{number}", data)
    store = SteppingStore(inner, plan)
    store.parallel_reads = parallel
    return store


def named(objects: list[bytes]) -> list[tuple[str, int]]:
    return [(f"o{number}", len(data)) for number, data in enumerate(objects)]


def as_many_as_fit(sizes: list[int], most_bytes: int, parallel: int) -> list[int]:
    fitting = 1
    while fitting < min(parallel, len(sizes)) and sum(sizes[: fitting + 1]) <= most_bytes:
        fitting += 1
    return sizes[:fitting]


@given(
    sizes=st.lists(st.integers(1, 300), max_size=30),
    most_bytes=st.integers(0, 1_000),
    parallel=st.integers(1, 6),
)
def test_objects_come_in_their_order_and_as_much_is_under_way_as_may_be(
    sizes: list[int], most_bytes: int, parallel: int
) -> None:
    objects = [bytes([number]) * size for number, size in enumerate(sizes)]
    store = store_with(objects, parallel=parallel)
    found: list[bytes] = []

    for reader in readers_ahead(store, named(objects), ReadWindow(most_bytes, AtOnce())):
        found.append(reader.read())
        # The one that is read counts until the next one is asked for.
        asked = sizes[len(found) - 1 : len(store.steps)]
        assert asked == as_many_as_fit(sizes[len(found) - 1 :], most_bytes, parallel)

    assert found == objects
    assert [step.path for step in store.steps] == [path for path, _ in named(objects)], "each is asked for once"


def test_as_many_are_under_way_as_the_store_says_before_the_first_is_read() -> None:
    store = store_with(TEN)

    readers = readers_ahead(store, named(TEN), ReadWindow(pool=AtOnce()))
    next(readers)
    assert len(store.steps) == PARALLEL
    next(readers)

    assert len(store.steps) == PARALLEL + 1


def test_large_objects_are_not_fetched_ahead_but_for_their_ends() -> None:
    large = bytes(range(251)) * (WHOLE_BYTES // 250)
    store = store_with([b"small", large, large])
    objects = [("o0", 5), ("o1", len(large)), ("o2", len(large))]
    fetched: list[int] = []
    ranges = store.get_range

    def counted(path: str, start: int, length: int) -> bytes | None:
        found = ranges(path, start, length)
        fetched.append(len(found or b""))
        return found

    store.get_range = counted  # type: ignore[method-assign]
    readers = readers_ahead(store, objects, ReadWindow(pool=AtOnce()))

    assert next(readers).read() == b"small"
    assert fetched == [5, 64 * 1024, 64 * 1024]
    assert next(readers).read() == large


def test_one_object_alone_is_read_without_a_thread() -> None:
    pool = AtOnce()

    assert [reader.read() for reader in readers_ahead(store_with(TEN), named(TEN[:1]), ReadWindow(pool=pool))] == TEN[
        :1
    ]
    assert pool.given == []


@pytest.mark.parametrize("window", [None, ReadWindow(0, AtOnce()), ReadWindow(pool=Shut())])
def test_objects_are_read_in_their_turn_where_nothing_may_be_under_way(window: ReadWindow | None) -> None:
    store = store_with(TEN)
    asked: list[int] = []

    for reader in readers_ahead(store, named(TEN), window):
        reader.read()
        asked.append(len(store.steps))

    assert asked == list(range(1, 11))


# -- failures -------------------------------------------------------------------------------


def test_failure_is_met_in_its_turn_and_not_before() -> None:
    store = store_with(TEN, on(Operation.GET, "o2", Fault.FAIL_BEFORE, occurrence=None))
    readers = readers_ahead(store, named(TEN), ReadWindow(pool=AtOnce()))

    assert [next(readers).read() for _ in range(2)] == TEN[:2]
    with pytest.raises(StoreUnavailableError):
        next(readers).read()


def test_object_that_is_gone_is_damage_in_its_turn() -> None:
    readers = readers_ahead(store_with(TEN), [("o0", 100), ("gone", 100), ("o1", 100)], ReadWindow(pool=AtOnce()))

    assert next(readers).read() == TEN[0]
    with pytest.raises(DamagedDataError, match="path=gone"):
        next(readers).read()


def test_request_that_fails_ahead_of_its_turn_only_is_nobodys_failure() -> None:
    store = store_with(TEN, on(Operation.GET, "o2", Fault.FAIL_BEFORE), on(Operation.GET, "o3", Fault.FAIL_BEFORE))

    assert [reader.read() for reader in readers_ahead(store, named(TEN), ReadWindow(pool=AtOnce()))] == TEN


def test_request_ahead_of_its_turn_is_not_made_again_and_waits_for_nothing() -> None:
    store = store_with(TEN, on(Operation.GET, "o2", Fault.FAIL_BEFORE, occurrence=None))
    environment = ManualEnvironment()
    store.retries = environment
    began = environment.instant()

    readers = readers_ahead(store, named(TEN), ReadWindow(pool=AtOnce()))
    assert [next(readers).read() for _ in range(2)] == TEN[:2]

    assert [step.path for step in store.steps].count("o2") == 1
    assert environment.since_ms(began) == 0
    with pytest.raises(StoreUnavailableError):
        next(readers).read()
    assert environment.since_ms(began) >= store.retry_timeout_ms


# -- early ends -----------------------------------------------------------------------------


def test_end_before_the_last_object_cancels_what_has_not_begun() -> None:
    pool = AtOnce(most=2)
    readers = readers_ahead(store_with(TEN), named(TEN), ReadWindow(pool=pool))
    next(readers)

    readers.close()

    assert [future.cancelled() for future in pool.given] == [False, False, True, True]


@pytest.mark.parametrize("taken", [1, 10])
def test_threads_of_its_own_end_with_the_read(taken: int) -> None:
    store = MemoryStore()
    store.parallel_reads = PARALLEL
    for number, data in enumerate(TEN):
        store.put(f"o{number}", data)
    before = set(threading.enumerate())

    readers = readers_ahead(store, named(TEN), ReadWindow())
    assert [next(readers).read() for _ in range(taken)] == TEN[:taken]
    begun = [thread for thread in threading.enumerate() if thread not in before]
    readers.close()

    assert 0 < len(begun) <= PARALLEL
    assert not any(thread.is_alive() for thread in begun)


def test_pool_that_is_shut_meanwhile_leaves_the_rest_to_their_turns() -> None:
    store = MemoryStore()
    store.parallel_reads = PARALLEL
    for number, data in enumerate(TEN):
        store.put(f"o{number}", data)
    pool = ThreadPoolExecutor(1)
    readers = readers_ahead(store, named(TEN), ReadWindow(pool=pool))
    found = [next(readers).read()]

    pool.shutdown(wait=False, cancel_futures=True)

    assert found + [reader.read() for reader in readers] == TEN


def test_copy_of_a_fork_waits_for_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child the requests that were under way are never answered."""
    readers = readers_ahead(store_with(TEN), named(TEN), ReadWindow(pool=AtOnce(most=2)))
    found = [next(readers).read()]

    monkeypatch.setattr("txntable.storage.read_window.is_own", lambda made_in: False)

    assert found + [reader.read() for reader in readers] == TEN
