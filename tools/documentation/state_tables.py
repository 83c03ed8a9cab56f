"""The tables of states as PROTOCOL.md and the site have them: a row for each state, with what may follow on it.

Words stand where the states and operations do, in the code.  They are no pictures: what draws one in a browser is a
script of somebody else's server, and the site asks none.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import griffe

from tools.documentation.tables import first_paragraph, table
from txntable.coordinator import group_state, transaction_state
from txntable.coordinator.group_state import GroupOperation, GroupState
from txntable.coordinator.transaction_state import Operation, TransactionState

Move = tuple[str, str, str]
"""A state, what happens to it, and the state that follows."""

_HEAD = ("state", "what may happen, and the state that follows")


def transaction_moves() -> list[Move]:
    """Return what the table of a transaction's states allows."""
    table_of_states = transaction_state.VALID_TRANSITIONS
    return [
        (state.value, operation.value, following.value) for (state, operation), following in table_of_states.items()
    ]


def group_moves() -> list[Move]:
    """Return what the table of a group's states allows."""
    return [
        (state.value, operation.value, following.value)
        for (state, operation), followings in group_state.VALID_TRANSITIONS.items()
        for following in sorted(followings, key=list(GroupState).index)
    ]


def transaction_state_table() -> str:
    """Return Markdown with a row for each state of a transaction."""
    return table(_HEAD, _rows(TransactionState, transaction_moves()))


def group_state_table() -> str:
    """Return Markdown with a row for each state of a group."""
    return table(_HEAD, _rows(GroupState, group_moves()))


def transaction_section() -> str:
    """Return a transaction's states, what they mean, and what may follow."""
    return _section(TransactionState, transaction_moves())


def transaction_operations_section() -> str:
    """Return what may happen to a transactional id."""
    return _meanings("operation", Operation)


def group_section() -> str:
    """Return a group's states, what they mean, what may follow, and what may happen to a group."""
    return _section(GroupState, group_moves()) + "\n" + _meanings("operation", GroupOperation)


def _section(kind: type[Enum], moves: Sequence[Move]) -> str:
    meanings = _meaning_of(kind)
    rows = ((state, meanings[state.strip("`")], following) for state, following in _rows(kind, moves))
    return table((_HEAD[0], "meaning", _HEAD[1]), rows)


def _rows(kind: type[Enum], moves: Iterable[Move]) -> list[tuple[str, str]]:
    following: dict[str, dict[str, list[str]]] = {}
    for state, operation, after in moves:
        following.setdefault(state, {}).setdefault(after, []).append(f"`{operation}`")
    return [(f"`{name}`", _followings(following.get(member.value, {}))) for name, member in kind.__members__.items()]


def _followings(operations_by_state: Mapping[str, Sequence[str]]) -> str:
    each = (f"{', '.join(operations)} → `{after}`" for after, operations in operations_by_state.items())
    return "; ".join(each) or "nothing"


def _meanings(word: str, kind: type[Enum]) -> str:
    return table((word, "meaning"), ((f"`{name}`", meaning) for name, meaning in _meaning_of(kind).items()))


def _meaning_of(kind: type[Enum]) -> dict[str, str]:
    # What stands below a member is not there at run time.
    file = Path(inspect.getfile(kind))
    members = griffe.visit(kind.__module__, file, file.read_text())[kind.__name__].members
    return {name: first_paragraph(_docstring(members[name])) for name in kind.__members__}


def _docstring(member: griffe.Object | griffe.Alias) -> str:
    return "" if member.docstring is None else member.docstring.value
