"""The coordinator job: time-outs, completion, the lease, and continuous mode."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, row, store_of
from tests.unit.upkeep.coordinating import (
    A_MOMENT_MS,
    DAY_MS,
    SETTINGS,
    TIMEOUT_MS,
    committed,
    decide_only,
    opened,
    run_once,
    state_of,
)
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import (
    CommitStateUnknownError,
    InvalidConfigError,
    StoreUnavailableError,
    TransactionCoordinatorFencedError,
)
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.transactions.completion import Completer
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.upkeep.transaction_coordinator import CoordinatorConfig
from txntable.warehouse.warehouse import Warehouse

# -- time-outs and completion -------------------------------------------------------------------


def test_round_aborts_what_timed_out_and_completes_what_was_decided(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse, "late")
    site.advance_ms(TIMEOUT_MS + 1)
    decide_only(warehouse, opened(warehouse, "etl"))

    report = run_once(site)

    assert (report.aborted, report.completed, report.failures) == (1, 1, 0)
    assert state_of(site, "late") is TransactionState.COMPLETE_ABORT
    assert state_of(site, "etl") is TransactionState.COMPLETE_COMMIT
    assert accounts(site, "t") == ["etl"]


def test_round_leaves_an_open_transaction_within_its_timeout_and_a_prepared_one_for_ever(site: Site) -> None:
    prepared = opened(site.open(), "two-phase")
    prepared.prepare_transaction()
    site.advance_ms(400 * DAY_MS)
    opened(site.open(), "young")

    report = run_once(site)

    assert (report.aborted, report.completed) == (0, 0)
    assert state_of(site, "two-phase") is TransactionState.PREPARED
    assert state_of(site, "young") is TransactionState.ONGOING


def test_round_publishes_what_a_plain_writer_left_behind(site: Site) -> None:
    warehouse = site.open()
    store_of(warehouse).plan = (on(PUT, "topics/t/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer = warehouse.producer()
    producer.send("t", row=row("plain"))
    with pytest.raises(CommitStateUnknownError):
        producer.flush()

    report = run_once(site)

    assert report.published_topics == 1
    assert accounts(site, "t") == ["plain"]


def test_second_round_of_a_quiet_warehouse_does_nothing_and_writes_nothing(site: Site) -> None:
    committed(site)
    warehouse = site.open()
    coordinator = warehouse.coordinator()
    coordinator.run_once()
    before = site.objects.snapshot()

    report = coordinator.run_once()

    assert not report.did_something
    assert site.objects.snapshot() == before


def test_one_transaction_that_fails_does_not_stop_the_others_and_is_done_by_the_next_round(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = site.open(), site.open()
    decide_only(first, opened(first, "stuck", "u"))
    decide_only(second, opened(second, "etl", "t"))
    opened(site.open(), "late", "t")
    site.advance_ms(TIMEOUT_MS + 1)
    warehouse = site.open()
    coordinator = warehouse.coordinator()
    store_of(warehouse).plan = (on(None, "topics/u/", Fault.FAIL_BEFORE, occurrence=None),)

    with caplog.at_level(logging.WARNING):
        report = coordinator.run_once()

    assert (report.aborted, report.completed) == (1, 1)
    assert report.failures > 0
    assert "complete transactional_id=stuck" in caplog.text
    assert state_of(site, "stuck") is TransactionState.PREPARE_COMMIT
    store_of(warehouse).plan = ()
    again = coordinator.run_once()
    assert (again.completed, again.failures) == (1, 0)
    assert accounts(site, "u") == ["stuck"]


def test_marker_carries_the_epoch_of_the_lease_whoever_writes_it(site: Site) -> None:
    epochs = []
    for number in range(3):
        committed(site, f"id-{number}")
        logs = site.open().topic_log("t").segments
        logs.refresh()
        epochs.append(max(logs.fold.markers.values(), key=lambda marker: marker.position).coordinator_epoch)
        site.open().coordinator().claim()

    assert epochs == [0, 1, 2]


# -- the lease ----------------------------------------------------------------------------------


def test_claim_takes_over_and_the_first_one_stops_at_its_next_round(site: Site) -> None:
    first, second = site.open().coordinator(), site.open().coordinator()

    assert first.run_once().coordinator_epoch == 1
    assert second.run_once().coordinator_epoch == 2

    with pytest.raises(TransactionCoordinatorFencedError):
        first.run_once()
    assert second.run_once().coordinator_epoch == 2


def test_restarted_job_does_not_need_the_one_before(site: Site) -> None:
    run_once(site)
    opened(site.open())
    site.advance_ms(TIMEOUT_MS + 1)

    assert run_once(site).aborted == 1


def fenced_at(site: Site, moment: Callable[[Step], bool]) -> list[Step]:
    """Run a job that another takes the lease from at a step; return what the first one wrote from there on."""
    warehouse = site.open()
    coordinator = warehouse.coordinator()
    coordinator.claim()
    store = store_of(warehouse)
    taken_over_at: list[int] = []

    def take_over(step: Step) -> None:
        if not taken_over_at and moment(step):
            taken_over_at.append(step.number)
            site.open().coordinator().claim()

    store.on_step = take_over
    with pytest.raises(TransactionCoordinatorFencedError):
        coordinator.run_once()
    assert taken_over_at
    return [step for step in store.steps[taken_over_at[0] - 1 :] if step.operation is not Operation.GET]


def test_fenced_job_writes_nothing_after_the_commit_at_which_it_noticed(site: Site) -> None:
    """It is about to decide an abort when the other claims: its slot is taken, and then nothing more comes."""
    opened(site.open(), "late")
    site.advance_ms(TIMEOUT_MS + 1)

    steps = fenced_at(site, lambda step: step.operation is PUT and T_LOG in step.path)

    assert [(step.operation, step.outcome) for step in steps] == [(PUT, "exists")]
    assert state_of(site, "late") is TransactionState.ONGOING
    assert run_once(site).aborted == 1


def test_job_fenced_after_the_work_of_completions_writes_no_complete(site: Site) -> None:
    for topic in ("t", "u"):
        warehouse = site.open()
        decide_only(warehouse, opened(warehouse, f"id-{topic}", topic))

    steps = fenced_at(site, lambda step: step.operation is PUT and T_LOG in step.path)

    assert [(step.operation, step.outcome) for step in steps] == [(PUT, "exists")]
    assert [(accounts(site, topic), state_of(site, f"id-{topic}")) for topic in ("t", "u")] == [
        (["id-t"], TransactionState.PREPARE_COMMIT),
        (["id-u"], TransactionState.PREPARE_COMMIT),
    ]
    assert run_once(site).completed == 2


def test_markers_are_refused_on_the_reading_of_the_transaction_log_that_shows_anothers_lease(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))
    job = site.open()
    first, second = (job.context.environment.new_id() for _ in range(2))
    job.transactions.claim_lease(first)
    job.transactions.claim_lease(second)
    store_of(job).steps.clear()

    with pytest.raises(TransactionCoordinatorFencedError):
        Completer(job.transactions.leased(first), job.topic_log, job.offsets).complete("etl")

    assert store_of(job).steps == []
    Completer(job.transactions.leased(second), job.topic_log, job.offsets).complete("etl")
    assert accounts(site, "t") == ["etl"]


@pytest.mark.parametrize(("failures", "aborted"), [(1, 1), (2, 0)])
def test_job_that_fails_while_it_reads_the_log_again_does_not_take_itself_for_fenced(
    site: Site, failures: int, aborted: int
) -> None:
    """Bug: what was read until the failure ended at an earlier job's lease (simulation, seed 3187)."""
    site.open().coordinator().claim()
    for name in ("one", "two"):
        opened(site.open(), name)
    site.advance_ms(TIMEOUT_MS + 1)
    warehouse = site.open()
    job = warehouse.coordinator()
    job.claim()
    lease = commit_path(TRANSACTION_LOG_ROOT, warehouse.transactions.log.table.next_version - 1)
    store = store_of(warehouse)

    def grow_old(step: Step) -> None:
        if step.operation is Operation.HEAD and T_LOG in step.path and not store.plan:
            site.advance_ms(310_000)
            store.plan = tuple(
                on(Operation.GET, lease, Fault.FAIL_BEFORE, occurrence=each) for each in range(1, failures + 1)
            )

    store.on_step = grow_old
    report = job.run_once()

    assert (report.failures, report.aborted) == (failures, aborted)
    assert job.run_once().aborted == 2 - aborted


