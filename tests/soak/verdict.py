"""What is judged of a soak, by which bounds, and its picture."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from benchmarks.curve import Curve, draw
from tests.soak.flatness import Bound, Series
from tests.soak.sampling import Row

BOUNDS: Mapping[str, Bound] = {
    "memory_mb": Bound(4, 0.05),
    "descriptors": Bound(4, 0.1),
    "threads": Bound(16, 0.25),
    "objects": Bound(20, 0.2),
    "requests_per_commit": Bound(5, 0.2),
    "commit_ms": Bound(50, 0.5),
}
"""By measure."""
_TITLES: Mapping[str, str] = {
    "memory_mb": "resident memory of each process that lives as long as the run, MB",
    "descriptors": "open descriptors",
    "threads": "threads",
    "objects": "objects in the store",
    "requests_per_commit": "requests of all processes for each committed transaction",
    "commit_ms": "median time of a commit, ms (the machine is shared by all)",
}
_DRAWN = 60


def series_of(rows: Sequence[Row], lasting: Collection[str]) -> dict[str, list[Series]]:
    """Return what is judged, by measure: of processes only those that live as long as the run."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {measure: {} for measure in BOUNDS}
    for row in rows:
        of_process = row.measure in {"memory_mb", "descriptors", "threads"}
        if row.measure in BOUNDS and (not of_process or row.subject in lasting):
            found[row.measure].setdefault(row.subject, []).append((row.seconds, row.value))
    return {
        measure: [Series(f"{measure} {subject}", points, BOUNDS[measure]) for subject, points in subjects.items()]
        for measure, subjects in found.items()
    }


def picture_of(series: Mapping[str, Sequence[Series]]) -> str:
    """Return an SVG of all series over minutes, each point the mean of its neighbours."""
    last = max(each.points[-1][0] for subjects in series.values() for each in subjects)
    edges = [last * number / _DRAWN for number in range(_DRAWN + 1)]
    minutes = [(begin + end) / 120 for begin, end in pairwise(edges)]
    charts = [
        (_TITLES[measure], [Curve(each.name.partition(" ")[2], _means(each, edges)) for each in subjects])
        for measure, subjects in series.items()
        if subjects
    ]
    return draw(minutes, charts, marked=[0.0, *(minutes[-1] * part / 4 for part in range(1, 5))], scale=float)


def _means(series: Series, edges: Sequence[float]) -> list[float]:
    means: list[float] = []
    for begin, end in pairwise(edges):
        inside = [value for seconds, value in series.points if begin < seconds <= end]
        means.append(fmean(inside) if inside else (means[-1] if means else series.points[0][1]))
    return means
