"""A consumer's bounded read as a DataFrame: the offsets that it pinned, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.integration import varied_topic
from tests.simulation.site import TWO_COLUMNS
from txntable.consumer.consumer import Consumer
from txntable.warehouse.warehouse import Warehouse

COLUMNS = ["account", "amount", "_partition", "_offset", "_timestamp", "_commit"]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "w"), durability="page-cache")
    for topic in ("in", "out"):
        warehouse.admin().create_topic(topic, partitions=3, schema=TWO_COLUMNS)
    return warehouse


def send(warehouse: Warehouse, *accounts: str, partition: int = 0) -> None:
    with warehouse.producer() as producer:
        for account in accounts:
            producer.send("in", row={"account": account, "amount": 1}, partition=partition)


def in_group(warehouse: Warehouse, **settings: object) -> Consumer:
    made = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = warehouse.consumer(**{**made, **settings})  # type: ignore[arg-type]
    consumer.subscribe(["in"])
    return consumer


def accounts(records: Any) -> list[str]:
    return sorted(row["account"] for row in records.select("account").collect())


def test_dataframe_has_what_was_pinned_whatever_comes_later(spark: Any, warehouse: Warehouse) -> None:
    send(warehouse, "a", "b")
    send(warehouse, "c", partition=2)
    with in_group(warehouse) as consumer:
        records = consumer.read(spark)
        send(warehouse, "later")

        assert records.columns == COLUMNS
        assert accounts(records) == ["a", "b", "c"]


def test_copy_with_its_offsets_is_done_once_and_the_next_read_begins_behind_it(
    spark: Any, warehouse: Warehouse
) -> None:
    send(warehouse, "a", "b")
    producer = warehouse.producer("copy")
    producer.init_transactions()
    with in_group(warehouse) as consumer:
        for added, expected in (((), ["a", "b"]), (("c", "d"), ["c", "d"]), ((), [])):
            send(warehouse, *added, partition=1)
            with producer.transaction() as txn:
                records = consumer.read(spark)
                assert accounts(records) == expected
                txn.write("out", records.select("account", "amount"))
                txn.send_offsets(consumer)

    assert sorted(warehouse.read_arrow("out").read_all()["account"].to_pylist()) == ["a", "b", "c", "d"]


def test_bound_cuts_a_segment_and_two_members_share_the_partitions(spark: Any, warehouse: Warehouse) -> None:
    for partition in range(3):
        send(warehouse, *(f"{partition}{letter}" for letter in "abc"), partition=partition)
    # Each of their calls looks at the group.
    eager = {"heartbeat_interval_ms": 1, "background_heartbeat": False}
    with in_group(warehouse, **eager) as first:
        assert accounts(first.read(spark, max_offsets_per_partition=2)) == ["0a", "0b", "1a", "1b", "2a", "2b"]
        first.commit()
        assert accounts(first.read(spark, max_offsets_per_partition=2)) == ["0c", "1c", "2c"]
        first.commit(dict.fromkeys(first.assignment(), 0))
        with in_group(warehouse, **eager) as second:
            second.poll()
            mine, others = accounts(first.read(spark)), accounts(second.read(spark, timeout_ms=5_000))

    assert len(mine) + len(others) == 9
    assert not set(mine) & set(others)
    assert others


def in_order(records: Any) -> list[str]:
    """As text: a NaN is like no other number, and Spark compares no maps."""
    return [repr(row) for row in records.orderBy("_partition", "_offset").collect()]


def test_rows_that_the_driver_reads_are_those_of_the_scan_whatever_their_types_and_the_sessions_time_zone(
    spark: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("varied", partitions=3, schema=varied_topic.SCHEMA)
    with warehouse.producer() as producer:
        given = pa.Table.from_pylist([varied_topic.row(number) for number in range(30)], varied_topic.SCHEMA)
        for start in (0, 10, 20):
            producer.send("varied", rows=given.slice(start, 10), partition=start // 10)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
            consumer.subscribe(["varied"])
            read = consumer.read(spark)
            scanned = warehouse.read(spark, "varied")

            assert read.inputFiles() == []
            assert [(field.name, field.dataType) for field in read.schema] == [
                (field.name, field.dataType) for field in scanned.schema
            ]
            assert in_order(read) == in_order(scanned)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_many_segments_are_left_to_sparks_scan(spark: Any, warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        for number in range(33):
            producer.send("in", row={"account": f"{number:02}", "amount": 1}, partition=0)
            producer.flush()

    with in_group(warehouse) as consumer:
        records = consumer.read(spark)

        assert records.inputFiles() != []
        assert accounts(records) == [f"{number:02}" for number in range(33)]


def test_nothing_new_is_an_empty_dataframe_that_asks_delta_nothing(spark: Any, warehouse: Warehouse) -> None:
    with in_group(warehouse) as consumer:
        records = consumer.read(spark)

        assert (records.columns, records.inputFiles(), records.collect()) == (COLUMNS, [], [])


def test_read_of_nothing_new_has_no_rows_and_all_columns_whatever_their_types(spark: Any, warehouse: Warehouse) -> None:
    admin = warehouse.admin()
    admin.create_topic("varied", partitions=3, schema=varied_topic.SCHEMA)
    admin.create_topic("copies", schema=varied_topic.SCHEMA)
    producer = warehouse.producer("copy")
    producer.init_transactions()
    with warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe(["in", "varied"])
        with producer.transaction() as transaction:
            read = consumer.read_together(spark)
            transaction.write("copies", read["varied"].select(*varied_topic.SCHEMA.names))
            transaction.send_offsets(consumer)

    scanned = warehouse.read(spark, "varied")
    assert [(field.name, field.dataType) for field in read["varied"].schema] == [
        (field.name, field.dataType) for field in scanned.schema
    ]
    assert [frame.count() for frame in (*read.values(), warehouse.read(spark, "copies"))] == [0, 0, 0]
