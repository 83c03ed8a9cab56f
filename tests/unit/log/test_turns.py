"""Writers of one machine take turns at a log, so that no work is lost at its slots; nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.doubles.fault_plan import Operation
from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from tests.unit.log.world import Nothing, Process, World, creation
from txntable.log.actions import Txn
from txntable.log.delta_log import DeltaLog
from txntable.log.fairness import (
    COMMITS_WITHOUT_TURN,
    LONGEST_PAUSE_MS,
    LONGEST_WAIT_MS,
    LOOK_MS,
    PATIENCE_MS,
    Fairness,
)
from txntable.log.log_view import LogContext
from txntable.log.outcome import Committed
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.storage.store_clock import StoreClock


@contextmanager
def granted() -> Iterator[bool]:
    yield True


class Turns:
    """Refuses the turn so many times before it grants it."""

    def __init__(self, refusals: float) -> None:
        self.refusals, self.asked = refusals, 0

    def ask(self, folder: str = "") -> AbstractContextManager[bool] | None:
        self.asked += 1
        return granted() if self.asked > self.refusals else None


def nothing_came() -> bool:
    return False


def test_free_turn_is_taken_at_once() -> None:
    environment, turns = ManualEnvironment(), Turns(0)
    began = environment.instant()

    with Fairness(environment).turn(turns.ask, nothing_came) as have_others_committed:
        assert not have_others_committed

    assert (turns.asked, environment.since_ms(began)) == (1, 0)


def test_writer_that_had_to_wait_for_its_turn_looks_for_what_others_committed() -> None:
    with Fairness(ManualEnvironment()).turn(Turns(3).ask, nothing_came) as have_others_committed:
        assert have_others_committed


def test_writer_that_has_seen_others_looks_although_its_turn_was_free() -> None:
    fairness = Fairness(ManualEnvironment())
    fairness.saw_another()

    with fairness.turn(Turns(0).ask, nothing_came) as have_others_committed:
        assert have_others_committed


def test_stopped_process_that_has_the_turn_holds_others_up_once_and_not_for_long() -> None:
    environment, turns = ManualEnvironment(), Turns(float("inf"))
    fairness, began = Fairness(environment), environment.instant()

    with fairness.turn(turns.ask, nothing_came):
        waited_ms = environment.since_ms(began)
    asked = turns.asked
    for _ in range(COMMITS_WITHOUT_TURN):
        with fairness.turn(turns.ask, nothing_came):
            pass

    assert PATIENCE_MS <= waited_ms <= PATIENCE_MS + 2 * LONGEST_PAUSE_MS
    assert environment.since_ms(began) == waited_ms
    assert turns.asked == asked


def test_writer_that_sees_others_commit_waits_on_for_its_turn_but_not_for_ever() -> None:
    environment, turns = ManualEnvironment(), Turns(float("inf"))
    began = environment.instant()

    with Fairness(environment).turn(turns.ask, lambda: True) as have_others_committed:
        waited_ms = environment.since_ms(began)

    assert have_others_committed
    assert LONGEST_WAIT_MS <= waited_ms <= LONGEST_WAIT_MS + 2 * LONGEST_PAUSE_MS


def test_patience_counts_from_the_last_entry_that_came() -> None:
    environment, turns = ManualEnvironment(), Turns(float("inf"))
    began, came_at_ms = environment.instant(), 0.9 * PATIENCE_MS

    def look() -> bool:
        return environment.since_ms(began) <= came_at_ms

    with Fairness(environment).turn(turns.ask, look):
        waited_ms = environment.since_ms(began)

    assert (
        came_at_ms + PATIENCE_MS - LOOK_MS - 2 * LONGEST_PAUSE_MS
        <= waited_ms
        <= came_at_ms + PATIENCE_MS + 4 * LONGEST_PAUSE_MS
    )


def test_wait_for_a_turn_ends_when_what_it_is_for_is_done_and_the_next_one_asks_again() -> None:
    environment, turns, looks = ManualEnvironment(), Turns(float("inf")), []
    fairness = Fairness(environment)

    def look() -> bool:
        looks.append(1)
        return True

    with fairness.turn(turns.ask, look, lambda: len(looks) == 3):
        asked = turns.asked
    with fairness.turn(turns.ask, nothing_came, lambda: True):
        pass

    assert (asked, len(looks)) == (4, 3)
    assert turns.asked == asked + 1


def test_turn_is_asked_for_again_after_so_many_commits() -> None:
    turns = Turns(float("inf"))
    fairness = Fairness(ManualEnvironment())
    for _ in range(1 + COMMITS_WITHOUT_TURN):
        with fairness.turn(turns.ask, nothing_came):
            pass
    turns.refusals = 0

    with fairness.turn(turns.ask, nothing_came) as have_others_committed:
        assert not have_others_committed


def test_commit_is_decided_once_where_another_has_committed_before_its_turn() -> None:
    world = World()
    first, second = world.process(), world.process()
    first.create()
    second.log.refresh()
    second.store.turn = Turns(1).ask  # type: ignore[method-assign]
    first.count()
    decided = []

    outcome = second.log.commit("COUNT", lambda table: decided.append(table.version) or [Txn("counter", 2)])  # type: ignore[func-returns-value]

    assert isinstance(outcome, Committed)
    assert decided == [1]


def test_writer_that_waits_for_its_turn_reads_what_comes_meanwhile() -> None:
    world = World()
    first, second = world.process(), world.process()
    first.create()
    second.log.refresh()
    turns, known = Turns(20), []

    def ask(folder: str) -> AbstractContextManager[bool] | None:
        known.append(second.log.table.version)
        if turns.asked in (1, 12):
            first.count()
        return turns.ask()

    second.store.turn = ask  # type: ignore[method-assign]

    second.count()

    assert (known[0], known[-1]) == (0, 2)


def test_two_processes_on_a_local_folder_lose_no_commit_and_no_work(tmp_path: Path) -> None:
    logs, attempts = [], []
    for number in range(2):
        environment = ManualEnvironment(seed=number)
        store = LocalFolder(StoreSpec(str(tmp_path), {}, "page-cache"))
        context = LogContext(store, environment, StoreClock(store, environment))
        logs.append(DeltaLog(context, "table", Nothing()))
    logs[0].commit("CREATE", lambda table: creation())
    logs[1].refresh()

    def count(table):
        attempts.append(table.version)
        return [Txn("counter", table.number("counter") + 1)]

    for number in range(40):
        logs[number % 2].commit("COUNT", count)

    assert logs[1].refresh().number("counter") == 40
    assert len(attempts) <= 40 + 2, "each had to lose once to learn of the other"


def two_processes() -> tuple[Process, RemoteStoreDouble, DeltaLog[Nothing]]:
    """A process, and another's view of the same log, on a store that is asked as a remote one is."""
    world = World()
    first = world.process()
    first.create()
    store = RemoteStoreDouble(MemoryStore(world.objects))
    environment = ManualEnvironment(seed=7)
    log = DeltaLog(LogContext(store, environment, StoreClock(store, environment)), "table", Nothing())
    log.refresh()
    return first, store, log


