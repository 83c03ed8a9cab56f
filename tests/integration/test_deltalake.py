"""``deltalake`` reads every table of a warehouse as we do, and is refused every change (PROTOCOL.md §3.1)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, TableFeatures, write_deltalake
from deltalake.exceptions import DeltaError

from tests.simulation.site import TWO_COLUMNS, published
from tests.unit.admin.group_members import joined
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.format.schema import DEEPEST_TYPE
from txntable.verification.damage import DamageKind
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with commits, aborts, plain appends, deletions and checkpoints."""
    made = Warehouse.create(str(tmp_path_factory.mktemp("deltalake") / "wh"), durability="page-cache")
    admin = made.admin()
    admin.create_topic("t", partitions=3, schema=TWO_COLUMNS, key=["account"])
    admin.create_topic("gone", partitions=1, schema=TWO_COLUMNS)
    naive = pa.schema([pa.field("at", pa.timestamp("us")), pa.field("x", pa.decimal128(12, 2))])
    admin.create_topic("naive", schema=naive)
    producer = made.producer("etl")
    producer.init_transactions()
    for number in range(8):
        producer.begin_transaction(batch_id=f"run {number}")
        for name in ("t", "gone", "naive"):
            producer.send(name, row={} if name == "naive" else {"account": f"a{number % 3}", "amount": number})
        producer.flush()
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)()
    with made.producer() as plain:
        plain.send("t", row={"account": "plain", "amount": None})
    admin.delete_topic("gone")
    admin.alter_consumer_group_offsets("g", {TopicPartition("t", 0): 3, TopicPartition("naive", 0): 1})
    joined(made, "m", "h", topic="t")
    for log in (made.transactions.log, made.offsets.log, made.topic_log("t").segments, made.topic_log("t").public):
        log.write_checkpoint()
    producer.begin_transaction()
    producer.send("t", row={"account": "after the checkpoint", "amount": 1})
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, "g")
    producer.commit_transaction()
    return made


@pytest.mark.parametrize(
    "wraps",
    [
        [lambda inner: pa.struct([pa.field("a", inner)])],
        [pa.list_],
        [lambda inner: pa.map_(pa.string(), inner)],
        [lambda inner: pa.struct([pa.field("a", inner)]), lambda inner: pa.map_(pa.string(), inner), pa.list_],
    ],
    ids=["structs", "lists", "maps", "all of them"],
)
def test_deepest_type_that_is_taken_is_read(tmp_path: Path, wraps: list[Callable[[pa.DataType], pa.DataType]]) -> None:
    kind = pa.int64()
    for level in range(DEEPEST_TYPE):
        kind = wraps[level % len(wraps)](kind)
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("deep", schema=pa.schema([("a", kind)]))
    with made.producer() as producer:
        producer.send("deep", row={"a": None})

    assert DeltaTable(path_of(made, public_root("deep"))).to_pyarrow_table().num_rows == 1


def test_reader_sees_null_in_records_that_are_older_than_a_column(tmp_path: Path) -> None:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", schema=TWO_COLUMNS)
    with made.producer() as producer:
        producer.send("t", row={"account": "old", "amount": 1})
        producer.flush()
        before = DeltaTable(path_of(made, public_root("t")))
        made.admin().add_columns("t", [pa.field("note", pa.string()), pa.field("when", pa.timestamp("us", "UTC"))])
        producer.send("t", row={"account": "new", "amount": 2, "note": "n"})

    after = DeltaTable(path_of(made, public_root("t")))

    sql = 'SELECT account, note, "when" FROM x ORDER BY _base_offset'
    assert query(after, sql) == [
        {"account": "old", "note": None, "when": None},
        {"account": "new", "note": "n", "when": None},
    ]
    assert query(after, "SELECT account FROM x WHERE note IS NULL") == [{"account": "old"}]
    assert query(before, "SELECT * FROM x")[0].keys() & {"note", "when"} == set()


ROOTS = [
    TRANSACTION_LOG_ROOT,
    OFFSET_LOG_ROOT,
    *(root(name) for root in (public_root, segments_root) for name in ("t", "gone", "naive")),
]


def path_of(warehouse: Warehouse, root: str) -> str:
    return f"{warehouse.url}/{root}"


def query(table: DeltaTable, sql: str) -> list[dict]:
    rows: list[dict] = pa.table(QueryBuilder().register("x", table).execute(sql)).to_pylist()
    return rows


def our_log(warehouse: Warehouse, root: str):
    if root == TRANSACTION_LOG_ROOT:
        return warehouse.transactions.log
    if root == OFFSET_LOG_ROOT:
        return warehouse.offsets.log
    topic = warehouse.topic_log(root.split("/")[1])
    return topic.segments if root.endswith("_segments") else topic.public


@pytest.mark.parametrize("root", ROOTS)
def test_deltalake_sees_our_version_and_our_live_files(warehouse: Warehouse, root: str) -> None:
    ours = our_log(warehouse, root).refresh()
    table = DeltaTable(path_of(warehouse, root))

    assert table.version() == ours.version
    assert {uri.split(f"{root}/", 1)[1] for uri in table.file_uris()} == ours.files.paths()
    counted = sum(1 for add in ours.files if '"numRecords":1' in (add.stats or ""))
    assert query(table, "select count(*) as n from x")[0]["n"] >= counted


def test_deltalake_reads_the_public_table_record_by_record(warehouse: Warehouse) -> None:
    sql = "select _partition, _base_offset + _offset_delta as _offset, account, amount from x order by 1, 2"

    assert query(DeltaTable(path_of(warehouse, public_root("t"))), sql) == published(warehouse, "t")


