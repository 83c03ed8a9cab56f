"""``txntable transactions``: what it tells of transactional ids."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Call
from txntable.warehouse import Warehouse


def test_list_tells_state_and_last_decision_of_each_id(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    producer = warehouse.producer(transactional_id="etl")
    producer.init_transactions()
    with producer.transaction(batch_id="2026-11-20"):
        producer.send("orders", b"paid", key=b"42")

    (row,) = json.loads(call("transactions", "list", "--output", "json").stdout)

    assert (row["transactional_id"], row["transaction_state"]) == ("etl", "COMPLETE_COMMIT")
    assert (row["last_outcome"], row["last_batch_id"]) == ("COMMIT", "2026-11-20")
    assert row["producer_id"] == producer.producer_id
    assert row["producer_epoch"] == producer.producer_epoch


def test_list_prints_kafkas_headers(call: Call) -> None:
    result = call("transactions", "list")

    assert result.exit_code == 0
    assert "TransactionalId   ProducerId   ProducerEpoch   TransactionState" in result.stdout


def test_describe_names_the_partitions_of_an_open_transaction(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    producer = warehouse.producer(transactional_id="etl", transaction_timeout_ms=50_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"paid")
    producer.flush()

    described = json.loads(call("transactions", "describe", "etl", "--output", "json").stdout)

    assert described["transaction_state"] == "ONGOING"
    assert described["transaction_timeout_ms"] == 50_000
    assert described["topic_partitions"] == ["orders-0"]


def test_describe_fails_when_there_is_no_such_id(call: Call) -> None:
    result = call("transactions", "describe", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: INVALID_PRODUCER_ID_MAPPING")
    assert "transactional_id=nobody" in result.stderr
