"""What a benchmark says: figures with their units, and ratios of figures of the same run."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
    return alternate_costs(runs, *variants)[0]


def alternate_costs(runs: int, *variants: Callable[[], None]) -> tuple[list[list[float]], list[list[float]]]:
    """Run the variants in turn; return the wall seconds of each and its CPU seconds (see :func:`cpu_seconds`)."""
    wall: list[list[float]] = [[] for _ in variants]
    cpu: list[list[float]] = [[] for _ in variants]
    for number in range(runs + 1):
        for index, variant in enumerate(variants):
            start, spent = time.perf_counter(), cpu_seconds()
            variant()
            if number:
                wall[index].append(time.perf_counter() - start)
                cpu[index].append(cpu_seconds() - spent)
    return wall, cpu


def cpu_seconds() -> float:
    """Return the CPU time of this process and all below it, those that have ended included."""
    stats = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program is in parentheses, and may hold anything.
            pid, fields = entry.parent.name, entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats.append((int(pid), int(fields[1]), sum(int(ticks) for ticks in fields[11:15])))
    family, grown = {os.getpid()}, True
    while grown:
        below = {pid for pid, parent, _ in stats if parent in family} - family
        family, grown = family | below, bool(below)
    ticks = sum(spent for pid, _, spent in stats if pid in family)
    return ticks / os.sysconf("SC_CLK_TCK")


def paired_ratio(name: str, ours: list[float], peer: list[float]) -> Figure:
    """Return the median of the ratios pair by pair, with their range."""
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    notes = f"median {median(ours):.2f} s ÷ {median(peer):.2f} s; pairs {ratios[0]:.2f}–{ratios[-1]:.2f}"
    return Figure(name, median(ratios), "×", notes)


def peak_memory_mib() -> float:
    """Return this process's peak resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