def test_loser_at_a_slot_of_a_remote_store_asks_for_the_winner_and_the_next_slot_at_once() -> None:
    first, store, log = two_processes()
    first.count()
    before = store.asked_at_once

    outcome = log.commit("COUNT", lambda table: [Txn("counter", table.number("counter") + 1)])

    assert isinstance(outcome, Committed)
    assert outcome.version == 2
    assert store.asked_at_once == before + 1
    puts = [index for index, step in enumerate(store.steps) if step.operation is Operation.PUT_IF_ABSENT]
    between = [step.path[-7:] for step in store.steps[puts[-2] + 1 : puts[-1]] if step.operation is Operation.GET]
    assert between == ["01.json", "02.json"]


def test_loser_that_finds_more_than_the_winner_reads_on_to_the_tail() -> None:
    first, _, log = two_processes()
    for _ in range(5):
        first.count()

    outcome = log.commit("COUNT", lambda table: [Txn("counter", table.number("counter") + 1)])

    assert isinstance(outcome, Committed)
    assert first.counter() == 6


class RemoteStoreDouble(SteppingStore):
    """A store that is asked for many objects at once, as a remote one is."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.parallel_reads, self.asked_at_once = 32, 0

    def get_many(self, paths):
        self.asked_at_once += len(paths) > 1
        return super().get_many(paths)
