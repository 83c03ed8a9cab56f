"""What a benchmark says: figures with their units, and ratios of figures of the same run."""

from __future__ import annotations

import functools
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

from benchmarks.cpu_account import SampledCpu


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes
    ----------
    name : str
        What was measured.
    value : float
        The number.
    unit : str
        ``s``, ``commits/s``, ``×`` (a ratio) …
    notes : str
        What one must know to read it.
    interval : (float, float), optional
        Where the true median lies with a confidence of 95 %; of less than six rounds that cannot be said, and it is
        their range.
    rounds : int, optional
        Of how many rounds this is the median.
    """

    name: str
    value: float
    unit: str
    notes: str = ""
    interval: tuple[float, float] | None = None
    rounds: int | None = None


def rounds(usual: int) -> int:
    """Return how many rounds are counted: ``BENCH_ROUNDS``, for a try or for a night; else the usual number."""
    return int(os.environ.get("BENCH_ROUNDS", usual))


def ratio(name: str, ours: float, peer: float) -> Figure:
    """Return ours ÷ peer."""
    return Figure(name, ours / peer, "×")


def alternate(runs: int, *variants: Callable[[], None]) -> list[list[float]]:
    """Run the variants in turn, and return the wall seconds of each; one round before is not counted."""
    return alternate_costs(runs, *variants)[0]


def alternate_costs(
    runs: int, *variants: Callable[[], None], clean: Callable[[], None] = lambda: None
) -> tuple[list[list[float]], list[list[float]]]:
    """Run the variants in turn; return the wall seconds of each and its CPU seconds (see :func:`cpu_seconds`).

    After each, `clean` takes away what it has left behind: that is not measured.
    """
    wall: list[list[float]] = [[] for _ in variants]
    cpu: list[list[float]] = [[] for _ in variants]
    for number in range(runs + 1):
        for index, variant in enumerate(variants):
            spent, start = cpu_seconds(), time.perf_counter()
            variant()
            took, used = time.perf_counter() - start, cpu_seconds() - spent
            if number:
                wall[index].append(took)
                cpu[index].append(used)
            clean()
    return wall, cpu


@functools.cache
def _account() -> SampledCpu:
    return SampledCpu()


def cpu_seconds() -> float:
    """Return the CPU time of this process and all below it, those that have ended included, since any earlier call."""
    return _account().seconds()


def paired_ratio(name: str, ours: list[float], peer: list[float]) -> Figure:
    """Return the median of the ratios pair by pair, with its interval."""
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return median_ratio(name, ratios, f"median {median(ours):.2f} s ÷ {median(peer):.2f} s; ")


def median_ratio(name: str, ratios: Sequence[float], notes: str = "") -> Figure:
    """Return the median of ratios, one of each round, with its interval; `notes` go before what is said of these."""
    low, high = median_interval(ratios)
    said = f"{low:.2f}–{high:.2f}, of {len(ratios)} rounds {min(ratios):.2f}–{max(ratios):.2f}"
    return Figure(name, median(ratios), "×", notes + said, (low, high), len(ratios))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return between which two of the values the median of all possible ones lies, with a confidence of 95 %.

    That is the sign test's interval, which assumes nothing but that the values are independent: each is above the true
    median as likely as below it.  Of less than six values it is their range, whose confidence is lower.
    """
    ordered = sorted(values)
    count, left_out = len(ordered), 0
    while 2 * sum(comb(count, below) for below in range(left_out + 2)) <= 0.05 * 2**count:
        left_out += 1
    return ordered[left_out], ordered[count - 1 - left_out]


def peak_memory_mib() -> float:
    """Return this process's peak resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
