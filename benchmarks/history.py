"""The checker of histories: what an operation costs, in a short history and in one ten times as long."""

from __future__ import annotations

import gc
from pathlib import Path
from statistics import median

from benchmarks.measurement import Figure, cpu_seconds, ratio
from tests.checker.check import check, violations
from tests.checker.healthy import TOPICS, Healthy

SIZES = (10_000, 100_000)
ROUNDS = 3
KEPT = 100
"""Offsets of a partition that are kept: so each look has about as many records in both histories."""


def measure(_: Path) -> list[Figure]:
    """Return the CPU seconds that checking takes, and the ratio of the cost of an operation."""
    figures, each_ms = [], []
    for size in SIZES:
        story = Healthy(seed=1, kept=KEPT).run(size)
        seconds = _check(story)
        each_ms.append(seconds * 1000 / len(story.history))
        figures.append(Figure(f"checking {size:,} operations", seconds, "s", "CPU; all rules, nothing wrong"))
    return [*figures, ratio("cost of an operation in the long history ÷ in the short one", each_ms[1], each_ms[0])]


def _check(story: Healthy) -> float:
    """Return the median of the CPU seconds; what the history itself holds is not looked through by the collector."""
    spent, evidence = [], story.evidence
    gc.collect()
    gc.freeze()
    for _ in range(ROUNDS):
        begun = cpu_seconds()
        findings = check(story.history, evidence, TOPICS)
        spent.append(cpu_seconds() - begun)
        if violations(findings):
            raise AssertionError("a history without a fault was flagged")
    gc.unfreeze()
    return median(spent)
