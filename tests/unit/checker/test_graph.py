"""Cycles in a graph of transactions."""

from __future__ import annotations

import pytest

from tests.checker.graph import cycles


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({}, []),
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}, []),
        ({"a": {"b"}, "b": {"a"}}, ["ab"]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, ["abc", "de"]),
        ({"a": {"b", "d"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}, ["ad", "bc"]),
    ],
)
def test_what_reaches_itself_is_found(edges: dict[str, set[str]], expected: list[str]) -> None:
    assert sorted("".join(sorted(each)) for each in cycles(edges)) == expected


def test_a_cycle_longer_than_the_stack_of_python_is_found() -> None:
    length = 20_000
    edges = {str(node): {str((node + 1) % length)} for node in range(length)}
    assert [len(each) for each in cycles(edges)] == [length]