def test_deltalake_reads_the_transaction_log_as_a_table(warehouse: Warehouse) -> None:
    warehouse.complete()
    table = DeltaTable(path_of(warehouse, TRANSACTION_LOG_ROOT))

    found = query(table, "select _state, _producer_epoch, _constant from x where _kind = 'id'")

    row = warehouse.transactions.row("etl")
    assert row is not None
    assert found == [{"_state": row.state.value, "_producer_epoch": row.producer_epoch, "_constant": 1}]
    assert query(table, "select count(*) as n from x where _kind = 'batch'") == [{"n": 5}]


def test_deltalake_reads_the_offsets_of_groups_as_a_table(warehouse: Warehouse) -> None:
    table = DeltaTable(path_of(warehouse, OFFSET_LOG_ROOT))

    found = query(table, "select _group, _topic, _partition, _offset from x where _kind = 'offset' order by _topic")

    assert [tuple(row.values()) for row in found] == [("g", "naive", 0, 1), ("g", "t", 0, 5)]
    assert query(table, "select _group, _topic from x where _kind = 'group'") == [{"_group": "h", "_topic": None}]


def test_deltalake_travels_to_every_version_of_the_public_table(warehouse: Warehouse) -> None:
    newest = warehouse.topic_log("t").public.refresh().version
    assert newest is not None
    counts = [
        query(DeltaTable(path_of(warehouse, public_root("t")), version=version), "select count(*) as n from x")[0]["n"]
        for version in range(newest + 1)
    ]

    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, len(published(warehouse, "t")))


ROW = pa.table({"account": ["x"], "amount": pa.array([1], pa.int64())})
CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda path: write_deltalake(path, ROW, mode="append", schema_mode="merge"),
    "overwrite": lambda path: write_deltalake(path, ROW, mode="overwrite", schema_mode="overwrite"),
    "delete": lambda path: DeltaTable(path).delete(),
    "update": lambda path: DeltaTable(path).update(updates={"amount": "0"}),
    "optimize": lambda path: DeltaTable(path).optimize.compact(),
    "z-order": lambda path: DeltaTable(path).optimize.z_order(["amount"]),
    "restore": lambda path: DeltaTable(path).restore(0),
    "set properties": lambda path: DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"}),
    "add feature": lambda path: DeltaTable(path).alter.add_feature(
        TableFeatures.AppendOnly, allow_protocol_versions_increase=True
    ),
}


@pytest.mark.parametrize("root", [public_root("t"), segments_root("t"), public_root("naive")])
@pytest.mark.parametrize("change", CHANGES)
def test_deltalake_is_refused_every_change(warehouse: Warehouse, root: str, change: str) -> None:
    before = files_below(Path(path_of(warehouse, root)))

    with pytest.raises((DeltaError, OSError)) as refused:
        CHANGES[change](path_of(warehouse, root))

    assert "txntable.exclusiveWriter" in str(refused.value), str(refused.value)
    after = files_below(Path(path_of(warehouse, root)))
    assert {path for path in before if path not in after} == set(), "nothing of ours is gone"
    assert {path for path in after - before if "_delta_log" in path} == set(), "nothing was committed"


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def vacuum(path: str) -> object:
    return DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


def test_vacuum_by_deltalake_is_refused_where_it_would_delete(warehouse: Warehouse) -> None:
    root = path_of(warehouse, segments_root("gone"))
    before = files_below(Path(root))

    with pytest.raises(DeltaError, match=r"txntable\.exclusiveWriter"):
        vacuum(root)

    assert files_below(Path(root)) == before


@pytest.mark.parametrize("topic", ["t", "gone", "naive"])
def test_vacuum_by_deltalake_of_a_public_table_deletes_nothing(warehouse: Warehouse, topic: str) -> None:
    root = path_of(warehouse, public_root(topic))
    before = files_below(Path(root))

    vacuum(root)

    assert files_below(Path(root)) == before


def test_repair_by_deltalake_is_refused_when_a_segment_is_missing(warehouse: Warehouse, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(path_of(warehouse, public_root("t")), root)
    next(root.glob("_segments/p*/*.parquet")).unlink()

    with pytest.raises(DeltaError, match=r"txntable\.exclusiveWriter"):
        DeltaTable(str(root)).repair()


@pytest.mark.parametrize("root", [public_root("t"), segments_root("t"), TRANSACTION_LOG_ROOT])
def test_checkpoint_by_deltalake_stops_no_reader_nor_writer_and_is_told(
    warehouse: Warehouse, tmp_path: Path, root: str
) -> None:
    """It says more of what was removed than ours do, and names no entry (PROTOCOL.md §4.4)."""
    shutil.copytree(warehouse.store.spec.url, tmp_path / "wh")
    url = str(tmp_path / "wh")
    before = Warehouse.open(url, durability="page-cache")
    before.admin().delete_records({TopicPartition("t", partition): None for partition in range(2)})
    position = before.snapshot().position
    then, now = (before.read_arrow("t", as_of=as_of).read_all().num_rows for as_of in (position, None))
    DeltaTable(f"{url}/{root}").create_checkpoint()

    opened = Warehouse.open(url, durability="page-cache")
    with opened.producer("late") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.send("t", row={"account": "after", "amount": 1})

    assert opened.read_arrow("t", as_of=position).read_all().num_rows == then
    assert opened.read_arrow("t").read_all().num_rows == now + 1
    assert [one.kind for one in opened.verify().damages] == [DamageKind.FOREIGN_CHECKPOINT]
