"""Checks a history: all rules, over what clients were told and saw and what the store shows in the end."""

from __future__ import annotations

from collections.abc import Sequence

from tests.checker.anomalies import ANOMALIES
from tests.checker.evidence import Evidence
from tests.checker.finding import Finding
from tests.checker.history_index import Index
from tests.checker.operations import Operation, Topics


def check(
    history: Sequence[Operation], evidence: Evidence | None = None, topics: Topics | None = None
) -> list[Finding]:
    """Find every anomaly of a history.

    Parameters
    ----------
    history : sequence of Operation
        Of all processes, in any order.
    evidence : Evidence, optional
        What the store shows in the end; default: nothing is known, and rules that rest on it find nothing.
    topics : Topics, optional
        Which topics are special; default: none.

    Returns
    -------
    list of Finding
        By number; those that are no violation, too.
    """
    index = Index(history, evidence or Evidence(), topics or Topics())
    return [
        Finding(anomaly.number, anomaly.name, facts, anomaly.violation)
        for anomaly in ANOMALIES
        for facts in anomaly.rule(index)
    ]


def violations(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are a fault."""
    return [each for each in findings if each.violation]
