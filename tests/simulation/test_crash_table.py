"""PROTOCOL.md §11 has a row for every crash point that any operation has, and for no other.

The operations are run, not described: a storage call of a new kind, or a log entry by a new
operation, fails here until it has a row that says what is true and who repairs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.stepping_store import SteppingStore
from tests.simulation import test_admin_crashes as administer
from tests.simulation import test_carried_crashes as carried
from tests.simulation import test_compaction_crashes as rewrite
from tests.simulation import test_crashes as operate
from tests.simulation import test_erasure_crashes as erasing
from tests.simulation import test_group_crashes as group
from tests.simulation import test_reading_crashes as reading
from tests.simulation import test_retention_crashes as retain
from tests.simulation import test_vacuum as vacuuming
from tests.simulation.crash_points import crash_point
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.keyed_table import find_row, keyed_remove
from txntable.transactions.transaction_rows import ID_KIND
from txntable.warehouse.warehouse import Warehouse, create_on

PROTOCOL = (Path(__file__).parents[2] / "PROTOCOL.md").read_text()


def create_topic(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("fresh", schema=TWO_COLUMNS)


def delete_topic(warehouse: Warehouse) -> None:
    warehouse.admin().delete_topic("debit")


def add_columns(warehouse: Warehouse) -> None:
    warehouse.admin().add_columns("debit", [pa.field("note", pa.string())])


def create_partitions(warehouse: Warehouse) -> None:
    warehouse.admin().create_partitions({"debit": 3})


def write_checkpoint(warehouse: Warehouse) -> None:
    warehouse.transactions.log.write_checkpoint()


def commit_in_two_phases(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    operate.send(producer, "done")
    producer.complete_transaction(producer.prepare_transaction())


def abort_hanging(warehouse: Warehouse) -> None:
    warehouse.admin().abort_transaction(topic="credit", partition=open_partition(warehouse), start_offset=0)


def open_partition(warehouse: Warehouse) -> int:
    topic = warehouse.topic_log("credit")
    topic.settings()
    (found,) = topic.segments.fold.open.values()
    return min(found.first_offsets)


def site_with_hanging_transaction() -> Site:
    """The row of the id is lost: nothing in the transaction log will end what is open."""
    site = operate.prepared(open_transaction=True)
    transactions = site.open().transactions
    transactions.refresh()
    row = transactions.row("etl")
    assert row is not None
    key = row.key

    def lose(table):
        add = find_row(table, ID_KIND, key)
        assert add is not None
        return [keyed_remove(add, 0)]

    transactions.log.commit("LOSE", lose)
    return site


OPERATIONS: dict[str, tuple[Callable[[], Site], Callable[[Warehouse], object]]] = {
    "create a topic": (lambda: operate.prepared(topics=False), create_topic),
    "delete a topic": (operate.prepared, delete_topic),
    "add columns": (operate.prepared, add_columns),
    "create partitions": (operate.prepared, create_partitions),
    "alter settings": (retain.site_with_old_records, retain.alter_configs),
    "delete records": (retain.site_with_old_records, retain.delete_records),
    "expire records": (retain.site_with_old_records, retain.expire),
    "compact": (rewrite.site_to_compact, rewrite.compact_all),
    "commit": (operate.prepared, operate.transfer),
    "commit what the decision carries": (operate.prepared, carried.carry),
    "abort": (operate.prepared, operate.abort),
    "take over": (lambda: operate.prepared(open_transaction=True), operate.take_over),
    "append without a transaction": (operate.prepared, operate.append_plain),
    "commit in two phases": (operate.prepared, commit_in_two_phases),
    "write a checkpoint": (operate.prepared, write_checkpoint),
    "abort by an admin": (lambda: operate.prepared(open_transaction=True), administer.abort_open),
    "fence by an admin": (lambda: operate.prepared(open_transaction=True), administer.fence),
    "fence all after a restore": (lambda: operate.prepared(open_transaction=True), administer.fence_all),
    "fence all where the offset log has lost its end": (administer.site_with_lost_offsets, administer.fence_all),
    "abort a hanging transaction": (site_with_hanging_transaction, abort_hanging),
    "commit with offsets": (group.site_with_input, group.copy),
    "commit offsets": (operate.prepared, group.commit_plain),
    "join a group": (group.site_with_member, group.join),
    "release partitions": (group.site_with_two_members, group.release),
    "leave a group": (group.site_with_two_members, group.leave),
    "refresh a group": (group.site_with_topic_created_again, group.refresh),
    "reset offsets": (operate.prepared, group.reset),
    "delete offsets": (group.site_with_offsets, group.delete_offsets),
    "delete a group": (group.site_with_offsets, group.delete_group),
    "delete a topic with offsets": (group.site_with_offsets, group.delete_topic),
    "vacuum": (vacuuming.untidy, vacuuming.tidy_up),
    "alter a warehouse": (operate.prepared, administer.alter_warehouse),
    "erase": (erasing.site_to_erase, erasing.erase_all),
    "end what holds a consumer back": (reading.site_held_back, reading.read_on),
    "run the coordinator job": (operate.site_with_work_for_the_coordinator, operate.coordinate),
}


def points_of(store: SteppingStore, site: Site) -> set[str]:
    objects = site.objects.snapshot()
    return {point for step in store.steps if (point := crash_point(step, objects)) is not None}


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """The crash points of each operation, as it is."""
    creation = Site()
    store = creation.store()
    create_on(store, creation.environment(), exist_ok=True, settings=WarehouseSettings())
    points = {"create a warehouse": points_of(store, creation)}
    for name, (make, operation) in OPERATIONS.items():
        site = make()
        warehouse = site.open()
        assert isinstance(warehouse.store, SteppingStore)
        operation(warehouse)
        points[name] = points_of(warehouse.store, site)
    return points


def rows_of_the_protocol() -> list[str]:
    table = PROTOCOL.split("## 11. Crashes", 1)[1].split("\n## ", 1)[0]
    firsts = [line.strip("|").split("|")[0].strip() for line in table.splitlines() if line.startswith("|")]
    return [name.strip() for first in firsts[2:] for name in first.split(",")]


def test_every_crash_point_of_every_operation_has_one_row_in_the_protocol(found: dict[str, set[str]]) -> None:
    rows = rows_of_the_protocol()

    assert len(rows) == len(set(rows))
    assert set().union(*found.values()) == set(rows)


def test_each_operation_has_the_points_that_make_it_what_it_is(found: dict[str, set[str]]) -> None:
    """The enumeration would be worth nothing if an operation had stopped doing its work."""
    assert {"T ENROL", "S APPEND", "T COMMIT", "S MARKERS", "P PROJECT", "T COMPLETE"} <= found["commit"]
    assert {"a segment", "a constant file", "T COMMIT", "S MARKERS", "P PROJECT"} <= found[
        "commit what the decision carries"
    ]
    assert not {"T ENROL", "S APPEND"} & found["commit what the decision carries"]
    assert {"S APPEND", "P PROJECT"} <= found["append without a transaction"]
    assert {"S ADD COLUMNS", "P PROJECT"} <= found["add columns"]
    assert {"S CREATE PARTITIONS", "P PROJECT"} <= found["create partitions"]
    assert {"S ALTER CONFIGS", "P PROJECT"} <= found["alter settings"]
    assert {"S DELETE RECORDS", "a segment", "S COMPACT", "P PROJECT"} <= found["delete records"]
    assert {"S RETENTION", "a constant file", "P PROJECT"} <= found["expire records"]
    assert {"a segment", "S COMPACT", "a constant file", "P PROJECT"} <= found["compact"]
    assert {"a segment", "S COMPACT", "a checkpoint", "a deleted log file", "S TOMBSTONE", "a deleted file"} <= found[
        "erase"
    ]
    assert {"T TIME_OUT", "S MARKERS", "P PROJECT"} <= found["end what holds a consumer back"]
    assert "T PREPARE" in found["commit in two phases"]
    assert "O TAKE AS IT IS" in found["fence all where the offset log has lost its end"]
    assert {"O SEND OFFSETS", "T COMMIT", "O SETTLE", "T COMPLETE"} <= found["commit with offsets"]
    assert {"a heartbeat", "O JOIN"} <= found["join a group"]
    assert {"T ALTER SETTINGS", "O ALTER SETTINGS", "S ALTER SETTINGS", "P PROJECT"} <= found["alter a warehouse"]
    assert {"T CLAIM LEASE", "T TIME_OUT", "T EXPIRE", "S EXPIRE PRODUCERS", "a deleted log file"} <= found[
        "run the coordinator job"
    ]
    assert {"S TOMBSTONE", "P PROJECT", "a deleted file", "a deleted heartbeat"} <= found["vacuum"]
    assert {"O EXPEL", "a deleted heartbeat", "O EXPIRE OFFSETS"} <= found["run the coordinator job"]


def test_storage_call_of_an_unknown_kind_is_no_crash_point_without_a_name() -> None:
    with pytest.raises(AssertionError, match="new kind"):
        crash_point(Step(1, Operation.PUT, "topics/t/_sidecar/x"), {})


def test_reading_is_no_crash_point() -> None:
    assert crash_point(Step(1, Operation.GET, "anything"), {}) is None


def test_table_of_the_protocol_says_of_every_point_what_is_true() -> None:
    table = PROTOCOL.split("## 11. Crashes", 1)[1].split("\n## ", 1)[0]
    cells = [re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines() if line.startswith("| ")]

    assert all(len(row) >= 2 and row[1] for row in cells)


def test_every_operation_that_the_code_writes_into_a_log_has_a_row() -> None:
    """An operation that no run above reaches would otherwise be a crash point that nobody has thought of."""
    root = Path(__file__).parents[2]
    sources = [path for package in ("txntable", "compaction") for path in (root / package).rglob("*.py")]
    source = "".join(path.read_text() for path in sources)
    named = set(re.findall(r"(?:commit|request|_swept)\(\s*(?:\w+, )?\"([A-Z][A-Z_ ]+)\"", source))

    assert len(named) > 10
    assert named <= {row.split(" ", 1)[1] for row in rows_of_the_protocol() if " " in row}
