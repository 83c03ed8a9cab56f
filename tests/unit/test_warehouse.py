"""Creating and opening warehouses and topics, and everything that can be wrong with that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.admin.admin import Admin
from txntable.errors import (
    DamagedDataError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidRequestError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    SchemaMismatchError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    UnsupportedFormatError,
    WarehouseAlreadyExistsError,
    WarehouseNotFoundError,
)
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, WAREHOUSE_FILE
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.storage.object_store import PutOutcome
from txntable.warehouse.warehouse import Warehouse, create_on, open_on


@pytest.fixture
def site() -> Site:
    return Site()


def admin_of(site: Site) -> Admin:
    return site.create().admin()


# -- warehouses ---------------------------------------------------------------------------------


def test_settings_of_64_bits_are_kept_and_larger_ones_refused() -> None:
    """Kafka's users say "for ever" so."""
    for_ever = WarehouseSettings(vacuum_retention_ms=2**63 - 1, offsets_retention_ms=2**63 - 1)
    site = Site()
    create_on(site.store(), site.environment(), exist_ok=False, settings=for_ever)

    assert site.open().settings() == for_ever
    with pytest.raises(InvalidConfigError, match="64 bits"):
        WarehouseSettings(vacuum_retention_ms=2**63)


@pytest.mark.usefixtures("probes_as_they_are")
def test_created_warehouse_is_opened_with_its_settings(site: Site) -> None:
    wanted = WarehouseSettings(vacuum_retention_ms=2 * 86_400_000, transaction_max_timeout_ms=1000)
    made = create_on(site.store(), site.environment(), exist_ok=False, settings=wanted)

    opened = site.open()

    assert opened.settings() == wanted
    assert opened.identity == made.identity
    assert opened.identity.capabilities["racers"] == 16


def test_creation_is_refused_where_a_warehouse_is(site: Site) -> None:
    first = site.create()
    with pytest.raises(WarehouseAlreadyExistsError, match=r"Warehouse\.open, or create it with exist_ok=True"):
        create_on(site.store(), site.environment(), exist_ok=False, settings=WarehouseSettings())

    assert site.create().identity == first.identity


def test_creation_with_config_says_what_settings_are_called(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"argument 'config': .* settings=WarehouseSettings"):
        Warehouse.create(str(tmp_path / "w"), config={"vacuum_retention_ms": "86400000"})  # type: ignore[call-arg]

    assert not (tmp_path / "w").exists()


def test_topic_without_a_key_may_say_so(site: Site) -> None:
    made = site.create().admin().create_topic("keyless", schema=TWO_COLUMNS, key=None)

    assert made.key == ()


def test_creation_is_refused_in_a_used_folder_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not touch")

    with pytest.raises(WarehouseAlreadyExistsError, match=r"location is not empty.*found=thesis\.tex"):
        Warehouse.create(str(tmp_path))

    assert [path.name for path in tmp_path.rglob("*")] == ["thesis.tex"]


def test_creation_is_refused_on_a_store_whose_put_if_absent_has_two_winners(site: Site) -> None:
    class Careless(MemoryStore):
        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            self.put(path, data)
            return PutOutcome.CREATED

    with pytest.raises(StoreUnsuitableError):
        create_on(Careless(site.objects), site.environment(), exist_ok=False, settings=WarehouseSettings())

    assert WAREHOUSE_FILE not in site.objects.snapshot()


def test_opening_says_where_there_is_no_warehouse(tmp_path: Path) -> None:
    with pytest.raises(WarehouseNotFoundError, match=str(tmp_path)):
        Warehouse.open(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda fields: fields | {"format": "2"}, UnsupportedFormatError),
        (lambda fields: fields | {"format": "0"}, UnsupportedFormatError),
        (lambda fields: fields | {"surprise": 1}, UnsupportedFormatError),
        (lambda fields: {"format": "1"}, DamagedDataError),
    ],
)
def test_opening_refuses_an_identity_that_it_does_not_know(site: Site, change, error: type[Exception]) -> None:
    site.create()
    stored = site.objects.get(WAREHOUSE_FILE)
    assert stored is not None
    site.objects.put(WAREHOUSE_FILE, json.dumps(change(json.loads(stored.data))).encode())

    with pytest.raises(error):
        site.open()


def test_opening_finishes_an_interrupted_creation_and_a_reader_says_that_it_can_not(site: Site) -> None:
    site.create()
    for path in site.objects.snapshot():
        if path.startswith((TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT)):
            site.objects.delete(path)

    with pytest.raises(DamagedDataError, match="open it once with write access"):
        open_on(ReadOnlyStore(MemoryStore(site.objects)), site.environment())
    site.open().admin().create_topic("t")
    assert open_on(ReadOnlyStore(MemoryStore(site.objects)), site.environment()).admin().list_topics() == ["t"]


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT])
def test_opening_refuses_a_warehouse_that_has_topics_and_has_lost_a_log(site: Site, root: str) -> None:
    site.create().admin().create_topic("t")
    for path in site.objects.snapshot():
        if path.startswith(root):
            site.objects.delete(path)
    before = site.objects.snapshot()

    with pytest.raises(DamagedDataError, match=root):
        site.open()

    assert site.objects.snapshot() == before


