"""A member's life: heartbeats in the background, polls that do not come, threads that end."""

from __future__ import annotations

import gc
import threading

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.running_threads import all_ended, running
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from tests.unit.consumer.members import BEAT_MS, GROUP, RAW, SESSION_MS, member, numbers, settle
from txntable.consumer.consumer import Consumer
from txntable.errors import StorePermissionError, UnknownMemberIdError
from txntable.groups.heartbeat_thread import HeartbeatThread
from txntable.groups.membership import Membership

MAX_POLL_MS = 300_000


def membership_of(consumer: Consumer) -> Membership:
    assert consumer._session._place.membership is not None
    return consumer._session._place.membership


def beats(site: Site) -> int:
    return sum(1 for path in site.objects_below("system/heartbeats"))


# -- in the background ----------------------------------------------------------------------


def test_nothing_is_done_in_the_background_of_who_is_no_member(site: Site) -> None:
    consumer = member(site)

    assert membership_of(consumer).tend_in_background() is None
    assert beats(site) == 0


@pytest.mark.parametrize(("passed_ms", "rest_ms", "written"), [(0, 3_000, 0), (2_999, 1, 0), (3_000, 3_000, 1)])
def test_heartbeat_is_due_when_its_interval_has_passed(site: Site, passed_ms: int, rest_ms: int, written: int) -> None:
    consumer = member(site)
    consumer.poll()
    site.advance_ms(passed_ms)

    assert membership_of(consumer).tend_in_background() == rest_ms
    assert beats(site) == written


def test_session_lives_while_the_user_works_and_ends_when_no_poll_comes(site: Site) -> None:
    consumer, other = member(site), member(site)
    settle(site, consumer, other)
    for _ in range(MAX_POLL_MS // BEAT_MS):
        site.advance_ms(BEAT_MS)
        membership_of(consumer).tend_in_background()
        other.poll()
    assert len(numbers(other)) == 1

    site.advance_ms(BEAT_MS)
    assert membership_of(consumer).tend_in_background() is None
    site.advance_ms(BEAT_MS)
    other.poll()

    assert numbers(other) == [0, 1], "it left by itself"
    with pytest.raises(UnknownMemberIdError):
        consumer.commit(dict.fromkeys(consumer.assignment(), 0))


def test_release_and_assignment_wait_for_the_next_poll(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    member(site).poll()
    site.advance_ms(BEAT_MS)

    membership_of(consumer).tend_in_background()

    assert numbers(consumer) == [0, 1]
    consumer.poll()
    assert len(numbers(consumer)) == 1


def test_background_expels_who_is_dead_while_the_user_works(site: Site) -> None:
    member(site).poll()
    consumer = member(site)
    consumer.read_arrow()
    for _ in range((SESSION_MS + 20_000) // BEAT_MS):
        site.advance_ms(BEAT_MS)
        membership_of(consumer).tend_in_background()

    offsets = site.open().offsets
    offsets.refresh()
    row = offsets.group(GROUP)

    assert row is not None
    assert len(row.members) == 1
    consumer.poll()
    assert numbers(consumer) == [0, 1]


def test_who_joins_after_the_only_member_has_died_has_its_partitions_at_once(site: Site) -> None:
    member(site).poll()
    site.advance_ms(SESSION_MS + 1_000)
    consumer = member(site)

    consumer.poll()

    assert numbers(consumer) == [0, 1]


def test_who_joins_while_the_store_does_not_tell_who_lives_is_a_member_all_the_same(site: Site) -> None:
    member(site).poll()
    site.advance_ms(SESSION_MS + 1_000)
    consumer = member(site.open(on(Operation.HEAD, "system/heartbeats", Fault.FAIL_BEFORE, occurrence=None)))

    consumer.poll()

    assert membership_of(consumer).assignment is not None
    assert numbers(consumer) == []


def test_who_leaves_takes_its_heartbeat_away(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    site.advance_ms(BEAT_MS)
    consumer.poll()
    assert beats(site) == 1

    consumer.close()

    assert beats(site) == 0


def test_leave_that_fails_is_left_to_the_session_timeout(site: Site) -> None:
    warehouse = site.open()
    consumer = member(warehouse)
    consumer.poll()
    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.plan = (on(Operation.PUT_IF_ABSENT, "offset_log", Fault.FAIL_BEFORE, occurrence=None),)

    consumer.close()

    assert consumer.is_closed


# -- the thread -----------------------------------------------------------------------------


def test_thread_tends_again_when_it_is_woken_and_ends_when_it_is_stopped() -> None:
    tended, others = threading.Semaphore(0), running("txntable-heartbeat")

    def tend() -> None:
        tended.release()

    thread = HeartbeatThread(tend)
    for _ in range(2):
        thread.wake()
        assert tended.acquire(timeout=60)

    thread.stop()
    assert all_ended("txntable-heartbeat", others)
    thread.wake()

    assert not thread.is_running


def test_thread_survives_what_does_not_pass_by_itself() -> None:
    tended = threading.Semaphore(0)

    def tend() -> None:
        tended.release()
        raise StorePermissionError("these credentials may not")

    thread = HeartbeatThread(tend)
    thread.wake()
    assert tended.acquire(timeout=60)
    thread.wake()

    assert tended.acquire(timeout=60)
    thread.stop()


def test_thread_ends_without_a_word_when_the_program_does() -> None:
    # Found by processes that end while their consumers, not closed, follow a log: a traceback on their standard error.
    tended, others = threading.Semaphore(0), running("txntable-heartbeat")

    def tend() -> None:
        tended.release()
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    thread = HeartbeatThread(tend)
    thread.wake()
    assert tended.acquire(timeout=60)

    assert all_ended("txntable-heartbeat", others)


def test_thread_begins_with_the_membership_and_ends_with_the_consumer(site: Site) -> None:
    consumer = member(site, background_heartbeat=True)
    assert consumer._session.heartbeats is not None
    assert consumer._session.heartbeats._thread is None
    consumer.poll()
    thread = consumer._session.heartbeats._thread
    assert thread is not None

    consumer.close()

    thread.join(timeout=60)
    assert not thread.is_alive()


def test_thread_ends_when_the_consumer_is_dropped(site: Site) -> None:
    consumer = member(site, background_heartbeat=True)
    consumer.poll()
    assert consumer._session.heartbeats is not None
    thread = consumer._session.heartbeats._thread
    assert thread is not None

    del consumer
    gc.collect()

    thread.join(timeout=60)
    assert not thread.is_alive()


def test_assigned_partitions_need_no_heartbeat(site: Site) -> None:
    consumer = member(site, subscribed=False, background_heartbeat=True)
    consumer.assign(RAW)
    site.advance_ms(BEAT_MS)

    consumer.poll()

    assert beats(site) == 0
    assert consumer._session.heartbeats is not None
    assert consumer._session.heartbeats._thread is None
