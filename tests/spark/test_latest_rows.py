"""The latest row of each key: by offset in one partition, and never guessed between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.site import TWO_COLUMNS
from txntable.spark.pipelines.latest_rows import latest_rows
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A keyed topic with two rows of each of some keys."""
    made = Warehouse.create(str(tmp_path / "w"), durability="page-cache")
    made.admin().create_topic("balances", schema=TWO_COLUMNS, key=["account"])
    send_all(made, 1)
    send_all(made, 2)
    return made


def send_all(warehouse: Warehouse, amount: int) -> None:
    with warehouse.producer() as producer:
        for account in "abcd":
            producer.send("balances", row={"account": account, "amount": amount})


def latest(spark: Any, warehouse: Warehouse) -> list[tuple[Any, ...]]:
    rows = latest_rows(warehouse.read(spark, "balances"), warehouse.topic_log("balances").settings())
    return sorted(map(tuple, rows.collect()))


def test_latest_row_of_a_key_is_the_one_with_the_highest_offset(spark: Any, warehouse: Warehouse) -> None:
    assert latest(spark, warehouse) == [(account, 2) for account in "abcd"]


def test_latest_row_is_refused_when_a_key_has_rows_in_two_partitions(spark: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_partitions({"balances": 4})
    assert latest(spark, warehouse) == [(account, 2) for account in "abcd"]
    send_all(warehouse, 3)

    with pytest.raises(Exception, match="it has rows in two partitions, since the topic balances has got more"):
        latest(spark, warehouse)
