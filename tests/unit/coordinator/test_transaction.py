"""The row of a transactional id: its stored form, its invariants, and where it may be written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import (
    DamagedDataError,
    IllegalStateError,
    InvalidRequestError,
    InvalidTxnStateError,
    UnsupportedFormatError,
)
from txntable.coordinator.past_decisions import PastDecisions
from txntable.coordinator.transaction import TransactionMetadata, first_row
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
_STORED_STATES = [state for state in S if state is not S.DEAD]


@pytest.mark.parametrize("state", _STORED_STATES)
def test_row_reads_as_written_in_every_state(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)

    assert TransactionMetadata.from_json(row.to_json()) == row


def test_row_has_this_spelling(a_row: RowBuilder) -> None:
    decision, past = Decision(4, Outcome.COMMIT, 9, batch_id="run"), PastDecisions.parse("C2NA")
    row = a_row(S.PREPARED, decision=decision, past=past, batch_id=3)

    assert row.to_json() == (
        '{"v":1,"transactional_id":"etl","producer_id":7,"producer_epoch":5,"timeout_ms":60000,"state":"PREPARED",'
        '"partitions":{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":{"name":"flights","partitions":"0-1"}},"groups":["g"],'
        '"started_position":10,"decision":{"epoch":4,"outcome":"COMMIT","position":9,"batch_id":"run"},"past":"C2NA",'
        '"prepared_epoch":5,"token":"t","batch_id":3,"position":11}'
    )
    assert TransactionMetadata.from_json(row.to_json()) == row


def test_first_row_is_empty_under_epoch_zero() -> None:
    row = first_row("etl", producer_id=7, timeout_ms=60_000, position=0)

    assert (row.state, row.producer_epoch, row.decision) == (S.EMPTY, 0, None)
    assert row.key == '["etl"]'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", "DEAD"),
        ("state", "ASLEEP"),
        ("transactional_id", ""),
        ("producer_id", "7"),
        ("producer_epoch", -1),
        ("decision", {"epoch": 4, "outcome": "PERHAPS", "position": 11}),
        ("decision", {"epoch": 4, "outcome": "ABORT", "position": 11}),
        ("decision", {"epoch": 4}),
        ("groups", [""]),
        ("groups", [1]),
        ("groups", ["g", "g"]),
        ("partitions", {"a": {"name": "", "partitions": "0"}}),
        ("partitions", {"a": "0-1"}),
        ("token", "t"),
    ],
)
def test_row_is_damage_when_a_field_contradicts_the_format(a_row: RowBuilder, field: str, value: Any) -> None:
    stored = {**json.loads(a_row(S.PREPARE_COMMIT).to_json()), field: value}

    with pytest.raises(DamagedDataError):
        TransactionMetadata.from_json(json.dumps(stored))


@pytest.mark.parametrize("change", [{"v": 2}, {"leader": []}, {"decision": {"epoch": 4, "reason": "x"}}])
def test_row_is_refused_when_of_a_newer_format(a_row: RowBuilder, change: dict[str, object]) -> None:
    stored = {**json.loads(a_row(S.PREPARE_COMMIT).to_json()), **change}

    with pytest.raises(UnsupportedFormatError):
        TransactionMetadata.from_json(json.dumps(stored))


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (S.EMPTY, {"producer_id": -1}),
        (S.EMPTY, {"timeout_ms": 0}),
        (S.EMPTY, {"groups": ("g",)}),
        (S.COMPLETE_COMMIT, {"topics": {"t": EnrolledTopic("t", frozenset({0}))}}),
        (S.ONGOING, {"topics": {}, "groups": ()}),
        (S.ONGOING, {"groups": ("h", "g")}),
        (S.ONGOING, {"started_position": None}),
        (S.EMPTY, {"started_position": 3}),
        (S.ONGOING, {"started_position": 12}),
        (S.PREPARED, {"token": None}),
        (S.ONGOING, {"token": "t"}),
        (S.ONGOING, {"batch_id": "run"}),
        (S.EMPTY, {"decision": Decision(5, Outcome.COMMIT, 3)}),
        (S.EMPTY, {"decision": Decision(4, Outcome.COMMIT, 12)}),
        (S.PREPARE_COMMIT, {"decision": None}),
        (S.PREPARE_COMMIT, {"decision": Decision(3, Outcome.COMMIT, 11)}),
        (S.PREPARE_COMMIT, {"decision": Decision(4, Outcome.ABORT, 11)}),
        (S.PREPARE_COMMIT, {"decision": Decision(4, Outcome.COMMIT, 10)}),
        (S.COMPLETE_ABORT, {"decision": Decision(4, Outcome.COMMIT, 11)}),
    ],
)
def test_row_cannot_come_to_be_when_it_contradicts_itself(
    a_row: RowBuilder, state: S, change: dict[str, object]
) -> None:
    with pytest.raises(DamagedDataError, match="contradicts itself"):
        a_row(state, **change)


def test_row_is_refused_when_its_id_is_empty() -> None:
    with pytest.raises(InvalidRequestError):
        first_row("", producer_id=0, timeout_ms=1, position=0)


def test_dead_row_is_never_stored(a_row: RowBuilder) -> None:
    dead = a_row(S.EMPTY).prepare_expire(12)

    with pytest.raises(IllegalStateError, match="removed"):
        dead.to_json()


@pytest.mark.parametrize("position", [10, 11])
def test_row_is_refused_below_the_version_it_was_read_from(a_row: RowBuilder, position: int) -> None:
    row = a_row(S.EMPTY)

    with pytest.raises(IllegalStateError, match=f"position={position} read=11"):
        row.prepare_init(60_000, position)


def test_enrolment_starts_the_clock_only_once(a_row: RowBuilder) -> None:
    first = a_row(S.EMPTY).prepare_enrol({}, ("g",), 20)
    second = first.prepare_enrol({}, ("f",), 21)

    assert (first.started_position, second.started_position) == (20, 20)
    assert second.groups == ("f", "g")
    assert first.groups == ("g",)


def test_illegal_transition_raises_and_leaves_the_row(a_row: RowBuilder) -> None:
    row = a_row(S.PREPARE_COMMIT)
    before = replace(row)

    with pytest.raises(InvalidTxnStateError):
        row.prepare_enrol({}, ("g",), 12)

    assert row == before
