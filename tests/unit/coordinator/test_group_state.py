"""The table of group states: what is in it, and what is illegal."""

from __future__ import annotations

from itertools import product

import pytest

from tools.documentation.state_tables import group_state_table
from txntable.coordinator.errors import IllegalStateError
from txntable.coordinator.group_state import (
    VALID_TRANSITIONS,
    GroupOperation,
    GroupState,
    check_transition,
)


@pytest.mark.parametrize(("state", "operation", "following"), list(product(GroupState, GroupOperation, GroupState)))
def test_transition_is_allowed_when_the_table_has_it(
    state: GroupState, operation: GroupOperation, following: GroupState
) -> None:
    if following in VALID_TRANSITIONS.get((state, operation), ()):
        assert check_transition(state, operation, following) is following
        return
    with pytest.raises(IllegalStateError, match=f"state={state.value} operation={operation.value}"):
        check_transition(state, operation, following)


def test_nothing_follows_a_dead_group_and_only_an_empty_one_dies() -> None:
    assert [key for key in VALID_TRANSITIONS if key[0] is GroupState.DEAD] == []
    assert [key for key, after in VALID_TRANSITIONS.items() if GroupState.DEAD in after] == [
        (GroupState.EMPTY, GroupOperation.DELETE)
    ]


def test_written_table_has_a_row_for_each_state() -> None:
    lines = group_state_table().splitlines()

    assert lines[2] == "| `EMPTY` | `JOIN` → `STABLE`; `DELETE` → `DEAD` |"
    assert "`JOIN`, `LEAVE`, `EXPEL`, `RELEASE`, `REFRESH` → `STABLE`" in lines[3]
    assert lines[-1] == "| `DEAD` | nothing |"
    assert len(lines) == 2 + len(GroupState)
