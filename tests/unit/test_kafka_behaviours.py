"""The tables of Kafka's behaviours are whole, and name tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.kafka.behaviour import Behaviour
from tests.kafka_behaviours import ANSWERS, BEHAVIOURS

TESTS = Path(__file__).parents[1]
NUMBERS = [str(number) for number in range(1, 121)]
ANSWER_NUMBERS = [
    *(f"10.{number}" for number in (*range(1, 15), *range(20, 27), *range(29, 32))),
    "1.5",
    "retry matrix",
]


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of a file's tests: functions, also in classes, and state machines, which are assigned to a name."""
    names = set()
    for node in ast.walk(ast.parse((TESTS / path).read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name) and target.id[:4] == "Test"}
    return frozenset(names)


def test_every_behaviour_is_there_once_and_in_order() -> None:
    assert [behaviour.number for behaviour in BEHAVIOURS] == NUMBERS


def test_every_answer_is_there_once_and_in_order() -> None:
    assert [answer.number for answer in ANSWERS] == ANSWER_NUMBERS


@pytest.mark.parametrize("behaviour", [*BEHAVIOURS, *ANSWERS], ids=lambda behaviour: behaviour.number)
def test_behaviour_names_tests_that_exist_or_says_why_there_are_none(behaviour: Behaviour) -> None:
    missing = [
        f"{path}::{name}"
        for path, names in behaviour.tests.items()
        for name in names
        if not (TESTS / path).is_file() or name not in names_in(path)
    ]

    assert missing == []
    assert behaviour.statement
    assert behaviour.test_ids or behaviour.note
    assert len(behaviour.test_ids) == len(set(behaviour.test_ids))
