"""A store's clock that was ahead for a while, and was put right: nothing waits for it that must end, and it is told."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.manual_environment import StoreTime
from tests.simulation.site import Site
from tests.unit.admin.group_members import SESSION_MS, joined
from tests.unit.admin.test_upkeep_check import Watch
from tests.unit.producer.producing import accounts, store_of
from tests.unit.upkeep.coordinating import (
    DAY_MS,
    SETTINGS,
    TIMEOUT_MS,
    committed,
    decide_only,
    opened,
    run_once,
    state_of,
)
from txntable.admin.upkeep import Duty
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidTxnStateError
from txntable.format.layout import CLOCK_PATH
from txntable.groups.heartbeats import beat
from txntable.upkeep.transaction_coordinator import CoordinatorConfig

YEAR_MS = 365 * DAY_MS
GUARD_MS = 5 * 60_000


def set_ahead(site: Site, milliseconds: int) -> None:
    clock = site.objects.clock
    assert isinstance(clock, StoreTime)
    clock.skew_ms = milliseconds


def test_transaction_that_began_when_the_clock_was_ahead_is_ended_by_the_next_round(site: Site) -> None:
    """Bug: a dead transaction stayed open until the clock caught up, and held every reader back."""
    set_ahead(site, YEAR_MS)
    producer = opened(site.open())
    set_ahead(site, 0)

    assert run_once(site).aborted == 1

    assert state_of(site) is TransactionState.COMPLETE_ABORT
    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()


def test_clock_that_was_a_little_ahead_ends_nobody_early_and_nothing_late(site: Site) -> None:
    ahead_ms = GUARD_MS + TIMEOUT_MS
    set_ahead(site, ahead_ms)
    opened(site.open())
    set_ahead(site, 0)

    assert run_once(site).aborted == 0
    site.advance_ms(ahead_ms + TIMEOUT_MS + 1)
    assert run_once(site).aborted == 1


def test_decision_of_a_time_ahead_is_completed_by_the_job_that_runs_on(site: Site) -> None:
    """In-commit times stay ahead once one was: what is decided afterwards, too."""
    set_ahead(site, YEAR_MS)
    decide_only(warehouse := site.open(), opened(warehouse))
    set_ahead(site, 0)
    decide_only(other := site.open(), opened(other, "later", "u"))
    reports: list = []

    site.open().coordinator(CoordinatorConfig()).run(lambda: bool(reports), reports.append)

    assert (accounts(site, "t"), accounts(site, "u")) == (["etl"], ["later"])
    assert reports[0].completed == 2


def test_member_that_joined_when_the_clock_was_ahead_is_expelled_when_it_is_silent(site: Site) -> None:
    set_ahead(site, YEAR_MS)
    joined(site.open(), topic="t")
    set_ahead(site, 0)

    assert run_once(site).expelled_members == 1


def test_nothing_is_deleted_by_a_time_ahead(site: Site) -> None:
    set_ahead(site, YEAR_MS)
    committed(site, batch_id="run")
    set_ahead(site, 0)
    site.advance_ms(30 * DAY_MS)

    report = run_once(site)

    assert (report.expired_transactional_ids, report.expired_batch_names) == (0, 0)
    site.advance_ms(YEAR_MS + SETTINGS.transactional_id_expiration_ms)
    assert run_once(site).expired_transactional_ids == 1


@pytest.mark.parametrize(("ahead_ms", "found"), [(14 * 60_000, False), (16 * 60_000, True), (YEAR_MS, True)])
def test_times_ahead_are_found_by_the_check(site: Site, ahead_ms: int, found: bool) -> None:
    site.open().coordinator().run_once()
    set_ahead(site, ahead_ms)
    committed(site)
    set_ahead(site, 0)

    findings = [each for each in Watch(site).findings() if each.duty is Duty.CORRECT_CLOCK]

    assert bool(findings) is found
    assert not found or "compare this machine's clock" in findings[0].remedy


def test_member_that_is_alive_stays_when_who_looks_at_its_heartbeat_slept_for_long(site: Site) -> None:
    """Bug: what it wrote meanwhile was far ahead of the time that had been asked for before."""
    joined(site.open(), topic="t")
    site.advance_ms(SESSION_MS + 1)
    looking, naps = site.open(), iter([31 * 60_000])

    def sleep_and_beat(step: Step) -> None:
        if step.operation is Operation.HEAD and "heartbeats" in step.path and (nap_ms := next(naps, 0)):
            site.advance_ms(nap_ms)
            beat(site.store(), "g", "m")

    store_of(looking).on_step = sleep_and_beat

    assert looking.coordinator().run_once().expelled_members == 0
    assert next(naps, None) is None, "the heartbeat was looked at"


def test_transaction_that_has_just_begun_stays_open_when_the_job_slept_over_the_stores_time(site: Site) -> None:
    """Bug, found by the simulation: the job was 31 minutes behind, so what had just begun was far ahead of it."""
    producers, naps = site.open(), iter([2 * (TIMEOUT_MS + GUARD_MS)])
    # It knows the time, and so writes no newer anchor.
    producers.context.clock.now_ms()
    job = site.open()

    def sleep_and_begin(step: Step) -> None:
        if step.operation is Operation.HEAD and step.path == CLOCK_PATH and (nap_ms := next(naps, 0)):
            site.advance_ms(nap_ms)
            opened(producers)

    store_of(job).on_step = sleep_and_begin

    assert job.coordinator().run_once().aborted == 0
    assert state_of(site) is TransactionState.ONGOING