def test_job_that_lost_its_lease_while_idle_stops_before_any_write(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))

    assert fenced_at(site, lambda step: T_LOG in step.path) == []


@pytest.mark.parametrize(
    ("taken_over_at", "written"),
    [
        (lambda step: step.operation is PUT and T_LOG in step.path, {"expire ids": "exists"}),
        (lambda step: "state/" in step.path, {"expire producers": "created"}),
    ],
)
def test_fenced_job_finishes_at_most_the_task_under_way(
    site: Site, taken_over_at: Callable[[Step], bool], written: dict[str, str]
) -> None:
    """Only tasks on the transaction log are decided with the lease in hand; the others harm nobody when done twice."""
    committed(site)
    site.advance_ms(8 * DAY_MS)

    steps = fenced_at(site, taken_over_at)

    outcomes = {
        task: step.outcome
        for task, log in (("expire ids", T_LOG), ("expire producers", "_segments/_delta_log"))
        for step in steps
        if step.operation is PUT and log in step.path
    }
    assert outcomes == written
    assert not [
        step for step in steps if step.operation in {Operation.DELETE, Operation.LIST} and "_delta_log" in step.path
    ]


def test_claim_killed_by_a_lost_answer_is_made_again(site: Site) -> None:
    warehouse = site.open()
    store_of(warehouse).plan = (
        on(PUT, T_LOG, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, T_LOG, Fault.FAIL_BEFORE, occurrence=None),
    )
    coordinator = warehouse.coordinator()
    with pytest.raises((CommitStateUnknownError, StoreUnavailableError)):
        coordinator.run_once()
    store_of(warehouse).plan = ()

    assert coordinator.run_once().coordinator_epoch == 2


