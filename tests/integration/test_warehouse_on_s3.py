"""The whole path on S3's API: moto's server behind a lock."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.simulation.site import TWO_COLUMNS, published
from txntable.errors import WarehouseAlreadyExistsError, WarehouseNotFoundError
from txntable.format.records import TopicPartition
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

# What a script does whose author does not close anything.
ENDS_WITHOUT_CLOSE = """
import json, sys
from txntable import Warehouse
producer = Warehouse.open(sys.argv[1], storage_options=json.loads(sys.argv[2])).producer("etl")
producer.init_transactions()
for amount in range(3):
    with producer.transaction() as txn:
        txn.send("t", row={"account": "a", "amount": amount})
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer("warehouses") as running:
        yield running


def create(server: LockedMotoServer, name: str) -> Warehouse:
    return Warehouse.create(f"s3://warehouses/{name}", storage_options=server.storage_options)


def test_transactions_on_s3_are_read_by_another_engine(server: LockedMotoServer) -> None:
    warehouse = create(server, "one")
    warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction(batch_id=number)
        producer.send("t", row={"account": f"a{number}", "amount": number})
        producer.flush()
        (producer.abort_transaction if number == 2 else producer.commit_transaction)()

    table = DeltaTable("s3://warehouses/one/topics/t", storage_options=dict(server.storage_options))
    found = pa.table(QueryBuilder().register("t", table).execute("SELECT account FROM t ORDER BY account"))
    assert found["account"].to_pylist() == ["a0", "a1", "a3"]
    again = Warehouse.open("s3://warehouses/one", storage_options=server.storage_options)
    assert sorted(row["account"] for row in published(again, "t")) == ["a0", "a1", "a3"]
    assert again.admin().list_topics() == ["t"]


def test_second_creation_is_refused_and_a_missing_warehouse_is_named(server: LockedMotoServer) -> None:
    create(server, "twice")
    with pytest.raises(WarehouseAlreadyExistsError):
        create(server, "twice")
    with pytest.raises(WarehouseNotFoundError, match="s3://warehouses/none"):
        Warehouse.open("s3://warehouses/none", storage_options=server.storage_options)


def test_racing_producers_with_handles_of_their_own_lose_nothing(server: LockedMotoServer) -> None:
    create(server, "race").admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)

    def produce(number: int) -> None:
        warehouse = Warehouse.open("s3://warehouses/race", storage_options=server.storage_options)
        producer = warehouse.producer(f"p{number}")
        producer.init_transactions()
        for turn in range(3):
            with producer.transaction() as txn:
                txn.send("t", row={"account": f"p{number}", "amount": turn}, partition=number % 2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(produce, range(4)))

    warehouse = Warehouse.open("s3://warehouses/race", storage_options=server.storage_options)
    found = sorted((row["account"], row["amount"]) for row in published(warehouse, "t"))
    assert found == [(f"p{number}", turn) for number in range(4) for turn in range(3)]


def test_steady_transaction_makes_few_requests_and_no_list(server: LockedMotoServer) -> None:
    """The marker's file and three commits beside the segment's own put, with a small GET each, and two more GETs."""
    warehouse = create(server, "counted")
    warehouse.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()

    def transaction() -> None:
        with producer.transaction() as txn:
            txn.send("t", row={"account": "a", "amount": 1})

    transaction()
    server.requests.clear()
    transaction()

    # One of the puts is the segment's own; a LIST would be a second GET, of the bucket.
    assert dict(server.requests) == {"PUT": 5, "GET": 5}


def test_steady_transaction_with_offsets_makes_three_more_puts_and_no_list(server: LockedMotoServer) -> None:
    """Three commits more: the group is enrolled, its offsets are sent, and settled."""
    warehouse = create(server, "offsets")
    warehouse.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()

    def transaction(offset: int) -> None:
        with producer.transaction() as txn:
            txn.send("t", row={"account": "a", "amount": 1})
            producer.send_offsets_to_transaction({TopicPartition("t", 0): offset}, "g")

    transaction(1)
    transaction(2)
    server.requests.clear()
    transaction(3)

    assert dict(server.requests) == {"PUT": 8, "GET": 8}


def test_complete_of_the_last_transaction_is_written_when_the_process_ends(server: LockedMotoServer) -> None:
    """Else plain SQL, which asks T alone how far it may read, would wait for the coordinator job."""
    warehouse = create(server, "ended")
    warehouse.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    command = [sys.executable, "-c", ENDS_WITHOUT_CLOSE, warehouse.url, json.dumps(dict(server.storage_options))]

    told = subprocess.run(command, capture_output=True, text=True, check=True)

    assert told.stderr == ""
    warehouse.transactions.refresh()
    assert warehouse.transactions.log.fold.under_way == {}
    assert [row["amount"] for row in published(warehouse, "t")] == [0, 1, 2]
