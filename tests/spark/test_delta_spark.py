"""delta-spark reads every table of a warehouse as we do, and is refused every change (PROTOCOL.md §3.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable

from tests.simulation.site import TWO_COLUMNS, published
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Commits, aborts, a plain append, a zone-less timestamp, checkpoints and a tail above them."""
    made = Warehouse.create(str(tmp_path_factory.mktemp("delta-spark") / "wh"), durability="page-cache")
    admin = made.admin()
    admin.create_topic("t", partitions=3, schema=TWO_COLUMNS, key=["account"])
    admin.create_topic("naive", schema=pa.schema([pa.field("at", pa.timestamp("us")), pa.field("n", pa.int32())]))
    producer = made.producer("etl", transaction_timeout_ms=900_000)
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        producer.send("t", row={"account": f"a{number % 4}", "amount": number})
        producer.send("naive", row={"n": number})
        producer.flush()
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)()
        if number == 4:
            for log in (made.transactions.log, made.topic_log("t").segments, made.topic_log("t").public):
                log.write_checkpoint()
    made.admin().alter_consumer_group_offsets("g", {TopicPartition("t", 1): 7})
    with made.producer() as plain:
        plain.send("t", row={"account": "plain", "amount": None})
    producer.begin_transaction()
    producer.send("t", row={"account": "open", "amount": 99})
    producer.flush()
    return made


def table(spark: Any, warehouse: Warehouse, root: str) -> Any:
    return spark.read.format("delta").load(f"{warehouse.url}/{root}")


def rows(frame: Any) -> list[dict]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def test_public_table_is_read_record_by_record(spark: Any, warehouse: Warehouse) -> None:
    found = table(spark, warehouse, public_root("t")).selectExpr(
        "_partition", "_base_offset + _offset_delta AS _offset", "account", "amount"
    )

    assert rows(found.orderBy("_partition", "_offset")) == published(warehouse, "t")


@pytest.mark.parametrize(
    ("root", "count"),
    [
        (segments_root("t"), 8 + 6),
        (segments_root("naive"), 6 + 6),
        (public_root("naive"), 4),
        (TRANSACTION_LOG_ROOT, 1),
    ],
)
def test_every_table_has_the_rows_that_our_log_says(spark: Any, warehouse: Warehouse, root: str, count: int) -> None:
    assert table(spark, warehouse, root).count() == count


def test_offset_log_tells_the_offsets_of_groups_in_sql(spark: Any, warehouse: Warehouse) -> None:
    found = table(spark, warehouse, OFFSET_LOG_ROOT).where("_kind = 'offset'")

    assert rows(found.select("_group", "_topic", "_partition", "_offset")) == [
        {"_group": "g", "_topic": "t", "_partition": 1, "_offset": 7}
    ]


def test_transaction_log_tells_its_states_in_sql(spark: Any, warehouse: Warehouse) -> None:
    found = rows(
        table(spark, warehouse, TRANSACTION_LOG_ROOT).where("_kind = 'id'").select("_state", "_producer_epoch")
    )

    assert found == [{"_state": "ONGOING", "_producer_epoch": 6}]


def test_every_version_of_the_public_table_can_be_travelled_to(spark: Any, warehouse: Warehouse) -> None:
    newest = warehouse.topic_log("t").public.refresh().version
    assert newest is not None
    url = f"{warehouse.url}/{public_root('t')}"
    counts = [spark.read.format("delta").option("versionAsOf", v).load(url).count() for v in (0, 1, newest)]

    assert counts == [0, 1, len(published(warehouse, "t"))]


def test_history_names_the_transaction_of_each_version_and_what_it_added(spark: Any, warehouse: Warehouse) -> None:
    history = spark.sql(f"DESCRIBE HISTORY delta.`{warehouse.url}/{public_root('t')}`").orderBy("version")

    found = [(row["operation"], row["operationParameters"], row["operationMetrics"]) for row in history.collect()]
    named = [parameters["transactionalIds"] for _, parameters, _ in found if parameters]
    assert {operation for operation, _, _ in found} == {"PROJECT"}
    assert named == ['["etl"]'] * 4
    assert [parameters["positions"] for _, parameters, _ in found if parameters] == [
        f"[{position}]" for position in sorted(set(positions_of(warehouse, "t")))
    ]
    assert sum(int(metrics["numOutputRows"]) for _, _, metrics in found) == len(published(warehouse, "t"))
    assert sum(int(metrics["numFiles"]) for _, _, metrics in found) == len(warehouse.topic_log("t").public.table.files)
    assert DeltaTable.forPath(spark, f"{warehouse.url}/{public_root('t')}").history(1).collect()[0]["operationMetrics"]


