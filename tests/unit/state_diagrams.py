"""The tables of states as PROTOCOL.md draws them: Mermaid, one line for each pair of states."""

from __future__ import annotations

from collections.abc import Iterable

from txntable.coordinator import group_state, transaction_state
from txntable.coordinator.group_state import GroupState


def transaction_state_diagram() -> str:
    moves = (
        (state.value, operation.value, following.value)
        for (state, operation), following in transaction_state.VALID_TRANSITIONS.items()
    )
    return _drawn([("[*]", "INIT", "EMPTY"), *moves])


def group_state_diagram() -> str:
    moves = (
        (state.value, operation.value, following.value)
        for (state, operation), followings in group_state.VALID_TRANSITIONS.items()
        for following in sorted(followings, key=list(GroupState).index)
    )
    return _drawn([("[*]", "", "EMPTY"), *moves])


def _drawn(moves: Iterable[tuple[str, str, str]]) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for source, operation, target in moves:
        arrows.setdefault((source, target), []).append(operation)
    lines = [
        f"    {source} --> {target}: {', '.join(labels)}".removesuffix(": ")
        for (source, target), labels in arrows.items()
    ]
    return "\n".join(["stateDiagram-v2", *lines, "    DEAD --> [*]", ""])