@pytest.mark.parametrize(
    "settings",
    [
        {"vacuum_retention_ms": 1},
        {"transaction_max_timeout_ms": 0},
        {"snapshot_retention_ms": 59_999},
        {"snapshot_retention_ms": 2 * 86_400_000 + 1, "vacuum_retention_ms": 2 * 86_400_000},
    ],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(InvalidConfigError):
        WarehouseSettings(**settings)


# -- topics -------------------------------------------------------------------------------------


def test_created_topic_is_described_as_it_was_asked_for(site: Site) -> None:
    admin = admin_of(site)
    admin.create_topic("t", partitions=3, schema=TWO_COLUMNS, key=["account"], config={"retention.ms": 3_600_000})

    (found,) = admin.describe_topics(["t"])

    assert (found.settings.partitions, found.settings.key) == (3, ("account",))
    assert found.settings.schema == TWO_COLUMNS
    assert dict(found.settings.config) == {"retention.ms": "3600000"}
    assert [p.high_watermark for p in found.partitions] == [0, 0, 0]


def test_schema_is_kept_in_the_types_that_delta_has(site: Site) -> None:
    asked = pa.schema([pa.field("x", pa.large_string()), pa.field("at", pa.timestamp("us", tz="Europe/Zurich"))])

    found = admin_of(site).create_topic("t", schema=asked).schema

    assert [str(field.type) for field in found] == ["string", "timestamp[us, tz=UTC]"]
    assert site.open().admin().create_topic("t", schema=asked, exist_ok=True).schema == found


def test_existing_topic_is_refused_and_what_differs_is_named(site: Site) -> None:
    admin = admin_of(site)
    admin.create_topic("t", partitions=3, schema=TWO_COLUMNS)

    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topic("t", partitions=3, schema=TWO_COLUMNS)
    with pytest.raises(TopicAlreadyExistsError, match="differs=partitions,key"):
        admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"], exist_ok=True)
    assert admin.create_topic("t", partitions=3, schema=TWO_COLUMNS, exist_ok=True).partitions == 3


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("", {}, InvalidTopicError),
        ("..", {}, InvalidTopicError),
        ("a/b", {}, InvalidTopicError),
        ("x" * 250, {}, InvalidTopicError),
        ("t", {"partitions": 0}, InvalidPartitionsError),
        ("t", {"partitions": True}, InvalidPartitionsError),
        ("t", {"config": {"retention.mss": 1}}, InvalidConfigError),
        ("t", {"config": {"retention.ms": "long"}}, InvalidConfigError),
        ("t", {"config": {"retention.ms": 899_999}}, InvalidConfigError),
        ("t", {"schema": TWO_COLUMNS, "config": {"cleanup.policy": "compact"}}, InvalidConfigError),
        ("t", {"schema": {"x": "long"}}, SchemaMismatchError),
        ("t", {"schema": pa.schema([])}, SchemaMismatchError),
        ("t", {"schema": TWO_COLUMNS, "key": "account"}, InvalidRequestError),
        ("t", {"schema": pa.schema([("_x", pa.int64())])}, SchemaMismatchError),
        ("t", {"schema": pa.schema([("x", pa.int64()), ("X", pa.int64())])}, SchemaMismatchError),
        ("t", {"schema": pa.schema([("x", pa.uint8())])}, SchemaMismatchError),
        ("t", {"schema": TWO_COLUMNS, "key": ["nothing"]}, InvalidRequestError),
        ("t", {"schema": pa.schema([("x", pa.float64())]), "key": ["x"]}, SchemaMismatchError),
    ],
)
def test_topic_that_can_not_be_is_refused_and_nothing_is_made(
    site: Site, name: str, arguments: dict, error: type[Exception]
) -> None:
    admin = admin_of(site)
    before = set(site.objects.snapshot())

    with pytest.raises(error):
        admin.create_topic(name, **arguments)

    assert set(site.objects.snapshot()) == before


def test_topic_is_only_looked_at_by_who_may_not_write(site: Site) -> None:
    admin_of(site).create_topic("old")
    reader = open_on(ReadOnlyStore(site.store()), site.environment()).admin()
    objects = site.objects.snapshot()

    looked = reader.create_topic("new", partitions=3, validate_only=True)

    assert (looked.name, looked.partitions) == ("new", 3)
    for name in ("old", "OLD"):
        with pytest.raises((TopicAlreadyExistsError, InvalidTopicError)):
            reader.create_topic(name, validate_only=True)
    assert site.objects.snapshot() == objects


