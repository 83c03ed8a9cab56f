"""Logs as numbers: each history that a log can have is a node of a tree, and its state is folded once.

A world holds a log as the number of its node, and a view of it as the number of an earlier one: to
compare two worlds is to compare numbers.  Must not know what the entries mean.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

E = TypeVar("E", bound=Hashable)
S = TypeVar("S")


class LogTree(Generic[E, S]):
    """All histories of one log.

    Parameters
    ----------
    empty : state
        Of the log without entries, which is node 0.
    fold : callable
        (state, version, entry) -> the state after it.
    """

    def __init__(self, empty: S, fold: Callable[[S, int, E], S]) -> None:
        self._fold = fold
        self._states = [empty]
        self._versions = [0]
        self._parents = [0]
        self._entries: list[E | None] = [None]
        self._children: dict[tuple[int, E], int] = {}

    def put(self, head: int, entry: E) -> int:
        """Return the log with one more entry."""
        node = self._children.get((head, entry))
        if node is None:
            node = self._children[head, entry] = len(self._states)
            version = self._versions[head] + 1
            self._states.append(self._fold(self._states[head], version, entry))
            self._versions.append(version)
            self._parents.append(head)
            self._entries.append(entry)
        return node

    def state(self, node: int) -> S:
        """Return what the log says at a node."""
        return self._states[node]

    def entry(self, node: int) -> E:
        """Return the last entry of a log that has any."""
        entry = self._entries[node]
        assert entry is not None
        return entry

    def version(self, node: int) -> int:
        """Return how many entries there are at a node."""
        return self._versions[node]

    def parent(self, node: int) -> int:
        """Return the log without its last entry."""
        return self._parents[node]

    def at(self, node: int, version: int) -> int:
        """Return the log as it was at an earlier version."""
        while self._versions[node] > version:
            node = self._parents[node]
        return node
