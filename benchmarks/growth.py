"""What a process pays before its first record, with 1,000 to 1,000,000 live segments: ours, and deltalake's.

The log is synthetic (no data files), maintained: one checkpoint.  Each measurement is a process of its own, because
what one has opened stays in memory; it has done the same with a warehouse of 100 segments before, so that imports are
not counted.  deltalake opens the public table and lists its files: it has no last stable offset and no positions.
Draws ``growth.svg``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa

from benchmarks.cold_start import PARTITIONS, SyntheticFile, fill
from benchmarks.curve import Curve, draw
from benchmarks.measurement import Figure, median_ratio, rounds
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(5)
POINTS = (1_000, 10_000, 100_000, 1_000_000)
_TOPIC = "big"
_PICTURE = Path(__file__).with_suffix(".svg")

_PROGRAMS = {
    "plan of one partition": """
        def run(url):
            reader = Warehouse.open(url).topic_reader("big")
            reader.catch_up()
            view = reader.view(IsolationLevel.READ_COMMITTED)
            ends = {partition: bounds.end for partition, bounds in view.bounds.items()}
            return sum(1 for _ in view.plan({**ends, 7: 0}, ends))
    """,
    "last stable offset": """
        def run(url):
            place = TopicPartition("big", 7)
            with Warehouse.open(url).consumer() as consumer:
                return consumer.end_offsets([place])[place]
    """,
    "deltalake, list of files": """
        def run(url):
            return len(DeltaTable(f"{url}/topics/big").file_uris())
    """,
}
_OPEN, _STABLE, _DELTALAKE = _PROGRAMS
_FRAME = """
import json, re, sys, time
from pathlib import Path
from deltalake import DeltaTable
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse
{program}
def peak_mib():
    # Not of getrusage: that begins with what the process had that forked this one.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
run(sys.argv[1])
held, spent, began = peak_mib(), time.process_time(), time.perf_counter()
found = run(sys.argv[2])
print(json.dumps([time.perf_counter() - began, time.process_time() - spent, peak_mib() - held, found]))
"""


def measure(folder: Path) -> list[Figure]:
    """Return seconds and memory at each point, and their ratios to deltalake's; draw them."""
    most = int(os.environ.get("TXNTABLE_GROWTH", POINTS[-1]))
    points = [point for point in POINTS if point <= most]
    tiny = _warehouse(folder / "tiny", PARTITIONS)
    costs = {point: _costs(tiny, _warehouse(folder / str(point), point), point) for point in points}
    if most == POINTS[-1]:
        _PICTURE.write_text(_drawn(costs))
    return [figure for point in points for figure in _figures(point, costs[point])]


Costs = dict[str, list[tuple[float, float, float]]]
"""By program: seconds, CPU seconds and MiB of each round."""


def _warehouse(folder: Path, segments: int) -> str:
    warehouse = Warehouse.create(str(folder), durability="page-cache")
    schema = pa.schema([pa.field("x", pa.int64())])
    topic_id = warehouse.admin().create_topic(_TOPIC, partitions=PARTITIONS, schema=schema).topic_id
    fill(warehouse.topic_log(_TOPIC), topic_id, SyntheticFile(), segments)
    return warehouse.url


def _costs(tiny: str, url: str, segments: int) -> Costs:
    each = segments // PARTITIONS
    # Ten records a segment.
    expected = {_OPEN: each, _STABLE: 10 * each, _DELTALAKE: segments}
    costs: Costs = {name: [] for name in _PROGRAMS}
    for number in range(ROUNDS + 1):
        for name, program in _PROGRAMS.items():
            *cost, found = _run(program, tiny, url)
            if found != expected[name]:
                raise RuntimeError(f"{name}: found={found} expected={expected[name]}")
            if number:
                costs[name].append((cost[0], cost[1], cost[2]))
    return costs


def _run(program: str, *urls: str) -> list[float]:
    source = _FRAME.replace("{program}", textwrap.dedent(program))
    ended = subprocess.run([sys.executable, "-c", source, *urls], check=True, capture_output=True, text=True)
    read: list[float] = json.loads(ended.stdout)
    return read


def _figures(segments: int, costs: Costs) -> Iterator[Figure]:
    for name, measured in costs.items():
        notes = f"{median(cpu for _, cpu, _ in measured):.2f} s of CPU, {median(mib for *_, mib in measured):.0f} MiB"
        yield Figure(f"{name}, {segments:,} segments", median(wall for wall, *_ in measured), "s", notes)
    for name in (_OPEN, _STABLE):
        ratios = [ours[0] / peer[0] for ours, peer in zip(costs[name], costs[_DELTALAKE], strict=True)]
        yield median_ratio(f"{name} ÷ {_DELTALAKE}, {segments:,} segments", ratios)


def _drawn(costs: dict[int, Costs]) -> str:
    titles = ("seconds of a new process", "its CPU seconds", "memory, MiB")
    charts = [
        (
            title,
            [Curve(name, [median(one[part] for one in each[name]) for each in costs.values()]) for name in _PROGRAMS],
        )
        for part, title in enumerate(titles)
    ]
    return draw([*costs], charts)
