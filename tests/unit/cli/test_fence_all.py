"""``txntable warehouse fence-all``: what it says and does after a restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call
from txntable.errors import WarehouseReplacedError
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


def begin(warehouse: Warehouse, *, prepare: bool) -> None:
    warehouse.admin().create_topic("orders")
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"paid")
    producer.flush()
    if prepare:
        producer.prepare_transaction()


def test_dry_run_says_what_would_be_fenced_and_changes_nothing(call: Call, warehouse: Warehouse) -> None:
    begin(warehouse, prepare=False)

    result = call("warehouse", "fence-all", "--output", "json")

    said = json.loads(result.stdout)
    assert (said["aborted_transactions"], said["forgotten_transactional_ids"], said["executed"]) == (1, 1, False)
    assert [row.transactional_id for row in warehouse.admin().list_transactions()] == ["etl"]


def test_execution_forgets_every_id(call: Call, warehouse: Warehouse) -> None:
    begin(warehouse, prepare=False)

    result = call("warehouse", "fence-all", "--execute")

    assert result.exit_code == 0
    assert Warehouse.open(warehouse.url).admin().list_transactions() == []
    with pytest.raises(WarehouseReplacedError):
        warehouse.admin().list_transactions()


def test_prepared_transaction_is_left_and_told_by_the_exit_code(call: Call, warehouse: Warehouse) -> None:
    begin(warehouse, prepare=True)

    result = call("warehouse", "fence-all", "--execute", "--output", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["prepared"] == ["etl"]
    call("transactions", "abort", "etl", "--execute")
    assert call("warehouse", "fence-all", "--execute").exit_code == 0


@pytest.mark.parametrize("execute", [(), ("--execute",)])
def test_offsets_that_are_lost_are_told_by_who_takes_them_as_lost(
    call: Call, warehouse: Warehouse, execute: tuple[str, ...]
) -> None:
    begin(warehouse, prepare=False)
    with warehouse.producer("copier") as producer:
        producer.init_transactions()
        for offset in (0, 1):
            with producer.transaction():
                producer.send_offsets_to_transaction({TopicPartition("orders", 0): offset}, "readers")
    newest = max((Path(warehouse.url) / OFFSET_LOG_ROOT / "_delta_log").glob("*.json"))
    newest.unlink()

    result = call("warehouse", "fence-all", *execute, "--output", "json")

    assert json.loads(result.stdout)["lost_offsets"]
    assert "`txntable warehouse verify` names" in result.stderr


def test_nothing_is_told_of_offsets_where_none_are_lost(call: Call, warehouse: Warehouse) -> None:
    begin(warehouse, prepare=False)

    result = call("warehouse", "fence-all", "--execute", "--output", "json")

    assert not json.loads(result.stdout)["lost_offsets"]
    assert "offset log" not in result.stderr
