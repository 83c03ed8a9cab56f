"""The main job, end to end on two months of the real flights; then again on the same warehouse."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner, Result

from txntable.cli.main import application
from txntable.jobs.flights import command as flights
from txntable.jobs.flights.report import check_flights
from txntable.jobs.flights.source import digest_source, find_source, read_flights
from txntable.jobs.flights.story import Story
from txntable.jobs.sql import distinct_headers

Report = dict[str, list[dict[str, Any]]]
JANUARY_AND_FEBRUARY = 27_004 + 24_951


def txntable(*arguments: str) -> Result:
    return CliRunner().invoke(application, arguments)


def section(report: Report, name: str, key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in report[name]}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("demo") / "warehouse")


@pytest.fixture(scope="module")
def first(spark: SparkSession, warehouse: str) -> Report:
    result = txntable("demo", "--months", "2", "--warehouse", warehouse, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def second(first: object, warehouse: str) -> Report:
    result = txntable("demo", "--months", "2", "--warehouse", warehouse, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_demo_holds_every_check_it_makes(first) -> None:
    assert [check for check in first["checks"] if not check["holds"]] == []
    assert section(first, "checks", "check")["checksum of all rows"]["expected"] != "0000000000000"


def test_demo_commits_each_month_once_and_the_delays_in_two_runs_and_aborts_what_failed(first) -> None:
    outcomes = section(first, "transactions", "topic")

    assert (outcomes["flights"]["committed"], outcomes["flights"]["aborted"]) == (2, 2)
    assert (outcomes["delays_by_route"]["committed"], outcomes["delays_by_route"]["aborted"]) == (2, 1)


def test_demo_shows_aborted_records_to_read_uncommitted_only(first) -> None:
    flights = section(first, "records", "topic")["flights"]

    assert flights["snapshot"] == JANUARY_AND_FEBRUARY
    assert flights["read_uncommitted"] > JANUARY_AND_FEBRUARY
    assert flights["aborted"] == flights["read_uncommitted"] - flights["snapshot"]


def test_demo_fences_the_first_of_two_writers(first) -> None:
    assert "PRODUCER_FENCED" in {event["outcome"] for event in first["events"]}


def test_public_table_is_right_for_an_independent_reader_after_the_demo(first, warehouse: str) -> None:
    table = DeltaTable(f"{warehouse}/topics/flights")

    assert sum(parquet.read_metadata(uri).num_rows for uri in table.file_uris()) == JANUARY_AND_FEBRUARY


def test_demo_writes_no_month_twice_when_it_runs_again(first, second) -> None:
    assert second["records"] == first["records"]
    assert second["transactions"] == first["transactions"]
    assert {event["outcome"] for event in second["events"]} == {"BATCH_ALREADY_COMMITTED", ""}
    assert "All 2 months had committed in an earlier run: this one wrote nothing." in second["closing"]


def test_sql_sees_the_committed_flights(first, warehouse: str) -> None:
    result = txntable(
        "sql", "SELECT month, count(*) AS n FROM flights GROUP BY month ORDER BY month", "-w", warehouse, "-o", "json"
    )

    assert json.loads(result.stdout) == [{"month": 1, "n": 27_004}, {"month": 2, "n": 24_951}]


def test_sql_prints_no_more_rows_than_the_limit(first, warehouse: str) -> None:
    result = txntable("sql", "SELECT * FROM flights", "--limit", "3", "-w", warehouse, "-o", "json")

    assert len(json.loads(result.stdout)) == 3


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        ("DELETE FROM flights WHERE month = 1", "DELETE"),
        ("UPDATE flights SET month = 2", "UPDATE"),
        ("INSERT INTO flights SELECT * FROM flights", "INSERT"),
        ("WITH f AS (SELECT * FROM flights) INSERT INTO flights SELECT * FROM f", "INSERT"),
        ("MERGE INTO flights f USING (SELECT 1 AS m) s ON f.month = s.m WHEN MATCHED THEN DELETE", "MERGE"),
        ("TRUNCATE TABLE flights", "TRUNCATE"),
        ("EXPLAIN DELETE FROM flights", "DELETE"),
        ("BEGIN DELETE FROM flights; END", "BEGIN"),
        ("EXECUTE IMMEDIATE 'DELETE FROM flights'", "EXECUTE IMMEDIATE"),
    ],
)
def test_sql_refuses_a_statement_that_would_change_a_topic(first, warehouse: str, query: str, statement: str) -> None:
    result = txntable("sql", query, "-w", warehouse)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "topics are asked here; a producer's transaction" in result.stderr
    assert re.search(rf"statement='?{statement}'?$", result.stderr.rstrip())


@pytest.mark.parametrize(
    "query", ["CREATE TABLE x AS SELECT 1", "CREATE TEMP VIEW v AS SELECT 1", "DROP TABLE flights", "OPTIMIZE flights"]
)
def test_sql_refuses_what_would_make_or_drop_something_beside_topics(first, warehouse: str, query: str) -> None:
    result = txntable("sql", query, "-w", warehouse)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is created, altered or dropped" in result.stderr


def test_sql_asks_for_what_only_looks_like_a_change(first, warehouse: str) -> None:
    result = txntable("sql", "SELECT 'DELETE FROM flights' AS told, count(*) AS n FROM flights", "-w", warehouse)

    assert result.exit_code == 0
    assert "DELETE FROM flights" in result.stdout


def test_sql_shows_the_plan_of_a_query_line_by_line(first, warehouse: str) -> None:
    result = txntable("sql", "EXPLAIN SELECT count(*) FROM flights", "-w", warehouse)

    assert result.exit_code == 0
    assert "\\n" not in result.stdout
    assert "== Physical Plan ==" in [line.strip() for line in result.stdout.splitlines()]


def test_sql_shows_a_column_that_is_named_like_a_plan_as_it_is(first, warehouse: str) -> None:
    query = "SELECT * FROM VALUES ('a\\nb'), (''), (NULL) AS t(plan)"

    result = txntable("sql", query, "-w", warehouse, "-o", "json")

    assert json.loads(result.stdout) == [{"plan": "a\nb"}, {"plan": ""}, {"plan": None}]


def test_sql_says_that_it_takes_one_statement(first, warehouse: str) -> None:
    result = txntable("sql", "SELECT 1; SELECT 2", "-w", warehouse)

    assert result.exit_code == 1
    assert "spark refuses the query, which is to be one statement: " in result.stderr


@pytest.mark.parametrize("query", ["SELEKT 1", "SELECT * FROM nowhere", "SELECT nothing FROM flights"])
def test_sql_fails_in_one_line_when_the_query_is_wrong(first, warehouse: str, query: str) -> None:
    result = txntable("sql", query, "-w", warehouse)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: INVALID_REQUEST")
    assert len(result.stderr.splitlines()) == 1


def test_demo_fails_when_the_folder_is_used_for_something_else(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")

    result = txntable("demo", "--months", "1", "--warehouse", str(tmp_path))

    assert result.exit_code == 1
    assert result.stderr.startswith("error: WAREHOUSE_ALREADY_EXISTS")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_headers_differ_when_the_query_names_columns_alike() -> None:
    assert distinct_headers(["n", "n", "m", "n"]) == {"n": "n", "n_2": "n", "m": "m", "n_3": "n"}


def test_source_has_as_many_rows_by_arrow_as_by_lines() -> None:
    source = find_source()

    assert read_flights(source, [2]).num_rows == digest_source(source, [2]).rows == 24_951


def test_check_of_flights_fails_when_one_value_differs() -> None:
    source = digest_source(find_source(), [2])
    day = source.columns["day"]
    table = replace(source, columns={**source.columns, "day": replace(day, checksum=day.checksum + 1)})
    story = Story(Console(stderr=True))

    check_flights(story, source, table)

    (failed,) = [check for check in story.checks if not check.holds]
    assert (failed.expected, failed.found) == ("none", "day")
    assert not story.ends_well


def test_demo_exits_with_1_when_a_check_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_wrong(warehouse: object, spark: object, trip: object, story: Story) -> dict[str, list[str]]:
        story.check("two and two", 4, 5)
        return {"closing": ["the end"]}

    monkeypatch.setattr(flights, "run_demo", go_wrong)

    result = txntable("demo", "--warehouse", str(tmp_path / "warehouse"))

    assert result.exit_code == 1
    assert result.stdout == "the end\n"
    assert "two and two" in result.stderr


def test_demo_fails_and_makes_nothing_when_there_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))

    result = txntable("demo", "--warehouse", str(tmp_path / "warehouse"))

    assert result.exit_code == 1
    assert result.stderr.startswith("error: MISSING_DEPENDENCY spark needs java 17 or later")
    assert list(tmp_path.iterdir()) == []
