"""The demo's story, from the first month to the report: load, derive, derive again, look.

Owns the order of the chapters and the closing lines; each chapter is a module of its own.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from txntable.cli.output import Rows
from txntable.jobs.flights import loading as flights_loading
from txntable.jobs.flights import route_delays
from txntable.jobs.flights import source as flights_source
from txntable.jobs.flights.report import (
    FlightsReport,
    check_flights,
    checks_table,
    column_of,
    columns_table,
    events_table,
)
from txntable.jobs.flights.story import Story
from txntable.warehouse.warehouse import Warehouse

TOPICS = (flights_loading.TOPIC, route_delays.TOPIC)
CHAPTERS_OF_THE_REPORT = 6
STEPS_OF_THE_DELAYS = 4
EXAMPLE_QUERY = (
    "SELECT carrier, count(*) AS flights, round(avg(arr_delay), 1) AS mean_delay "
    "FROM flights GROUP BY carrier ORDER BY mean_delay DESC"
)

Report = dict[str, Rows | Sequence[str]]


@dataclass(frozen=True, slots=True)
class Trip:
    """What a run of the demo brings where.

    Attributes
    ----------
    source : pathlib.Path
        The package's file.
    folder : pathlib.Path
        For the months as Parquet; empty, and gone afterwards.
    months : sequence of int
        Which.
    url : str
        The warehouse, as the user wrote it.
    """

    source: Path
    folder: Path
    months: Sequence[int]
    url: str


def run_demo(warehouse: Warehouse, spark: SparkSession, trip: Trip, story: Story) -> Report:
    """Run the demo and return its report; what fails is in the story's checks.

    Parameters
    ----------
    warehouse : Warehouse
        New, or of an earlier run.
    spark : SparkSession
        With Delta, for the demo alone: its settings are changed.
    trip : Trip
        What to bring.
    story : Story
        Is told what happens.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", str(route_delays.PARTITIONS))
    flights_loading.create_topic(warehouse)
    route_delays.create_topic(warehouse)
    flights_source.stage_months(flights_source.read_flights(trip.source, trip.months), trip.folder)
    with story.chapter("flights, month by month", len(trip.months)):
        loading = flights_loading.FlightsLoading(warehouse, spark.read.parquet(str(trip.folder)), story)
        loaded = loading.load(trip.months)
        committed = loading.committed_months()
    _derive(warehouse, spark, committed, story)
    with story.chapter("looking at the result", CHAPTERS_OF_THE_REPORT):
        report = FlightsReport(warehouse, spark)
        sections = _look(report, trip, committed, story)
    return {**sections, "closing": _closing(warehouse, report.public_table(flights_loading.TOPIC), trip, loaded)}


def _derive(warehouse: Warehouse, spark: SparkSession, months: Sequence[int], story: Story) -> None:
    report = FlightsReport(warehouse, spark)
    with story.chapter("delays by route and day", STEPS_OF_THE_DELAYS):
        earlier = report.committed(route_delays.TOPIC)
        runs = route_delays.derive_delays(warehouse, spark, months, story)
        story.check("transactions of the delays", runs, report.committed(route_delays.TOPIC) - earlier)
        before = report.versions(TOPICS)
        story.step("once more")
        again = route_delays.run(warehouse, spark, story)
    story.check("offsets that one more run of the delays reads", 0, again.offsets)
    story.check("table versions after one more run", _text(before), _text(report.versions(TOPICS)))


def _text(versions: dict[str, tuple[int, int | None]]) -> str:
    return ", ".join(f"{topic} {log}/{public}" for topic, (log, public) in versions.items())


def _look(report: FlightsReport, trip: Trip, committed: Sequence[int], story: Story) -> Report:
    story.step("transactions")
    transactions = report.transactions(TOPICS)
    story.advance()
    story.step("records by isolation level")
    records = report.records(TOPICS)
    story.advance()
    story.step("the source file")
    source = flights_source.digest_source(trip.source, committed)
    story.advance()
    story.step("the public table, by plain Spark SQL")
    table = report.digest_flights(flights_loading.TOPIC)
    story.advance()
    check_flights(story, source, table)
    story.advance()
    story.check("flights in the snapshot", source.rows, column_of(records, "snapshot")[flights_loading.TOPIC])
    story.step("the delays, by a batch computation")
    flights, different = report.compare_delays()
    story.check("flights that the delays speak of", source.rows, flights)
    story.check("routes and days whose delays differ from a computation of all flights at once", 0, different)
    story.check(
        "committed transactions of flights",
        len(committed),
        column_of(transactions, "committed")[flights_loading.TOPIC],
    )
    return {
        "events": events_table(story),
        "transactional_ids": report.transactional_ids(),
        "transactions": transactions,
        "records": records,
        "columns": columns_table(source, table, f"delta.`…/topics/{flights_loading.TOPIC}`"),
        "checks": checks_table(story),
    }


def _closing(warehouse: Warehouse, public_table: str, trip: Trip, loaded: tuple[int, int]) -> list[str]:
    written, skipped = loaded
    where = f"--warehouse {shlex.quote(trip.url)}"
    program = command_name()
    return [
        *([] if written else [f"All {skipped} months had committed in an earlier run: this one wrote nothing.", ""]),
        f"The warehouse is {warehouse.url}; its public table is a Delta table like any other:",
        f"  SELECT count(*) FROM {public_table}",
        "",
        "What to try next" + (", with the same --storage-option:" if warehouse.store.spec.options else ":"),
        f"  {program} topics list {where}",
        f"  {program} topics describe {flights_loading.TOPIC} {where}",
        f"  {program} transactions list {where} --output json",
        f"  {program} sql {where} {shlex.quote(EXAMPLE_QUERY)}",
        f"  {program} demo {where}" + ("" if len(trip.months) == 12 else f" --months {len(trip.months)}"),
    ]


def command_name() -> str:
    """Return how the shell of this process finds ``txntable``: its name, or a path where that is not enough."""
    started = Path(sys.argv[0])
    if started.name != "txntable" or not started.exists() or shutil.which("txntable") == str(started):
        return "txntable"
    return min(os.path.relpath(started), str(started.absolute()), key=len)