# -- continuous mode ----------------------------------------------------------------------------


def run_until(warehouse: Warehouse, rounds: int, config: CoordinatorConfig | None = None) -> list[CoordinatorReport]:
    """Run continuously for so many rounds."""
    reports: list[CoordinatorReport] = []
    warehouse.coordinator(config).run(lambda: len(reports) >= rounds, reports.append)
    return reports


def test_run_does_everything_at_first_and_later_what_is_due(site: Site) -> None:
    warehouse = site.open()
    config = CoordinatorConfig(completion_interval_ms=10_000, log_cleanup_interval_ms=30_000)

    reports = run_until(warehouse, 7, config)

    assert [report.coordinator_epoch for report in reports] == [1] * 7
    listed = [
        step
        for step in store_of(warehouse).steps
        if step.operation is Operation.LIST and step.path.endswith("_delta_log")
    ]
    logs = 2 + 2 * 3
    assert len(listed) == 3 * logs
    assert warehouse.context.environment.instant().boot_ms >= 6 * 10_000


def test_run_leaves_a_young_decision_to_its_own_producer_and_completes_an_older_one(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))
    job = site.open()

    (young,) = run_until(job, 1)
    site.advance_ms(CoordinatorConfig().decision_age_ms + A_MOMENT_MS)
    (older,) = run_until(job, 1)

    assert (young.completed, older.completed) == (0, 1)


def test_run_ends_at_once_when_it_is_told_before_it_began(site: Site) -> None:
    warehouse = site.open()

    assert run_until(warehouse, 0) == []

    assert warehouse.transactions.lease() is None


def test_run_survives_a_store_that_fails_for_a_while(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    opened(site.open(), "late")
    site.advance_ms(TIMEOUT_MS + 1)
    warehouse = site.open()
    store_of(warehouse).plan = (on(None, T_LOG, Fault.FAIL_BEFORE, occurrence=None),)
    rounds = 0

    def stop() -> bool:
        if "the round failed" in caplog.text:
            store_of(warehouse).plan = ()
        return rounds > 0

    def tell(report: CoordinatorReport) -> None:
        nonlocal rounds
        rounds += 1
        assert report.aborted == 1

    with caplog.at_level(logging.WARNING):
        warehouse.coordinator().run(stop, tell)

    assert state_of(site, "late") is TransactionState.COMPLETE_ABORT


def test_task_that_failed_is_due_again_in_the_next_round(site: Site) -> None:
    committed(site)
    site.advance_ms(SETTINGS.producer_id_expiration_ms + A_MOMENT_MS)
    warehouse = site.open()
    store_of(warehouse).plan = (on(Operation.PUT, "state/", Fault.FAIL_BEFORE, occurrence=1),)

    first, second = run_until(warehouse, 2)

    assert (first.expired_producers, first.failures) == (0, 1)
    assert (second.expired_producers, second.failures) == (1, 0)


def test_run_ends_with_an_error_when_another_job_claims(site: Site) -> None:
    warehouse = site.open()
    reports: list[CoordinatorReport] = []

    def tell(report: CoordinatorReport) -> None:
        reports.append(report)
        if len(reports) == 2:
            site.open().coordinator().claim()

    with pytest.raises(TransactionCoordinatorFencedError):
        warehouse.coordinator().run(lambda: False, tell)

    assert len(reports) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"completion_interval_ms": 0},
        {"completion_interval_ms": "10"},
        {"log_cleanup_interval_ms": -1},
        {"decision_age_ms": -1},
        {"decision_age_ms": 1.5},
    ],
)
def test_config_is_refused_when_a_duration_is_out_of_bounds(wrong: dict) -> None:
    with pytest.raises(InvalidConfigError):
        CoordinatorConfig(**wrong)
