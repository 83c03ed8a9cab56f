"""Each anomaly: a history that has it is flagged with its number, one that looks alike passes."""

from __future__ import annotations

import pytest

from tests.checker.anomalies import ANOMALIES
from tests.checker.check import check, violations
from tests.unit.checker import (
    bounds_cases,
    group_cases,
    poll_cases,
    read_cases,
    store_cases,
    transaction_cases,
    write_cases,
)
from tests.unit.checker.story import Case, Story

CASES = [
    *write_cases.CASES.all,
    *read_cases.CASES.all,
    *bounds_cases.CASES.all,
    *poll_cases.CASES.all,
    *transaction_cases.CASES.all,
    *group_cases.CASES.all,
    *store_cases.CASES.all,
]
REPORTED = {anomaly.number for anomaly in ANOMALIES if not anomaly.violation}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exactly_the_anomalies_of_a_history_are_found(case: Case) -> None:
    story = Story()
    case.tell(story)
    findings = check(story.history, story.evidence, story.topics)
    found = findings if case.found else violations(findings)
    assert {each.number for each in found} == case.found, findings


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: f"{anomaly.number}-{anomaly.name}")
def test_there_is_a_history_that_has_an_anomaly_and_one_that_looks_alike(anomaly) -> None:
    mine = [case for case in CASES if case.number == anomaly.number]
    assert any(case.found for case in mine)
    assert any(not case.found for case in mine)


def test_the_anomalies_are_numbered_without_a_gap() -> None:
    assert [anomaly.number for anomaly in ANOMALIES] == list(range(1, 35))


def test_only_circular_writes_are_no_violation() -> None:
    assert {9} == REPORTED


def test_nothing_is_found_where_nothing_happened() -> None:
    assert check([]) == []
