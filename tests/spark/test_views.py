"""Topics in SQL: views at one position, the view of the position, and snapshots in plain SQL on the tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS
from txntable.cli.main import application
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.layout import TRANSACTION_LOG_ROOT, public_root
from txntable.warehouse.warehouse import Warehouse

TOPICS = ("debits", "credits")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Each of three transactions moves an amount from one topic to the other; a fourth is open."""
    made = Warehouse.create(str(tmp_path_factory.mktemp("views") / "wh"), durability="page-cache")
    for topic in TOPICS:
        made.admin().create_topic(topic, schema=TWO_COLUMNS)
    producer = made.producer("bank", transaction_timeout_ms=900_000)
    producer.init_transactions()
    for amount in (1, 2, 4, 8):
        producer.begin_transaction()
        producer.send("debits", row={"account": "ann", "amount": -amount})
        producer.send("credits", row={"account": "bob", "amount": amount})
        producer.flush()
        if amount < 8:
            producer.commit_transaction()
    return made


def total(spark: Any, *views: str) -> list[int | None]:
    return [spark.sql(f"SELECT sum(amount) FROM {view}").first()[0] for view in views]


def decisions(spark: Any, warehouse: Warehouse) -> list[int]:
    return sorted(row[0] for row in warehouse.read(spark, "debits").select("_commit").collect())


def test_views_of_all_topics_show_one_position(spark: Any, warehouse: Warehouse) -> None:
    snapshot = warehouse.create_views(spark)

    assert total(spark, "debits", "credits") == [-7, 7]
    rows = spark.sql("SELECT * FROM txntable_snapshot ORDER BY topic").collect()
    assert [row["topic"] for row in rows] == ["credits", "debits"]
    assert {(row["position"], row["published_position"], row["merged_through"]) for row in rows} == {
        (snapshot.position, snapshot.position, 0)
    }
    assert {row["topic"]: row["version"] for row in rows} == {topic: snapshot.version(topic) for topic in TOPICS}


def test_views_of_the_past_show_what_was_decided_then(spark: Any, warehouse: Warehouse) -> None:
    second = decisions(spark, warehouse)[1]

    snapshot = warehouse.create_views(spark, as_of=second, prefix="then_")

    assert snapshot.position == second
    assert total(spark, "then_debits", "then_credits") == [-3, 3]
    assert spark.sql("SELECT DISTINCT position FROM then_txntable_snapshot").first()[0] == second


def test_views_of_all_topics_in_the_past_leave_out_those_that_came_later(spark: Any, warehouse: Warehouse) -> None:
    second = decisions(spark, warehouse)[1]
    warehouse.admin().create_topic("later")
    with warehouse.producer("later") as producer:
        producer.init_transactions()
        with producer.transaction() as txn:
            txn.send("later", value=b"a")
    now = warehouse.snapshot().position

    warehouse.create_views(spark, as_of=second, prefix="before_")

    assert total(spark, "before_debits") == [-3]
    assert [row["topic"] for row in spark.sql("SELECT topic FROM before_txntable_snapshot ORDER BY 1").collect()] == [
        "credits",
        "debits",
    ]
    with pytest.raises(UnknownTopicOrPartitionError):
        warehouse.create_views(spark, ["later"], as_of=second, prefix="named_")
    asked = ["-w", warehouse.url, "--as-of", str(second), "-o", "json"]
    column = CliRunner().invoke(application, ["sql", "SELECT sum(amount) AS later FROM debits", *asked])
    named = CliRunner().invoke(application, ["sql", "SELECT * FROM later", *asked])
    assert json.loads(column.stdout) == [{"later": -3}]
    warehouse.create_views(spark, prefix="before_")
    assert spark.catalog.tableExists("before_later")
    warehouse.create_views(spark, as_of=second, prefix="before_")
    assert not spark.catalog.tableExists("before_later")
    assert "UNKNOWN_TOPIC_OR_PARTITION there was no such topic then" in named.stderr
    warehouse.admin().delete_topic("later")
    warehouse.create_views(spark, ["later"], as_of=now, prefix="gone_")
    assert spark.sql("SELECT count(*) FROM gone_later").first()[0] == 1
    warehouse.create_views(spark, as_of=now, prefix="gone_")
    assert total(spark, "gone_debits") == [-7]
    assert spark.sql("SELECT count(*) FROM gone_later").first()[0] == 1
    asked[3] = str(now)
    deleted = CliRunner().invoke(application, ["sql", "SELECT count(*) AS n FROM later", *asked])
    assert json.loads(deleted.stdout) == [{"n": 1}]
    warehouse.create_views(spark, prefix="gone_")
    assert not spark.catalog.tableExists("gone_later")


