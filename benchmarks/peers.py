"""Small transactions beside those of other table formats, of a Kafka broker, and of PostgreSQL, in turns of one run.

Page cache beside deltalake, PyIceberg, DuckLake and Kafka, whose files are not synced; synced beside PostgreSQL, which
does.  A transaction is timed from begin to the end of its commit: ours is published by then, Kafka's markers and
PostgreSQL's pages may still be on their way.  Table formats have no partitions of this kind: they append as many rows
to one table.

Each workload takes a minute of each contender, in turns of five seconds: what is written stays and grows.  For a try,
``BENCH_SECONDS=5``.  Kafka and PostgreSQL are started and ended here.  All but deltalake are no dependencies of this
project: one that is not there is left out, with a line that says what it needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from benchmarks import kafka_broker, postgres_cluster
from benchmarks.contenders import Contender, Deltalake, Team, Turn, TxnTable, Workload, team
from benchmarks.measurement import Figure, median_ratio
from benchmarks.table_formats import DuckLake, Iceberg, ducklake_missing, iceberg_missing

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
_TURN_S = min(5.0, SECONDS)
_TURNS = max(1, round(SECONDS / _TURN_S))
# At the beginning and at the end: what growth is judged by.
_EDGE = max(1, _TURNS // 4)
WORKLOADS = (
    Workload("1 record in 1 partition", "one", 1, 100),
    Workload("1 record in each of 10 partitions", "ten", 10, 100),
    Workload("1 record in each of 100 partitions", "hundred", 100, 100),
    Workload("8 processes, a topic each", "own", 1, 1, processes=8),
    Workload("8 processes, one partition", "shared", 1, 1, processes=8, shares=True),
)

Pair = tuple[Contender, Sequence[Contender]]
"""One of ours, and whom it is compared with."""


def measure(folder: Path) -> list[Figure]:
    """Return the rate of each contender in each workload, and ratios of ours to its peers'."""
    with ExitStack() as servers:
        unsynced: list[Contender] = [Deltalake(str(folder / "deltalake"))]
        synced: list[Contender] = []
        if _is_there("PyIceberg", iceberg_missing()):
            unsynced.append(Iceberg(str(folder / "iceberg")))
        if _is_there("DuckLake", ducklake_missing()):
            unsynced.append(DuckLake(str(folder / "ducklake")))
        if _is_there("Kafka", kafka_broker.missing()):
            unsynced.append(servers.enter_context(kafka_broker.kafka_broker(folder / "kafka")))
        if _is_there("PostgreSQL", postgres_cluster.missing()):
            synced.append(servers.enter_context(postgres_cluster.postgres_cluster()))
        url = str(folder / "txntable")
        pairs: list[Pair] = [(TxnTable(url, "page-cache"), unsynced), (TxnTable(url, "full"), synced)]
        return [figure for workload in WORKLOADS for figure in _compared(workload, pairs)]


def _is_there(name: str, needs: str | None) -> bool:
    if needs is not None:
        print(f"{name} is left out; it needs {needs}")
    return needs is None


def _compared(workload: Workload, pairs: Sequence[Pair]) -> Iterator[Figure]:
    contenders = [one for ours, peers in pairs for one in (ours, *peers)]
    for contender in contenders:
        contender.create(workload)
    with ExitStack() as stack:
        teams = {contender: stack.enter_context(team(contender, workload)) for contender in contenders}
        turns = _alternate(teams)
    for contender in contenders:
        yield _rate(f"{contender.name}, {workload.name}", turns[contender])
    for ours, peers in pairs:
        for peer in peers:
            ratios = [mine.rate / theirs.rate for mine, theirs in zip(turns[ours], turns[peer], strict=True)]
            yield median_ratio(f"{ours.name} ÷ {peer.name}, {workload.name}", ratios)


def _alternate(teams: dict[Contender, Team]) -> dict[Contender, list[Turn]]:
    """Let all work in turns, every other round in reverse; one round before is not counted."""
    turns: dict[Contender, list[Turn]] = {contender: [] for contender in teams}
    for number in range(_TURNS + 1):
        for contender in list(teams)[:: 1 if number % 2 else -1]:
            turn = teams[contender].work(_TURN_S)
            if number:
                turns[contender].append(turn)
    return turns


def _rate(name: str, turns: Sequence[Turn]) -> Figure:
    latencies = sorted(1000 * latency for turn in turns for latency in turn.latencies_s)
    rates = [turn.rate for turn in turns]
    growth = median(rates[-_EDGE:]) / median(rates[:_EDGE])
    notes = (
        f"{len(latencies):,} in all; median {median(latencies):.1f} ms, p99 {quantiles(latencies, n=100)[-1]:.1f} ms; "
        f"turns {min(rates):,.0f}–{max(rates):,.0f}; last ÷ first turns {growth:.2f}; "
        f"{sum(turn.failures for turn in turns)} failed"
    )
    return Figure(name, median(rates), "/s", notes)
