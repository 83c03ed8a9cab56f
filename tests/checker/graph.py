"""Cycles in a graph of transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Search:
    """Tarjan's algorithm without recursion: histories are longer than Python's stack."""

    edges: Mapping[str, set[str]]
    order: dict[str, int] = field(default_factory=dict)
    lowest: dict[str, int] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    on_path: set[str] = field(default_factory=set)

    def enter(self, node: str) -> tuple[str, Iterator[str]]:
        self.order[node] = self.lowest[node] = len(self.order)
        self.path.append(node)
        self.on_path.add(node)
        return node, iter(sorted(self.edges.get(node, ())))

    def component(self, node: str) -> frozenset[str]:
        found: list[str] = []
        while not found or found[-1] != node:
            found.append(self.path.pop())
        self.on_path.difference_update(found)
        return frozenset(found)

    def from_root(self, root: str) -> Iterator[frozenset[str]]:
        stack = [self.enter(root)]
        while stack:
            node, following = stack[-1]
            for other in following:
                if other not in self.order:
                    stack.append(self.enter(other))
                    break
                if other in self.on_path:
                    self.lowest[node] = min(self.lowest[node], self.order[other])
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    self.lowest[above] = min(self.lowest[above], self.lowest[node])
                if self.lowest[node] == self.order[node]:
                    yield self.component(node)


def cycles(edges: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """Return the sets of nodes that reach each other, of two and more.

    Parameters
    ----------
    edges : mapping of str to set of str
        From each node, to which others; never to itself.
    """
    search = _Search(edges)
    for root in edges:
        if root not in search.order:
            yield from (each for each in search.from_root(root) if len(each) > 1)
