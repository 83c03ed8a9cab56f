"""A coordinator of one round beside one that runs all the time: neither stops the other's work."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.site import Site
from txntable.errors import IllegalStateError, TransactionCoordinatorFencedError
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.upkeep.transaction_coordinator import CoordinatorConfig


def test_job_that_runs_on_claims_the_lease_again_that_a_job_of_one_round_took(site: Site) -> None:
    """Bug: the remedy that `status` prints stopped the coordinator that was running."""
    epochs: list[int] = []
    coordinator = site.open().coordinator()

    def tell(report: CoordinatorReport) -> None:
        epochs.append(report.coordinator_epoch)
        if len(epochs) == 1:
            assert site.open().coordinator().run_once().coordinator_epoch == 2

    coordinator.run(lambda: len(epochs) == 2, tell)

    assert epochs == [1, 3]


def test_job_of_one_round_stops_where_one_that_runs_on_claims_the_lease_again(site: Site) -> None:
    once = site.open().coordinator()
    once.run_once()
    site.open().coordinator().claim()

    with pytest.raises(TransactionCoordinatorFencedError):
        once.run_once()


def test_job_that_runs_on_stops_where_a_newer_one_came_after_a_job_of_one_round(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """Bug: it took what the newer one claimed for the claim of the other, and the newer one stopped."""
    caplog.set_level(logging.INFO, "txntable")
    newer = site.open().coordinator()
    epochs: list[int] = []

    def tell(report: CoordinatorReport) -> None:
        epochs.append(report.coordinator_epoch)
        if len(epochs) == 1:
            site.open().coordinator().run_once()

    def come_while_the_older_one_waits_to_claim_again() -> bool:
        if "the next round claims again" in caplog.text and len(epochs) == 1:
            epochs.append(newer.claim())
        return len(epochs) > 2

    with pytest.raises(TransactionCoordinatorFencedError):
        site.open().coordinator().run(come_while_the_older_one_waits_to_claim_again, tell)

    assert epochs == [1, 3]
    assert newer.run_once().coordinator_epoch == 3


def test_job_that_runs_on_gives_no_topic_up(site: Site) -> None:
    coordinator = site.open().coordinator(CoordinatorConfig(given_up_topics=("t",)))

    with pytest.raises(IllegalStateError, match=r"call run_once\(\)"):
        coordinator.run(lambda: True, lambda report: None)
