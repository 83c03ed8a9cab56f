"""Which batch ids may be committed, and how they are remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txntable.coordinator.batch_memory import (
    BatchId,
    BatchMemory,
    BatchRow,
    batch_key,
    check_batch,
    check_batch_id,
    is_batch_forgotten,
)
from txntable.coordinator.decision import Outcome
from txntable.coordinator.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    DamagedDataError,
    InvalidRequestError,
    TxnTableError,
)
from txntable.coordinator.transaction_request import EndRequest, PrepareRequest

_NAMED = BatchRow("etl", "2026-11-20", producer_id=7, epoch=4, position=11, decided_at_ms=1_000)


@pytest.mark.parametrize(
    ("last_integer", "name_known", "batch_id", "error"),
    [
        (None, False, 0, None),
        (None, False, 7, None),
        (6, False, 7, None),
        (6, False, 9, None),
        (6, False, 6, BatchAlreadyCommittedError),
        (6, False, 5, BatchOutOfOrderError),
        (0, False, 0, BatchAlreadyCommittedError),
        (None, True, 3, None),
        (None, False, "run", None),
        (6, False, "6", None),
        (None, True, "run", BatchAlreadyCommittedError),
        (None, False, "", InvalidRequestError),
        (None, False, -1, InvalidRequestError),
        (None, False, True, InvalidRequestError),
        (None, False, 1.0, InvalidRequestError),
    ],
)
def test_batch_is_accepted_or_refused_by_what_was_committed(
    last_integer: int | None, name_known: bool, batch_id: BatchId, error: type[TxnTableError] | None
) -> None:
    if error is None:
        check_batch(last_integer, name_known, batch_id)
        return
    with pytest.raises(error):
        check_batch(last_integer, name_known, batch_id)


@pytest.mark.parametrize("batch_id", ["20261120", "0", "7" * 30])
def test_name_of_digits_alone_is_refused_with_what_to_do(batch_id: str) -> None:
    with pytest.raises(InvalidRequestError, match="as 2026-11-20 or run-20261120, or pass an int"):
        check_batch_id(batch_id)
    with pytest.raises(InvalidRequestError, match="digits alone"):
        PrepareRequest(1, 0, "token", 1, batch_id)


@pytest.mark.parametrize("batch_id", [20261120, "2026-11-20", "run-20261120", "-1", "+7", " 7", "١", "7.0"])
def test_batch_id_that_means_one_thing_is_taken(batch_id: BatchId) -> None:
    assert check_batch_id(batch_id) == batch_id


def test_number_that_is_too_large_is_refused_with_a_name_that_is_taken() -> None:
    with pytest.raises(InvalidRequestError, match="as run-20260101123456789012"):
        check_batch_id(20260101123456789012)

    assert check_batch_id("run-20260101123456789012") == "run-20260101123456789012"


def test_stored_name_of_digits_alone_is_read_and_what_is_prepared_with_it_may_be_committed() -> None:
    row = replace(_NAMED, batch_id="20261120")
    request = EndRequest(7, 4, Outcome.COMMIT, 11, token="token", batch_id="20261120")

    assert BatchRow.from_json(row.to_json()) == row
    assert request.batch_id == "20261120"
    check_batch(None, False, "20261120")


def test_batch_out_of_order_names_the_last_one() -> None:
    with pytest.raises(BatchOutOfOrderError, match="batch_id=5 last=6"):
        check_batch(6, False, 5)


def test_integers_share_a_key_and_names_have_their_own() -> None:
    assert batch_key("etl", 1) == batch_key("etl", 2) == '["etl"]'
    assert batch_key("etl", "1") == '["etl","1"]'
    assert _NAMED.key == '["etl","2026-11-20"]'


@pytest.mark.parametrize("row", [_NAMED, replace(_NAMED, batch_id=3), replace(_NAMED, decided_at_ms=None)])
def test_batch_row_reads_as_written(row: BatchRow) -> None:
    assert BatchRow.from_json(row.to_json()) == row


def test_batch_row_has_this_spelling() -> None:
    assert _NAMED.to_json() == (
        '{"v":1,"transactional_id":"etl","batch_id":"2026-11-20","producer_id":7,"epoch":4,"position":11,'
        '"decided_at_ms":1000}'
    )


@pytest.mark.parametrize("change", [{"batch_id": ""}, {"batch_id": -1}, {"transactional_id": ""}])
def test_batch_row_is_damage_when_its_key_is_invalid(change: dict[str, BatchId]) -> None:
    stored = replace(_NAMED, **change).to_json()  # type: ignore[arg-type]

    with pytest.raises(DamagedDataError, match="no valid key"):
        BatchRow.from_json(stored)


@pytest.mark.parametrize(
    ("batch_id", "decided_at_ms", "now_ms", "forgotten"),
    [
        ("run", 1_000, 1_999, False),
        ("run", 1_000, 2_000, True),
        ("run", None, 9_999, False),
        (3, 1_000, 9_999, False),
    ],
)
def test_only_a_name_is_forgotten_and_only_after_its_retention(
    batch_id: BatchId, decided_at_ms: int | None, now_ms: int, forgotten: bool
) -> None:
    row = replace(_NAMED, batch_id=batch_id, decided_at_ms=decided_at_ms)

    assert is_batch_forgotten(row, now_ms, retention_ms=1_000) is forgotten


@pytest.mark.parametrize(
    ("memory", "batch_id", "has"),
    [
        (BatchMemory(), 0, False),
        (BatchMemory(last_integer=3), 2, True),
        (BatchMemory(last_integer=3), 3, True),
        (BatchMemory(last_integer=3), 4, False),
        (BatchMemory(last_integer=3), "run", False),
        (BatchMemory(name_known=True), "run", True),
        (BatchMemory(name_known=True), 0, False),
    ],
)
def test_memory_has_a_name_with_a_row_and_integers_through_the_last(
    memory: BatchMemory, batch_id: BatchId, has: bool
) -> None:
    assert memory.has(batch_id) is has