def test_created_again_topic_has_another_id_and_none_of_the_old_records(site: Site) -> None:
    warehouse = site.create()
    admin = warehouse.admin()
    old = admin.create_topic("t", partitions=2, schema=TWO_COLUMNS)
    with warehouse.producer() as producer:
        producer.send("t", row={"account": "old", "amount": 1}, partition=1)
    admin.delete_topic("t")
    assert admin.list_topics() == []

    new = admin.create_topic("t", partitions=1, schema=pa.schema([pa.field("other", pa.float64())]))
    with site.open().producer() as producer:
        first = producer.send("t", row={"other": 1.5})

    assert new.topic_id != old.topic_id
    assert first.offset == 0
    assert published(site.open(), "t") == [{"_partition": 0, "_offset": 0, "other": 1.5}]


def test_created_again_topic_can_not_add_zone_less_timestamps(site: Site) -> None:
    admin = admin_of(site)
    admin.create_topic("t", schema=TWO_COLUMNS)
    admin.delete_topic("t")

    with pytest.raises(InvalidRequestError, match="zone-less"):
        admin.create_topic("t", schema=pa.schema([pa.field("at", pa.timestamp("us"))]))


@pytest.mark.parametrize("call", ["delete_topic", "describe"])
def test_unknown_topic_is_named(site: Site, call: str) -> None:
    admin = admin_of(site)
    calls = {"delete_topic": lambda: admin.delete_topic("none"), "describe": lambda: admin.describe_topics(["none"])}

    with pytest.raises(UnknownTopicOrPartitionError, match="topic=none"):
        calls[call]()


def test_description_of_topics_tells_what_an_open_transaction_holds_back(site: Site) -> None:
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for account in ("committed", "open"):
        producer.begin_transaction()
        producer.send("t", row={"account": account, "amount": 1})
        producer.flush()
        if account == "committed":
            producer.commit_transaction()

    (partition,) = site.open().admin().describe_topics(["t"])[0].partitions

    assert (partition.last_stable_offset, partition.high_watermark, partition.records) == (2, 3, 2)
    assert [row.state.value for row in site.open().admin().list_transactions()] == ["ONGOING"]


# -- snapshots ----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_of", [-1, 99])
def test_snapshot_outside_of_the_history_is_refused(site: Site, as_of: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="head=0"):
        site.create().snapshot(as_of)


def test_snapshot_of_a_reader_stops_below_what_it_may_not_complete(site: Site) -> None:
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    positions = []
    for number in range(2):
        producer.begin_transaction()
        producer.send("t", row={"account": "a", "amount": number})
        producer.flush()
        if number == 1:
            producer._coordinator.try_bring = lambda transactional_id: None  # type: ignore[method-assign]
        producer.commit_transaction()
        row = warehouse.transactions.row("etl")
        assert row is not None
        assert row.decision is not None
        positions.append(row.decision.position)

    reader = open_on(ReadOnlyStore(MemoryStore(site.objects)), site.environment())
    assert reader.snapshot().position == positions[1] - 1
    with pytest.raises(StorePermissionError):
        reader.producer().send("t", row={"account": "x"})
    assert site.open().snapshot().position == positions[1]
    assert reader.snapshot().position >= positions[1]


def test_creation_whose_answer_was_lost_is_found_to_be_ones_own(site: Site) -> None:
    store = site.store(on(Operation.PUT_IF_ABSENT, WAREHOUSE_FILE, Fault.LOST_ANSWER))

    made = create_on(store, site.environment(), exist_ok=False, settings=WarehouseSettings())

    assert made.identity == site.open().identity


def test_creation_that_did_not_reach_the_store_says_so_and_can_be_made_again(site: Site) -> None:
    store = site.store(on(Operation.PUT_IF_ABSENT, WAREHOUSE_FILE, Fault.FAIL_BEFORE))

    with pytest.raises(StoreUnavailableError):
        create_on(store, site.environment(), exist_ok=False, settings=WarehouseSettings())

    made = create_on(store, site.environment(), exist_ok=False, settings=WarehouseSettings())
    assert made.identity == site.open().identity


def test_description_of_a_single_name_is_refused(site: Site) -> None:
    with pytest.raises(InvalidRequestError, match="list of topics"):
        admin_of(site).describe_topics("orders")


@pytest.mark.parametrize("client", ["", "admin()", "consumer()", "producer()", "coordinator()"])
def test_warehouse_loads_its_clients_when_the_first_one_is_asked_for(tmp_path: Path, client: str) -> None:
    script = (
        "import sys; from txntable import Warehouse\n"
        "warehouse = Warehouse.create(sys.argv[1])\n"
        f"warehouse.{client or 'topic_log'}\n"
        "print(*sys.modules)"
    )

    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "w")], capture_output=True, text=True, check=True, timeout=60
    )

    clients = {f"txntable.{room}" for room in ("admin", "consumer", "groups", "producer.producer", "upkeep")}
    assert clients & set(run.stdout.split()) == (clients if client else set())
