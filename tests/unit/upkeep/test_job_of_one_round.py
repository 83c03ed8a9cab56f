"""A coordinator of one round beside one that runs all the time: neither stops the other's work."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from txntable.errors import TransactionCoordinatorFencedError
from txntable.upkeep.coordinator_round import CoordinatorReport


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
