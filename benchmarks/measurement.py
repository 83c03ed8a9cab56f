"""What a benchmark says: figures with their units, and ratios of figures of the same run."""

from __future__ import annotations

import functools
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
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
    """

    name: str
    value: float
    unit: str
    notes: str = ""


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
    """Return the median of the ratios pair by pair, with their range."""
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    notes = f"median {median(ours):.2f} s ÷ {median(peer):.2f} s; pairs {ratios[0]:.2f}–{ratios[-1]:.2f}"
    return Figure(name, median(ratios), "×", notes)


def peak_memory_mib() -> float:
    """Return this process's peak resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
