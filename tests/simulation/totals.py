"""The figures of many runs, for reports."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.playing import Played


@dataclass
class Totals:
    """What happened in many runs, for reports."""

    runs: Counter[str] = field(default_factory=Counter)
    fair: int = 0
    steps: int = 0
    processes: int = 0
    kills: int = 0
    jumps: int = 0
    clocks: int = 0
    pauses: int = 0
    bursts: int = 0
    landed: int = 0
    met: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, int, str]] = field(default_factory=list)

    def add(self, name: str, seed: int, played: Played) -> None:
        """Count one run."""
        counts = played.counts
        self.runs[name] += 1
        self.fair += played.fair
        self.steps += played.steps
        self.processes += len(played.names)
        self.kills += counts.kills
        self.jumps += counts.jumps
        self.clocks += counts.clocks
        self.pauses += counts.pauses
        self.bursts += counts.bursts
        self.landed += counts.landed
        self.reached.update(counts.reached)
        self.met.update({f"{fault.name} {operation}": many for (fault, operation), many in counts.met.items()})
        if played.failure is not None:
            self.failed.append((name, seed, played.failure.kind))

    def merge(self, other: Totals) -> None:
        """Count what another has counted."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)

    def encode(self, seconds: float) -> str:
        """Return it as JSON, with how long it took."""
        faults: dict[str, dict[str, int]] = {}
        for met, many in sorted(self.met.items()):
            fault, operation = met.split(" ")
            faults.setdefault(fault, {})[operation] = many
        numbers = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        runs = {"runs": self.runs.total(), "worlds": dict(sorted(self.runs.items()))}
        reached = {"reached": dict(sorted(self.reached.items()))}
        found = {
            **runs,
            **numbers,
            "faults": faults,
            **reached,
            "failures": len(self.failed),
            "seconds": round(seconds),
        }
        return json.dumps(found, indent=2)
