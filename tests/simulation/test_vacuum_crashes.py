"""Vacuum killed at every storage call, raced by everything else, and writers that sleep through it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.rubbish import (
    check_whole,
    data_files,
    merge,
    needed_files,
    tombstoned,
    upload_and_die,
)
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.test_crashes import (
    DAY_MS,
    abort,
    append_plain,
    committed_transfers,
    kills,
    prepared,
    recover,
    send,
    take_over,
    transfer,
)
from tests.simulation.test_vacuum import reasons, tidy_up, untidy
from txntable.compaction.vacuum_plan import Reason
from txntable.errors import (
    CommitStateUnknownError,
    TransactionAbortableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.warehouse.warehouse import Warehouse

SEGMENTS_LOG, PUBLIC_LOG = "debit/_segments/_delta_log", "debit/_delta_log"


@pytest.fixture
def ageless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too young to go: safety alone protects what is needed."""
    monkeypatch.setattr("txntable.compaction.vacuum.SMALLEST_AGE_MS", -DAY_MS)


# -- killed -----------------------------------------------------------------------------------


def test_vacuum_killed_anywhere_leaves_everything_readable_and_the_next_one_finishes() -> None:
    site = untidy()
    before = published(site.open(), "debit")

    for crashed, where in kills(site, tidy_up):
        check_whole(crashed)
        assert published(crashed.open(), "debit") == before, where

        tidy_up(crashed.open())

        assert data_files(crashed) == needed_files(crashed), where
        assert published(crashed.open(), "debit") == before, where
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where


def test_names_tombstoned_by_a_vacuum_that_died_are_still_refused_and_not_tombstoned_again() -> None:
    site = untidy()
    died = site.copy()
    with pytest.raises(ProcessKilled):
        tidy_up(died.open(on(Operation.DELETE, "", Fault.KILL_BEFORE)))
    names = tombstoned(died, "debit") | tombstoned(died, "credit")
    entries = len(died.objects_below("topics/credit/_segments/_delta_log"))

    tidy_up(died.open())

    assert names
    assert len(died.objects_below("topics/credit/_segments/_delta_log")) == entries


# -- raced ------------------------------------------------------------------------------------


def commit_debit(warehouse: Warehouse) -> None:
    """A transaction of one topic, from the first epoch to its completion."""
    producer = warehouse.producer("other")
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "more")
    producer.commit_transaction()


def append_at_least_once(warehouse: Warehouse) -> None:
    with warehouse.producer(enable_idempotence=False) as producer:
        producer.send("debit", row={"account": "plain", "amount": 1}, partition=0)


def create_again(warehouse: Warehouse) -> None:
    with suppress(UnknownTopicOrPartitionError):
        warehouse.admin().delete_topic("credit")
    warehouse.admin().create_topic("credit", partitions=2, schema=TWO_COLUMNS, key=["account"])


def merge_debit(warehouse: Warehouse) -> None:
    merge(warehouse, "debit")


RACING = [append_plain, append_at_least_once, commit_debit, abort, merge_debit, create_again]


@pytest.mark.usefixtures("ageless")
@pytest.mark.parametrize("other", RACING)
def test_nothing_dangles_wherever_a_whole_vacuum_falls_into_another_operation(
    other: Callable[[Warehouse], None],
) -> None:
    for shared in falling_into(base(), other, tidy_up):
        recover(shared)
        check_whole(shared)
        assert data_files(shared) >= needed_files(shared)


@pytest.mark.usefixtures("ageless")
@pytest.mark.parametrize("other", RACING)
def test_nothing_dangles_wherever_another_operation_falls_into_a_vacuum(other: Callable[[Warehouse], None]) -> None:
    for shared in falling_into(base(), tidy_up, other):
        recover(shared)
        check_whole(shared)


@pytest.mark.usefixtures("ageless")
def test_append_of_an_upload_that_was_tombstoned_meanwhile_is_refused_and_nothing_is_published_of_it() -> None:
    outcomes = set()
    for shared in falling_into(base(), append_at_least_once, tidy_up):
        recover(shared)
        check_whole(shared)
        outcomes.add(len(published(shared.open(), "debit")))
    assert len(outcomes) == 2, "the vacuums must fall on both sides of the append"


def committed_and_not_complete() -> Site:
    """A half is in the topic's log, the other in the decision alone."""
    site = prepared()
    die_at(site, transfer, SEGMENTS_LOG, 2)
    return site


def aborted_and_not_complete_before_its_first_append() -> Site:
    site = prepared()
    die_at(site, transfer, SEGMENTS_LOG, 1)
    die_at(site, take_over, SEGMENTS_LOG, 1)
    return site


def die_at(site: Site, operation: Callable[[Warehouse], object], log: str, occurrence: int) -> None:
    """Let a process die before it puts an entry into a log."""
    with pytest.raises(ProcessKilled):
        operation(site.open(on(Operation.PUT_IF_ABSENT, log, Fault.KILL_BEFORE, occurrence=occurrence)))


@pytest.mark.usefixtures("ageless")
@pytest.mark.parametrize("make", [committed_and_not_complete, aborted_and_not_complete_before_its_first_append])
def test_marker_that_is_owed_keeps_its_file_wherever_its_completion_falls_into_a_vacuum(
    make: Callable[[], Site],
) -> None:
    """Its file is there, and no log names it yet: a completer died in between."""
    site = make()
    (marker,) = [path for path in data_files(site) if "/debit/_segments/markers/" in path]

    for shared in falling_into(site, tidy_up, Warehouse.complete):
        recover(shared)
        check_whole(shared)
        assert marker in data_files(shared)