def test_views_are_made_of_the_topics_and_the_level_that_were_asked_for(spark: Any, warehouse: Warehouse) -> None:
    warehouse.create_views(spark, ["credits"], prefix="raw_", isolation_level="read_uncommitted")

    assert total(spark, "raw_credits") == [15]
    assert not spark.catalog.tableExists("raw_debits")


PUBLISHED = """
    SELECT coalesce(min(_decision) FILTER (WHERE _state IN ('PREPARE_COMMIT', 'PREPARE_ABORT')) - 1, max(_position))
    FROM delta.`{url}`
"""


def test_published_position_in_plain_sql_is_a_snapshot_of_all_topics(spark: Any, warehouse: Warehouse) -> None:
    position = spark.sql(PUBLISHED.format(url=f"{warehouse.url}/{TRANSACTION_LOG_ROOT}")).first()[0]

    tables = [f"delta.`{warehouse.url}/{public_root(topic)}` WHERE _commit <= {position}" for topic in TOPICS]

    assert total(spark, *tables) == [-7, 7]
    assert decisions(spark, warehouse)[-1] <= position <= warehouse.snapshot().position


def test_every_position_is_a_snapshot_in_plain_sql(spark: Any, warehouse: Warehouse) -> None:
    sums = {}
    for position in decisions(spark, warehouse):
        tables = [f"delta.`{warehouse.url}/{public_root(topic)}` WHERE _commit <= {position}" for topic in TOPICS]
        sums[position] = total(spark, *tables)

    assert list(sums.values()) == [[-1, 1], [-3, 3], [-7, 7]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["SELECT sum(amount) AS n FROM credits"], [{"n": 7}]),
        (["SELECT sum(amount) AS n FROM credits", "--isolation-level", "read_committed"], [{"n": 7}]),
        (["SELECT sum(amount) AS n FROM credits", "--isolation-level", "read_uncommitted"], [{"n": 15}]),
        (["SELECT count(DISTINCT position) AS n FROM txntable_snapshot"], [{"n": 1}]),
        (["SELECT count(*) AS n FROM txntable_snapshot"], [{"n": 2}]),
    ],
)
def test_sql_command_asks_at_the_level_that_was_named(
    spark: Any, warehouse: Warehouse, arguments: list[str], expected: list[dict]
) -> None:
    result = CliRunner().invoke(application, ["sql", *arguments, "-w", warehouse.url, "-o", "json"])

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == expected


def test_sql_command_asks_as_of_an_earlier_position(spark: Any, warehouse: Warehouse) -> None:
    first = decisions(spark, warehouse)[0]
    query = "SELECT amount, position FROM credits, txntable_snapshot WHERE topic = 'credits'"

    result = CliRunner().invoke(application, ["sql", query, "--as-of", str(first), "-w", warehouse.url, "-o", "json"])

    assert json.loads(result.stdout) == [{"amount": 1, "position": first}]


@pytest.mark.parametrize(
    "arguments",
    [["--as-of", "yesterday"], ["--as-of", "100000"], ["--as-of", "1", "--isolation-level", "read_committed"]],
)
def test_sql_command_refuses_a_moment_that_can_not_be_read(spark: Any, warehouse: Warehouse, arguments) -> None:
    result = CliRunner().invoke(application, ["sql", "SELECT 1", *arguments, "-w", warehouse.url])

    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1


def test_old_records_are_null_in_columns_that_were_added(spark: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("grown", schema=TWO_COLUMNS)
    with warehouse.producer() as plain:
        plain.send("grown", row={"account": "ann", "amount": 1})
    warehouse.admin().add_columns("grown", pa.schema([pa.field("tax", pa.decimal128(9, 2))]))
    with warehouse.producer() as plain:
        plain.send("grown", row={"account": "bob", "amount": 2, "tax": 3})

    for level in ("snapshot", "read_committed", "read_uncommitted"):
        by_delta = warehouse.read(spark, "grown", isolation_level=level)
        options = {"warehouse": warehouse.url, "topic": "grown", "isolationLevel": level}
        by_format = spark.read.format("txntable").options(**options).load()
        for found in (by_delta, by_format):
            assert found.columns[:3] == ["account", "amount", "tax"]
            assert {row["account"]: row["tax"] and int(row["tax"]) for row in found.collect()} == {
                "ann": None,
                "bob": 3,
            }
        assert by_delta.where("tax IS NULL").count() == 1
