"""The table of transitions, cell by cell, against the rules written a second time as a grid."""

from __future__ import annotations

import pytest

from tools.documentation.state_tables import transaction_state_table
from txntable.coordinator.errors import InvalidTxnStateError
from txntable.coordinator.transaction_state import (
    VALID_TRANSITIONS,
    Operation,
    TransactionState,
    next_state,
)

# One row per state, one column per operation; "-" is illegal.
_COLUMNS = "INIT  FENCE ENROL PREPARE  COMMIT ABORT TIME_OUT COMPLETE EXPIRE COMMIT_EMPTY_BATCH COMMIT_MANIFEST"
_SHORT = {
    "E": TransactionState.EMPTY,
    "O": TransactionState.ONGOING,
    "P": TransactionState.PREPARED,
    "pc": TransactionState.PREPARE_COMMIT,
    "pa": TransactionState.PREPARE_ABORT,
    "CC": TransactionState.COMPLETE_COMMIT,
    "CA": TransactionState.COMPLETE_ABORT,
    "D": TransactionState.DEAD,
}
_GRID = """
    EMPTY            E  -   O  P   -   CA  -   -   D  CC  pc
    ONGOING          -  pa  O  P   pc  pa  pa  -   -  -  -
    PREPARED         -  pa  -  -   pc  pa  -   -   -  -  -
    PREPARE_COMMIT   -  -   -  -   -   -   -   CC  -  -  -
    PREPARE_ABORT    -  -   -  -   -   -   -   CA  -  -  -
    COMPLETE_COMMIT  E  -   O  P   -   CA  -   -   D  CC  pc
    COMPLETE_ABORT   E  -   O  P   -   CA  -   -   D  CC  pc
    DEAD             -  -   -  -   -   -   -   -   -  -  -
"""
_CELLS = [
    (TransactionState[line.split()[0]], Operation[operation], _SHORT.get(cell))
    for line in _GRID.strip().splitlines()
    for operation, cell in zip(_COLUMNS.split(), line.split()[1:], strict=True)
]


def test_grid_has_every_state_and_every_operation() -> None:
    assert len(_CELLS) == len(TransactionState) * len(Operation)
    assert len({(state, operation) for state, operation, _ in _CELLS}) == len(_CELLS)


@pytest.mark.parametrize(("state", "operation", "following"), _CELLS)
def test_next_state_follows_the_grid_for_every_cell(
    state: TransactionState, operation: Operation, following: TransactionState | None
) -> None:
    if following is not None:
        assert next_state(state, operation) is following
        return
    with pytest.raises(InvalidTxnStateError) as caught:
        next_state(state, operation)
    assert caught.value.facts == {"state": state.value, "operation": operation.value}


@pytest.mark.parametrize("state", TransactionState)
def test_open_states_alone_allow_commit_and_decided_ones_alone_complete(state: TransactionState) -> None:
    allowed = {operation for known, operation in VALID_TRANSITIONS if known is state}

    is_open = state in {TransactionState.ONGOING, TransactionState.PREPARED}
    is_decided = state in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    assert (state.is_open, state.is_decided) == (is_open, is_decided)
    assert (Operation.COMPLETE in allowed) == is_decided
    assert (Operation.COMMIT in allowed) == is_open


def test_written_table_has_every_transition_of_the_table() -> None:
    rows = [line.strip("| ").split(" | ") for line in transaction_state_table().splitlines()[2:]]

    moves = {
        (state.strip("`"), operation.strip("`"), following.partition(" → ")[2].strip("`"))
        for state, followings in rows
        for following in followings.split("; ")
        for operation in following.partition(" → ")[0].split(", ")
    }

    assert moves == {
        *((state.value, op.value, to.value) for (state, op), to in VALID_TRANSITIONS.items()),
        ("DEAD", "nothing", ""),
    }