@pytest.mark.usefixtures("ageless")
def test_segments_that_a_decision_carries_are_kept_wherever_its_completion_falls_into_a_vacuum() -> None:
    """No log of a topic names them: only the row of a decision that is not complete."""
    site = committed_and_not_complete()
    segments = [path for path in data_files(site) if "/_segments/p" in path]

    for shared in falling_into(site, tidy_up, Warehouse.complete):
        recover(shared)
        check_whole(shared)
        assert set(segments) <= set(data_files(shared))
        assert len(published(shared.open(), "debit")) == 6, "all records of both flushes"


def test_projection_that_sleeps_at_its_put_publishes_nothing_that_was_deleted_meanwhile() -> None:
    """Vacuum has brought the public table further, though there was nothing to tombstone: the slot is taken."""
    site = prepared()
    writer = site.open()

    def sleep() -> None:
        die_at(site, lambda dying: dying.admin().delete_topic("debit"), PUBLIC_LOG, 1)
        site.advance_ms(8 * DAY_MS)
        tidy_up(site.open())

    sleep_before(writer, PUBLIC_LOG, sleep)
    append_plain(writer)

    assert not [path for path in data_files(site) if "/debit/_segments/p" in path]
    check_whole(site)


def test_removed_file_is_retained_from_the_moment_at_which_its_removal_landed() -> None:
    """The removal bears the time at which it was decided; its version came minutes later."""
    site = prepared()
    append_plain(site.open())
    append_plain(site.open())
    merger = site.open()
    sleep_before(merger, PUBLIC_LOG, lambda: site.advance_ms(4 * 60_000))
    merge(merger, "debit")
    entry = max(path for path in site.objects_below("topics/debit/_delta_log") if path.endswith(".json"))
    retained_until_ms = site.objects_below("topics/debit/_delta_log")[entry].last_modified_ms + 30 * DAY_MS
    site.advance_ms(retained_until_ms - site.objects.clock())

    report = tidy_up(site.open())

    assert reasons(report)[Reason.RETAINED] == 2


def base() -> Site:
    """Two transactions, one aborted, and an upload that nobody appends."""
    site = prepared()
    transfer(site.open())
    abort(site.open())
    upload_and_die(site, "debit")
    return site


def falling_into(site: Site, outer: Callable[[Warehouse], object], inner: Callable[[Warehouse], object]):
    """Every site in which `inner` was done as a whole before one storage call of `outer`."""
    trial = site.copy()
    warehouse = trial.open()
    assert isinstance(warehouse.store, SteppingStore)
    outer(warehouse)
    for number in range(1, len(warehouse.store.steps) + 1):
        shared = site.copy()
        first, second = shared.open(), shared.open()
        assert isinstance(first.store, SteppingStore)

        def intrude(step: Step, number: int = number, second: Warehouse = second) -> None:
            if step.number == number:
                with suppress(TxnTableError):
                    inner(second)

        first.store.on_step = intrude
        with suppress(TxnTableError):
            outer(first)
        yield shared


# -- slow writers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transactional", "forgotten", "refused"),
    [(False, False, True), (False, True, True), (True, False, False), (True, True, True)],
)
@pytest.mark.parametrize("idempotent", [False, True])
def test_writer_that_sleeps_between_upload_and_append_is_refused_unless_nothing_was_tombstoned(
    transactional: bool, forgotten: bool, refused: bool, idempotent: bool
) -> None:
    """Also when S has forgotten meanwhile which names were tombstoned; a current epoch's are not."""
    site = prepared()
    writer = site.open()

    def sleep() -> None:
        site.advance_ms(8 * DAY_MS)
        tidy_up(site.open())
        if forgotten:
            site.advance_ms(4 * DAY_MS)
            other = site.open()
            append_plain(other)
            other.topic_log("debit").segments.write_checkpoint()

    producer = writer.producer("slow") if transactional else writer.producer(enable_idempotence=idempotent)
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()
    producer.send("debit", row={"account": "slow", "amount": 1}, partition=0)
    sleep_before(writer, SEGMENTS_LOG, sleep)
    with pytest.raises(TransactionAbortableError) if refused else nullcontext():
        producer.flush()

    assert "slow" not in [row["account"] for row in published(recover(site), "debit")]
    check_whole(site)


def sleep_before(writer: Warehouse, log: str, sleep: Callable[[], None]) -> None:
    """Let a process sleep once, before it puts an entry into a log."""
    store = writer.store
    assert isinstance(store, SteppingStore)

    def pause(step: Step) -> None:
        if step.operation is Operation.PUT_IF_ABSENT and log in step.path:
            store.on_step = None
            sleep()

    store.on_step = pause


def test_append_of_unknown_outcome_is_answered_when_its_segment_was_merged_away_since() -> None:
    site = prepared()
    append_plain(site.open())
    writer = site.open()
    assert isinstance(writer.store, SteppingStore)
    store = writer.store

    def lose_every_answer(step: Step) -> None:
        if step.operation is Operation.PUT_IF_ABSENT and SEGMENTS_LOG in step.path:
            store.plan = (
                on(Operation.PUT_IF_ABSENT, SEGMENTS_LOG, Fault.LOST_ANSWER, occurrence=None),
                on(Operation.GET, SEGMENTS_LOG, Fault.FAIL_BEFORE, occurrence=None),
            )

    producer = writer.producer()
    sent = producer.send("debit", row={"account": "again", "amount": 1}, partition=0)
    store.on_step = lose_every_answer
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    store.plan, store.on_step = (), None
    merge(site.open(), "debit")

    producer.flush()

    assert sent.offset == 1
    assert [row["account"] for row in published(site.open(), "debit")] == ["plain", "again"]
