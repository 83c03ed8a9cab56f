"""What a soak measures every ten seconds: of each process its memory, descriptors, threads and calls; of the store its
objects and requests.

Owns the series' names.  Reads /proc and the processes' histories; asks the product nothing.
"""

from __future__ import annotations

import csv
import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.chaos.scenario import Who
from txntable.runtime.environment import SystemEnvironment

EVERY_S = 10.0
_COMMITS = 5
"""What comes to one commit is told of so many at least."""
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
_RETURNED = re.compile(rb'"operation":\{"process":"([^"]+)","invoked":(\d+),"returned":(\d+),"outcome":"OK"')
_COMMIT = re.compile(rb'"call":\{"txn":"[^"]*","commit":true')
_CALL = re.compile(rb'"call":"(\w+)"')
_LAYERS = (
    (re.compile(r"/_delta_log/.*checkpoint"), "checkpoints"),
    (re.compile(r"transaction_log/_delta_log/"), "T: transaction log"),
    (re.compile(r"offset_log/_delta_log/"), "O: offset log"),
    (re.compile(r"_segments/_delta_log/"), "S: segment logs"),
    (re.compile(r"topics/[^/]+/_delta_log/"), "P: public logs"),
    (re.compile(r"/(?:markers|state)/"), "markers, state entries"),
    (re.compile(r"\.parquet$"), "segments"),
)
LAYERS = (*(name for _, name in _LAYERS), "others")
"""What an object can be."""


def layer_of(path: str) -> str:
    """Return which of :data:`LAYERS` an object is of."""
    return next((name for pattern, name in _LAYERS if pattern.search(path)), LAYERS[-1])


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: when (seconds since the start), of what, which, how much."""

    seconds: float
    subject: str
    measure: str
    value: float


def of_process(process_id: int) -> Mapping[str, float]:
    """Return memory, descriptors and threads of a process; nothing where it is gone."""
    proc = Path(f"/proc/{process_id}")
    try:
        resident = int((proc / "statm").read_text().split()[1]) * _PAGE_MB
        return {
            "memory_mb": resident,
            "descriptors": len(os.listdir(proc / "fd")),
            "threads": len(os.listdir(proc / "task")),
        }
    except (FileNotFoundError, ProcessLookupError):
        return {}


@dataclass
class Histories:
    """The processes' histories, read on from where they ended at the last look."""

    folder: Path
    _ends: dict[Path, int] = field(default_factory=dict)

    def returned(self) -> Iterator[tuple[str, str, bool, float]]:
        """Yield who made which call that returned since, whether it committed, and how long it took, ms."""
        for history in sorted(self.folder.glob("*.jsonl")):
            with history.open("rb") as file:
                file.seek(self._ends.get(history, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._ends[history] = self._ends.get(history, 0) + len(line)
                    found, call = _RETURNED.search(line), _CALL.search(line)
                    if found is not None and call is not None:
                        took_ms = (int(found[3]) - int(found[2])) / 1e6
                        yield found[1].decode(), call[1].decode(), _COMMIT.search(line) is not None, took_ms


@dataclass
class Sampler:
    """Takes a sample every ten seconds, and writes it down.

    Parameters
    ----------
    serving : callable
        Returns the processes' ids.
    histories : Histories
        Of the processes.
    objects : callable
        Returns the paths of all objects.
    requests : callable
        Returns how many requests the server has answered.
    file : Path
        A CSV file: seconds, subject, measure, value.
    """

    serving: Callable[[], Mapping[Who, int]]
    histories: Histories
    objects: Callable[[], list[str]]
    requests: Callable[[], int]
    file: Path
    rows: list[Row] = field(default_factory=list)
    _commits_ms: list[float] = field(default_factory=list)
    _requests: int = 0

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Go on until the end."""
        over = threading.Event()
        thread = threading.Thread(target=self._go_on, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _go_on(self, over: threading.Event) -> None:
        environment = SystemEnvironment()
        began, before = environment.instant(), self.requests()
        with self.file.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("seconds", "subject", "measure", "value"))
            while not over.wait(EVERY_S):
                now = self.requests()
                taken = list(self._sample(environment.since_ms(began) / 1000, now - before))
                before = now
                writer.writerows((row.seconds, row.subject, row.measure, f"{row.value:.6g}") for row in taken)
                file.flush()
                self.rows += taken

    def _sample(self, seconds: float, requests: int) -> Iterator[Row]:
        for (role, name), process_id in self.serving().items():
            for measure, value in of_process(process_id).items():
                yield Row(seconds, f"{role} {name}", measure, value)
        layers = Counter(map(layer_of, self.objects()))
        for layer in LAYERS:
            yield Row(seconds, layer, "objects", layers[layer])
        times, before = defaultdict[str, list[float]](list), len(self._commits_ms)
        for process, call, commits, took_ms in self.histories.returned():
            times[process.rpartition("-")[0].replace("-", " ", 1)].append(took_ms)
            if commits and call == "End":
                self._commits_ms.append(took_ms)
        self._requests += requests
        yield Row(seconds, "store", "requests", requests)
        yield Row(seconds, "all", "committed", len(self._commits_ms) - before)
        if len(self._commits_ms) >= _COMMITS:
            yield Row(seconds, "all", "requests_per_commit", self._requests / len(self._commits_ms))
            yield Row(seconds, "all", "commit_ms", median(self._commits_ms))
            self._commits_ms, self._requests = [], 0
        for process, each in times.items():
            yield Row(seconds, process, "calls", len(each))
            yield Row(seconds, process, "call_ms", median(each))


def read_rows(file: Path) -> list[Row]:
    """Return what a sampler has written."""
    with file.open(newline="") as opened:
        return [
            Row(float(row["seconds"]), row["subject"], row["measure"], float(row["value"]))
            for row in csv.DictReader(opened)
        ]
