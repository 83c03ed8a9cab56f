"""The tables of states as PROTOCOL.md and the site draw them: Mermaid, one line for each pair of states.

The site's picture of transactions has one box for all states from which the same follows.  Words stand where the states
and operations do, in the code.
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


def transaction_moves() -> list[Move]:
    """Return what the table of a transaction's states allows, and the first init of an id."""
    table_of_states = transaction_state.VALID_TRANSITIONS
    moves = (
        (state.value, operation.value, following.value) for (state, operation), following in table_of_states.items()
    )
    return [("[*]", Operation.INIT.value, TransactionState.EMPTY.value), *moves]


def group_moves() -> list[Move]:
    """Return what the table of a group's states allows."""
    moves = (
        (state.value, operation.value, following.value)
        for (state, operation), followings in group_state.VALID_TRANSITIONS.items()
        for following in sorted(followings, key=list(GroupState).index)
    )
    return [("[*]", "", GroupState.EMPTY.value), *moves]


def transaction_state_diagram() -> str:
    """Return Mermaid with a box for each state of a transaction."""
    return _drawn(transaction_moves())


def group_state_diagram() -> str:
    """Return Mermaid with a box for each state of a group."""
    return _drawn(group_moves())


def short_transaction_diagram() -> str:
    """Return Mermaid with one box for all states of a transaction from which the same follows."""
    boxes = boxes_of(transaction_moves())
    moves = dict.fromkeys((boxes.get(a, a), operation, boxes.get(b, b)) for a, operation, b in transaction_moves())
    return _drawn(list(moves))


def boxes_of(moves: Sequence[Move]) -> dict[str, str]:
    """Return the box of each state that shares one with others.

    Parameters
    ----------
    moves : Sequence of Move
        All of them.
    """
    alike: dict[frozenset[tuple[str, str]], list[str]] = {}
    for state in dict.fromkeys(state for state, _, _ in moves if state != "[*]"):
        following = frozenset((operation, after) for before, operation, after in moves if before == state)
        alike.setdefault(following, []).append(state)
    return {state: "_or_".join(states) for states in alike.values() if len(states) > 1 for state in states}


def transaction_section() -> str:
    """Return the picture of a transaction's states and what they mean."""
    return _section(short_transaction_diagram(), "state", TransactionState)


def transaction_operations_section() -> str:
    """Return what may happen to a transactional id."""
    return _meanings("operation", Operation)


def group_section() -> str:
    """Return the picture of a group's states, what they mean, and what may happen to a group."""
    return _section(group_state_diagram(), "state", GroupState) + "\n" + _meanings("operation", GroupOperation)


def _section(diagram: str, word: str, kind: type[Enum]) -> str:
    return f"```mermaid\n{diagram}```\n\n{_meanings(word, kind)}"


def _meanings(word: str, kind: type[Enum]) -> str:
    # What stands below a member is not there at run time.
    file = Path(inspect.getfile(kind))
    members = griffe.visit(kind.__module__, file, file.read_text())[kind.__name__].members
    rows = ((f"`{name}`", first_paragraph(_docstring(members[name]))) for name in kind.__members__)
    return table((word, "meaning"), rows)


def _docstring(member: griffe.Object | griffe.Alias) -> str:
    return "" if member.docstring is None else member.docstring.value


def _drawn(moves: Iterable[Move]) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for source, operation, target in moves:
        arrows.setdefault((source, target), []).append(operation)
    lines = [
        f"    {source} --> {target}: {', '.join(labels)}".removesuffix(": ")
        for (source, target), labels in arrows.items()
    ]
    names: Mapping[str, str] = {
        box: box.replace("_or_", " or ") for box in dict.fromkeys(state for arrow in arrows for state in arrow)
    }
    titles = [f'    state "{title}" as {box}' for box, title in names.items() if title != box]
    return "\n".join(["stateDiagram-v2", *titles, *lines, "    DEAD --> [*]", ""])