def positions_of(warehouse: Warehouse, topic: str) -> list[int]:
    """The decision positions of a topic's public rows."""
    found = [int(add.partition_values["_commit"] or 0) for add in warehouse.topic_log(topic).public.refresh().files]
    return [position for position in found if position]


def test_change_feed_tells_each_record_once(spark: Any, warehouse: Warehouse) -> None:
    url = f"{warehouse.url}/{public_root('t')}"
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(url)

    assert feed.where("_change_type = 'insert'").count() == feed.count() == len(published(warehouse, "t"))


def test_queries_agree_with_and_without_file_skipping(spark: Any, warehouse: Warehouse) -> None:
    frame = table(spark, warehouse, public_root("t"))
    queries = ["amount >= 3", "account = 'a0'", "account > 'a2'", "_commit > 5", "amount IS NULL", "_last_offset >= 2"]
    counts = []
    for skipping in ("true", "false"):
        spark.conf.set("spark.databricks.delta.stats.skipping", skipping)
        counts.append([frame.where(query).count() for query in queries])
    spark.conf.unset("spark.databricks.delta.stats.skipping")

    assert counts[0] == counts[1]
    assert sum(counts[0]) > 0


CHANGES = {
    "insert": "INSERT INTO {t} SELECT 'x', 1L, 0L, current_timestamp(), 0, 0L, 0L, 0L",
    "delete": "DELETE FROM {t}",
    "update": "UPDATE {t} SET amount = 0",
    "merge": "MERGE INTO {t} USING (SELECT 'a0' AS k) ON account = k WHEN MATCHED THEN DELETE",
    "vacuum": "VACUUM {t}",
    "vacuum lite": "VACUUM {t} LITE",
    "restore": "RESTORE TABLE {t} TO VERSION AS OF 1",
    "set properties": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "add column": "ALTER TABLE {t} ADD COLUMNS (more INT)",
    "drop feature": "ALTER TABLE {t} DROP FEATURE `txntable.exclusiveWriter`",
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_refused_and_nothing_of_ours_is_touched(spark: Any, warehouse: Warehouse, change: str) -> None:
    root = Path(warehouse.url) / public_root("t")
    before = files_below(root)

    with pytest.raises(Exception, match=r"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE|txntable\.exclusiveWriter"):
        spark.sql(CHANGES[change].format(t=f"delta.`{root}`")).collect()

    after = files_below(root)
    assert before <= after
    assert not {path for path in after - before if "_delta_log" in path and path.endswith((".json", ".parquet"))}


def test_optimize_finds_nothing_to_do(spark: Any, warehouse: Warehouse) -> None:
    """Every segment is a Delta partition of its own: there are never two files to put together."""
    root = Path(warehouse.url) / public_root("t")
    before = files_below(root)

    spark.sql(f"OPTIMIZE delta.`{root}`").collect()

    assert {path for path in files_below(root) - before if path.endswith((".json", ".parquet"))} == set()


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_snapshot_and_uncommitted_reads_differ_by_what_is_not_committed(spark: Any, warehouse: Warehouse) -> None:
    snapshot = warehouse.read(spark, "t")
    uncommitted = warehouse.read(spark, "t", isolation_level="read_uncommitted")

    assert snapshot.columns == uncommitted.columns
    assert snapshot.columns == ["account", "amount", "_partition", "_offset", "_timestamp", "_commit"]
    gone = {row["amount"] for row in rows(uncommitted)} - {row["amount"] for row in rows(snapshot)}
    assert gone == {1, 4, 99}, "two aborted transactions and an open one"


def test_snapshot_of_an_earlier_position_shows_what_was_decided_by_then(spark: Any, warehouse: Warehouse) -> None:
    positions = sorted({row["_commit"] for row in rows(warehouse.read(spark, "t"))} - {0})

    seen = [{row["amount"] for row in rows(warehouse.read(spark, "t", as_of=p)) if row["_commit"]} for p in positions]

    assert seen == [{0}, {0, 2}, {0, 2, 3}, {0, 2, 3, 5}]
