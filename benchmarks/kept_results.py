"""Results that are kept: the figures of a benchmark's last run that is worth quoting, a file for each.

Owns the files in ``benchmarks/results``.  What ran on a version of Spark is kept by that version, so that one machine's
runs on several stand side by side; so is what ran at another scale than 1.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.lineitem import SCALE
from benchmarks.measurement import Figure

FOLDER = Path(__file__).parent / "results"
_TOLD = ("pyspark", "delta-spark", "pyarrow", "deltalake", "confluent-kafka", "psycopg")


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of a benchmark measured, and where.

    Attributes
    ----------
    day : str
        ISO date.
    cores : int
        That the process could use.
    load : float
        Processes that wanted a core in the minute before the run began: what made it noisy.
    versions : dict of str to str
        Of libraries, and of Python.
    figures : dict of str to Figure
        By name.
    """

    day: str
    cores: int
    load: float
    versions: dict[str, str]
    figures: dict[str, Figure]


def load_now() -> float:
    """Return how many processes wanted a core in the last minute."""
    return os.getloadavg()[0]


def keep(benchmark: str, figures: Sequence[Figure], day: date, load: float) -> Path:
    """Write the result of a benchmark that has just run in this process, instead of its last one.

    Parameters
    ----------
    benchmark : str
        Its name.
    figures : sequence of Figure
        In the order in which people read them.
    day : date
        On which it ran.
    load : float
        Before it began; see :func:`load_now`.
    """
    versions = {name: importlib.metadata.version(name) for name in _TOLD if _is_used(name)}
    spark = f"-spark{'.'.join(versions['pyspark'].split('.')[:2])}" if "pyspark" in versions else ""
    scale = "" if SCALE == "1" else f"-scale{SCALE}"
    path = FOLDER / f"{benchmark}{spark}{scale}.json"
    written = {
        "day": day.isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(load, 1),
        "versions": {"python": ".".join(map(str, sys.version_info[:3])), **versions},
        "figures": [asdict(figure) for figure in figures],
    }
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def kept(name: str) -> Result:
    """Return what is kept under the name of a file, without its ending."""
    read: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    figures = [Figure(**{**each, "interval": _pair(each["interval"])}) for each in read.pop("figures")]
    return Result(**read, figures={figure.name: figure for figure in figures})


def _is_used(distribution: str) -> bool:
    return distribution.replace("-spark", "").replace("-", "_") in sys.modules


def _pair(interval: list[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])
