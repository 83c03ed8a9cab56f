"""What a benchmark says: figures with their units, and ratios of figures of the same run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


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
    seconds: list[list[float]] = [[] for _ in variants]
    for number in range(runs + 1):
        for index, variant in enumerate(variants):
            start = time.perf_counter()
            variant()
            if number:
                seconds[index].append(time.perf_counter() - start)
    return seconds


def paired_ratio(name: str, ours: list[float], peer: list[float]) -> Figure:
    """Return the median of the ratios pair by pair, with their range."""
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    notes = f"median {median(ours):.2f} s ÷ {median(peer):.2f} s; pairs {ratios[0]:.2f}–{ratios[-1]:.2f}"
    return Figure(name, median(ratios), "×", notes)


def peak_memory_mib() -> float:
    """Return this process's peak resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
