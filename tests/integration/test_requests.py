"""What the counts of requests rest on: a step at the storage interface is a request that S3 sees."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS
from txntable.cli.main import application
from txntable.errors import InvalidRequestError
from txntable.format.layout import LONGEST_PATH, commit_path, public_root
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.multipart_upload import PART_BYTES
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse, create_on, open_on
from txntable.warehouse.warehouse_creation import LONGEST_KEY_BYTES

pytestmark = pytest.mark.s3
# LIST is a GET of the bucket.
METHODS = {"PUT": "PUT", "GET": "GET", "LIST": "GET", "HEAD": "HEAD", "DELETE": "DELETE"}


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer("requests") as running:
        yield running


@pytest.fixture
def store(server: LockedMotoServer, request: pytest.FixtureRequest) -> SteppingStore:
    name = request.node.name.replace("[", "-").rstrip("]").replace(" ", "-")
    return SteppingStore(open_store(StoreSpec(f"s3://requests/{name}", server.storage_options)))


@pytest.fixture
def warehouse(store: SteppingStore) -> Warehouse:
    warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
    warehouse.admin().create_topic("t", partitions=3, schema=TWO_COLUMNS)
    return warehouse


def transact(warehouse: Warehouse) -> Callable[[], object]:
    producer = warehouse.producer("etl")
    producer.init_transactions()

    def transaction() -> None:
        with producer.transaction() as txn:
            for partition in range(3):
                txn.send("t", row={"account": "a", "amount": 1}, partition=partition)

    transaction()
    return transaction


def poll(warehouse: Warehouse) -> Callable[[], object]:
    consumer = warehouse.consumer(prefetch=False)
    consumer.assign([TopicPartition("t", 0)])
    consumer.poll()
    return consumer.poll


def open_again(warehouse: Warehouse) -> Callable[[], object]:
    transact(warehouse)
    return lambda: open_on(warehouse.store, SystemEnvironment()).topic_log("t").catch_up()


def a_round(warehouse: Warehouse) -> Callable[[], object]:
    return warehouse.coordinator().run_once


@pytest.mark.parametrize("operation", [transact, poll, open_again, a_round], ids=lambda one: one.__name__)
def test_store_sees_the_requests_that_are_counted(
    server: LockedMotoServer,
    warehouse: Warehouse,
    store: SteppingStore,
    operation: Callable[[Warehouse], Callable[[], object]],
) -> None:
    run = operation(warehouse)
    store.steps.clear()
    server.requests.clear()

    run()

    counted: dict[str, int] = {}
    for kind, number in store.requests.items():
        counted[METHODS[kind]] = counted.get(METHODS[kind], 0) + number
    assert dict(server.requests) == counted
    assert sum(counted.values()) > 0


@pytest.mark.parametrize(
    ("size", "seen"),
    [(PART_BYTES - 1, {"PUT": 1}), (PART_BYTES + 1, {"PUT": 2, "POST": 2}), (3 * PART_BYTES, {"PUT": 3, "POST": 2})],
    ids=["less than a part", "two parts", "three parts"],
)
def test_large_object_costs_its_parts_and_two_requests(
    server: LockedMotoServer, store: SteppingStore, size: int, seen: dict[str, int]
) -> None:
    server.requests.clear()

    with store.writer("large") as file:
        file.write(b"x" * size)

    assert dict(server.requests) == seen


def test_thousand_deletions_in_any_order_are_one_request(server: LockedMotoServer, store: SteppingStore) -> None:
    remote = open_store(store.spec)
    remote.put("one", b"")
    server.requests.clear()

    remote.delete_unordered([f"object-{number}" for number in range(999)] + ["one"])

    assert dict(server.requests) == {"POST": 1}
    assert remote.get("one") is None


def test_check_of_a_warehouse_on_s3_tells_what_is_late_and_writes_nothing(
    server: LockedMotoServer, warehouse: Warehouse, store: SteppingStore
) -> None:
    transact(warehouse)
    store.delete([commit_path(public_root("t"), 0), commit_path(public_root("t"), 1), commit_path(public_root("t"), 2)])
    options = [f"--storage-option={name}={value}" for name, value in server.storage_options.items()]
    before = {meta.path for meta in store.list("")}
    server.requests.clear()

    result = CliRunner().invoke(
        application, ["check", "-w", store.spec.url, *options, "--limit=publication_age_ms=0", "-o", "json"]
    )

    assert [found["finding"] for found in json.loads(result.stdout)] == ["not published"]
    assert result.exit_code == 3
    assert server.requests.keys() == {"GET", "HEAD"}
    assert {meta.path for meta in store.list("")} == before


def test_longest_prefix_has_room_for_a_segment_of_the_longest_topic(server: LockedMotoServer) -> None:
    most = LONGEST_KEY_BYTES - 1 - LONGEST_PATH
    store = open_store(StoreSpec("s3://requests/" + "p" * most, server.storage_options))
    warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
    topic = "t" * 249
    warehouse.admin().create_topic(topic, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.send(topic, row={"account": "a", "amount": 1})

    assert warehouse.read_arrow(topic).read_all().num_rows == 1
    store.put("x" * LONGEST_PATH, b"")
    assert store.head("x" * LONGEST_PATH) is not None
    longer = open_store(StoreSpec("s3://requests/" + "p" * (most + 1), server.storage_options))
    with pytest.raises(InvalidRequestError, match=f"bytes={most + 1} most={most}"):
        create_on(longer, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
