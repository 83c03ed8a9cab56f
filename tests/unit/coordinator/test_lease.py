"""The lease of the coordinator job: claims take over, and who lost it is told to stop."""

from __future__ import annotations

import pytest

from txntable.coordinator.errors import (
    DamagedDataError,
    TransactionCoordinatorFencedError,
    TxnTableError,
    UnsupportedFormatError,
)
from txntable.coordinator.lease import (
    LEASE_KEY,
    LeaseRow,
    claim,
    claim_again,
    coordinator_epoch_of,
    require_held,
)

ANN, BOB = "a" * 32, "b" * 32


def test_first_claim_is_of_epoch_one() -> None:
    assert claim(None, ANN, position=4) == LeaseRow(ANN, 1, 4)


@pytest.mark.parametrize("owner", [ANN, BOB])
def test_claim_takes_over_under_the_next_epoch_whoever_held_the_lease(owner: str) -> None:
    assert claim(LeaseRow(ANN, 6, 4), owner, position=9) == LeaseRow(owner, 7, 9)


@pytest.mark.parametrize(("row", "epoch"), [(None, 0), (LeaseRow(ANN, 3, 4), 3)])
def test_coordinator_epoch_is_zero_until_the_first_claim(row: LeaseRow | None, epoch: int) -> None:
    assert coordinator_epoch_of(row) == epoch


@pytest.mark.parametrize(("row", "held"), [(None, False), (LeaseRow(BOB, 2, 4), False), (LeaseRow(ANN, 2, 4), True)])
def test_lease_is_held_by_the_owner_of_the_row_only(row: LeaseRow | None, held: bool) -> None:
    if held:
        require_held(row, ANN)
        return
    with pytest.raises(TransactionCoordinatorFencedError, match=f"owner={ANN}"):
        require_held(row, ANN)


def test_lease_row_reads_as_written_and_has_this_spelling() -> None:
    row = LeaseRow(ANN, 2, 4)

    assert row.to_json() == f'{{"v":1,"owner":"{ANN}","coordinator_epoch":2,"position":4}}'
    assert LeaseRow.from_json(row.to_json()) == row
    assert LEASE_KEY == '["coordinator"]'


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (ANN, ANN[1:], DamagedDataError),
        (ANN, ANN.upper(), DamagedDataError),
        ('"coordinator_epoch":2', '"coordinator_epoch":0', DamagedDataError),
        ('"position":4', '"position":-1', DamagedDataError),
        ('"position":4', '"position":true', DamagedDataError),
        ('"position":4', '"position":4,"runs_once":false', DamagedDataError),
        ('"position":4', '"position":4,"runs_once":1', DamagedDataError),
        ('"v":1', '"v":2', UnsupportedFormatError),
        ('"position":4', '"position":4,"until":5', UnsupportedFormatError),
    ],
)
def test_stored_lease_is_refused_when_it_is_none(old: str, new: str, error: type[TxnTableError]) -> None:
    stored = LeaseRow(ANN, 2, 4).to_json().replace(old, new)

    with pytest.raises(error):
        LeaseRow.from_json(stored)


def test_lease_of_one_round_reads_as_written() -> None:
    row = claim(LeaseRow(ANN, 1, 4), BOB, position=5, runs_once=True)

    assert row.to_json() == f'{{"v":1,"owner":"{BOB}","coordinator_epoch":2,"position":5,"runs_once":true}}'
    assert LeaseRow.from_json(row.to_json()) == row


@pytest.mark.parametrize("runs_once", [False, True])
def test_lease_is_claimed_again_from_a_job_of_one_round_only(runs_once: bool) -> None:
    row = LeaseRow(BOB, 2, 4, runs_once=runs_once)

    if runs_once:
        assert claim_again(row, ANN, position=5) == LeaseRow(ANN, 3, 5)
    else:
        with pytest.raises(TransactionCoordinatorFencedError):
            claim_again(row, ANN, position=5)


@pytest.mark.parametrize("row", [None, LeaseRow(ANN, 2, 4)])
def test_lease_that_nobody_has_or_that_is_ones_own_is_claimed_again(row: LeaseRow | None) -> None:
    assert claim_again(row, ANN, position=5).owner == ANN
