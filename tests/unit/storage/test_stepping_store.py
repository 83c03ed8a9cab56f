"""The stepping store does what its plan says: every crash test stands on it."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, Rule, Step, at, on
from tests.doubles.manual_environment import START_MS, ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import ProcessKilled, SteppingStore, crash_points
from txntable.errors import InvalidRequestError, StorePermissionError, StoreUnavailableError
from txntable.storage.object_store import ObjectStore, PutOutcome


def take(store: ObjectStore, path: str) -> None:
    store.put(path, b"another's")


def stored(store: ObjectStore) -> bytes | None:
    found = store.get("a")
    return None if found is None else found.data


def do(store: ObjectStore, operation: Operation) -> object:
    match operation:
        case Operation.PUT:
            return store.put("a", b"mine")
        case Operation.WRITE:
            with store.writer("a") as file:
                file.write(b"mine")
            return None
    return store.put_if_absent("a", b"mine")


@pytest.mark.parametrize("operation", [Operation.PUT, Operation.PUT_IF_ABSENT, Operation.WRITE])
@pytest.mark.parametrize(
    ("fault", "raised", "done"),
    [
        (Fault.FAIL_BEFORE, StoreUnavailableError, False),
        (Fault.LOST_ANSWER, StoreUnavailableError, True),
        (Fault.LATE_LANDING, StoreUnavailableError, False),
        (Fault.KILL_BEFORE, ProcessKilled, False),
        (Fault.KILL_AFTER, ProcessKilled, True),
    ],
)
def test_write_meets_its_fault(operation, fault, raised, done):
    inner = MemoryStore()
    store = SteppingStore(inner, [at(1, fault)])

    with pytest.raises(raised):
        do(store, operation)

    assert (inner.get("a") is not None) == done
    assert store.steps == [Step(1, operation, "a", raised.__name__)]


@pytest.mark.parametrize(
    ("fault", "outcome", "expected"),
    [
        (Fault.EXISTS_LOST, PutOutcome.EXISTS, b"mine"),
        (Fault.CONFLICT_409, PutOutcome.EXISTS, None),
        (Fault.TAKEN, PutOutcome.EXISTS, b"another's"),
        (None, PutOutcome.CREATED, b"mine"),
    ],
)
def test_put_if_absent_is_answered_by_the_plan(fault, outcome, expected):
    inner = MemoryStore()
    plan = [] if fault is None else [at(1, fault, intruder=take)]

    assert SteppingStore(inner, plan).put_if_absent("a", b"mine") is outcome
    assert stored(inner) == expected


@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER])
def test_every_call_raises_once_the_process_was_killed(fault):
    store = SteppingStore(MemoryStore(), [at(1, fault)])
    with pytest.raises(ProcessKilled):
        store.put("a", b"")

    for call in (store.get, store.head, store.list, store.writer, lambda path: store.delete([path])):
        with pytest.raises(ProcessKilled):
            call("a")
    assert store.killed


def test_stream_open_at_the_kill_leaves_nothing():
    inner = MemoryStore()
    store = SteppingStore(inner)
    file = store.writer("a")
    file.write(b"x")

    store.kill()

    with pytest.raises(ProcessKilled):
        file.close()
    assert inner.get("a") is None


@pytest.mark.parametrize(("lands_at", "absent_until"), [(3, 2), (2, 1)])
def test_late_write_lands_before_its_step(lands_at, absent_until):
    store = SteppingStore(MemoryStore(), [at(1, Fault.LATE_LANDING, lands_at=lands_at)])
    with pytest.raises(StoreUnavailableError):
        store.put_if_absent("a", b"late")

    found = [store.get("a") is not None for _ in range(3)]

    assert found == [number > absent_until for number in range(2, 5)]


def test_late_put_if_absent_is_lost_when_another_was_quicker():
    inner = MemoryStore()
    store = SteppingStore(inner, [at(1, Fault.LATE_LANDING)])
    with pytest.raises(StoreUnavailableError):
        store.put_if_absent("a", b"late")
    take(inner, "a")

    store.land()

    assert stored(inner) == b"another's"


def test_late_write_lands_after_the_process_died():
    inner = MemoryStore()
    store = SteppingStore(inner, [at(1, Fault.LATE_LANDING), at(2, Fault.KILL_BEFORE)])
    with pytest.raises(StoreUnavailableError):
        store.put("a", b"late")
    with pytest.raises(ProcessKilled):
        store.get("a")

    store.land()

    assert stored(inner) == b"late"


def test_one_late_write_lands_before_an_older_one():
    store = SteppingStore(MemoryStore(), [at(number, Fault.LATE_LANDING) for number in (1, 2)])
    for path in "ab":
        with pytest.raises(StoreUnavailableError):
            store.put(path, b"")

    landed = store.land(1)

    assert ([step.path for step in landed], store.late) == (["b"], 1)
    assert [store.get(path) is not None for path in "ab"] == [False, True]


def test_duplicate_of_a_put_replaces_what_came_after_it():
    inner = MemoryStore()
    store = SteppingStore(inner, [at(1, Fault.DUPLICATE, lands_at=3)])
    store.put("a", b"first")
    store.put("a", b"second")

    found = stored(store)

    assert found == b"first"


def test_duplicate_of_a_put_if_absent_changes_nothing_while_the_object_is_there():
    store = SteppingStore(MemoryStore(), [at(1, Fault.DUPLICATE)])
    created = store.put_if_absent("a", b"first")

    store.land()

    assert (created, stored(store)) == (PutOutcome.CREATED, b"first")


def test_duplicate_of_a_delete_takes_what_was_made_since():
    store = SteppingStore(MemoryStore(), [at(2, Fault.DUPLICATE)])
    store.put("a", b"first")
    store.delete(["a"])
    store.put("a", b"second")

    store.land()

    assert stored(store) is None


def test_slow_call_is_done_before_the_time_passes_and_answered_after_it():
    inner = MemoryStore()
    seen: list[bytes | None] = []
    rule = Rule(Fault.SLOW, lambda step: True, meanwhile=lambda: seen.append(stored(inner)))

    SteppingStore(inner, [rule]).put("a", b"mine")

    assert seen == [b"mine"]


def test_process_killed_during_a_slow_call_gets_no_answer():
    store = SteppingStore(MemoryStore())
    store.plan = (Rule(Fault.SLOW, lambda step: True, meanwhile=store.kill),)

    with pytest.raises(ProcessKilled):
        store.get("a")


def test_stale_list_misses_what_is_new_and_shows_what_was_just_deleted():
    environment = ManualEnvironment()
    inner = MemoryStore(MemoryObjects(StoreTime(environment)))
    store = SteppingStore(inner, [Rule(Fault.STALE_LIST, lambda step: step.number == 1, age_ms=1000)])
    for path in ("a/gone", "a/long-gone", "a/stays"):
        inner.put(path, b"")
    inner.delete(["a/long-gone"])
    environment.advance_ms(1500)
    inner.delete(["a/gone"])
    inner.put("a/new", b"")

    stale, fresh = ([meta.path for meta in store.list("a")] for _ in range(2))

    assert (stale, fresh) == (["a/gone", "a/stays"], ["a/new", "a/stays"])


def test_bulk_delete_that_fails_in_part_deletes_the_others():
    inner = MemoryStore()
    store = SteppingStore(inner, [at(2, Fault.FAIL_BEFORE)])
    for path in "abc":
        inner.put(path, b"")

    with pytest.raises(StoreUnavailableError):
        store.delete_unordered(["a", "b", "c"])

    assert sorted(inner.objects.snapshot()) == ["b"]


def test_forecast_is_asked_where_no_rule_of_the_plan_fits():
    fail = Rule(Fault.FAIL_BEFORE, lambda step: True)
    inner = MemoryStore()
    store = SteppingStore(inner, [at(1, Fault.LOST_ANSWER)], forecast=lambda step: fail)

    for path in "ab":
        with pytest.raises(StoreUnavailableError):
            store.put(path, b"")

    assert [path for path in "ab" if inner.get(path) is not None] == ["a"]


def test_rule_picks_the_occurrence_of_operation_and_path():
    store = SteppingStore(MemoryStore(), [on(Operation.GET, "log/", Fault.FAIL_BEFORE, occurrence=2)])

    store.get("log/1")
    store.get("other")
    store.head("log/1")
    with pytest.raises(StoreUnavailableError):
        store.get("log/2")
    store.get("log/3")

    assert [step.outcome for step in store.steps] == ["none", "none", "none", "StoreUnavailableError", "none"]


def test_rule_without_occurrence_fits_each_step():
    store = SteppingStore(MemoryStore(), [on(None, str.isalpha, Fault.FAIL_BEFORE, occurrence=None)])

    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            store.get("a")
    assert store.get("a/1") is None


@pytest.mark.parametrize(
    "rule",
    [
        at(1, Fault.EXISTS_LOST),
        at(1, Fault.CONFLICT_409),
        at(1, Fault.TAKEN),
        at(1, Fault.LATE_LANDING),
        at(1, Fault.DUPLICATE),
        at(1, Fault.STALE_LIST),
    ],
)
def test_plan_is_refused_when_the_step_can_not_meet_its_fault(rule: Rule):
    with pytest.raises(InvalidRequestError):
        SteppingStore(MemoryStore(), [rule]).get("a")


def test_every_call_is_one_step_and_counts_as_its_request():
    store = SteppingStore(MemoryStore())

    store.put("a", b"")
    store.put_if_absent("b", b"")
    with store.writer("w") as file:
        file.write(b"mine")
    store.get_many(["a", "b", "none"])
    store.head("a")
    list(store.list(""))
    store.delete(["a", "b"])

    assert [step.number for step in store.steps] == list(range(1, 10 + 1))
    assert store.requests == {"PUT": 3, "GET": 3, "HEAD": 1, "LIST": 1, "DELETE": 2}


def test_scheduler_interleaves_two_processes_at_a_step():
    inner = MemoryStore()
    other = SteppingStore(inner)
    store = SteppingStore(inner, on_step=lambda step: other.put_if_absent("a", b"other") if step.number == 2 else None)

    absent = store.get("a")
    outcome = store.put_if_absent("a", b"mine")

    assert (absent, outcome) == (None, PutOutcome.EXISTS)
    assert stored(inner) == b"other"


def test_scheduler_kills_the_process_before_the_step_is_done():
    inner = MemoryStore()
    stores: list[SteppingStore] = []
    stores.append(SteppingStore(inner, on_step=lambda _: stores[0].kill()))

    with pytest.raises(ProcessKilled):
        stores[0].put("a", b"")

    assert inner.get("a") is None


def test_crash_points_cover_each_step_before_and_after():
    def operation(store: ObjectStore) -> None:
        store.put("a", b"")
        store.put("b", b"")

    left = []
    for point in crash_points(operation, MemoryStore):
        inner = MemoryStore()
        with pytest.raises(ProcessKilled):
            operation(SteppingStore(inner, point.plan))
        left.append(sorted(inner.objects.snapshot()))

    assert left == [[], ["a"], ["a"], ["a", "b"]]


def test_views_share_their_objects_and_the_stores_clock():
    environment = ManualEnvironment()
    time = StoreTime(environment)
    objects = MemoryObjects(time)
    MemoryStore(objects).put("a", b"")
    environment.advance_ms(500)
    time.skew_ms = 20
    MemoryStore(objects).put("b", b"")

    assert [meta.last_modified_ms for meta in MemoryStore(objects).list("")] == [START_MS, START_MS + 520]


def test_read_only_store_reads_and_refuses_every_write():
    inner = MemoryStore()
    inner.put("a", b"1")
    store = ReadOnlyStore(inner)

    assert stored(store) == b"1"
    assert store.get_many(["a", "b"])[1] is None
    assert store.head("a") is not None
    assert [meta.path for meta in store.list("")] == ["a"]
    for call in (
        lambda: store.put("b", b""),
        lambda: store.put_if_absent("b", b""),
        lambda: store.delete([]),
        lambda: store.writer("b"),
    ):
        with pytest.raises(StorePermissionError):
            call()
    assert sorted(inner.objects.snapshot()) == ["a"]


def test_manual_environment_owns_both_clocks():
    environment = ManualEnvironment()
    begun = environment.instant()

    environment.sleep_ms(100)
    environment.advance_wall_ms(-1000)
    assert environment.since_ms(begun) == 100
    environment.advance_wall_ms(5000)
    assert environment.since_ms(begun) == 4100
    environment.advance_boot_ms(9000)
    assert environment.since_ms(begun) == 9100


def test_manual_environment_repeats_itself_by_its_seed():
    def story(seed: int) -> tuple[str, str, float]:
        environment = ManualEnvironment(seed)
        return environment.new_id(), environment.new_id(), environment.uniform(0, 1)

    assert story(1) == story(1) != story(2)
    assert len(set(story(1)[:2])) == 2
    assert len(story(1)[0]) == 32
