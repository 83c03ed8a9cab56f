"""Adding columns to a topic that has records, and everyone who knows it from before."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tests.simulation.site import TWO_COLUMNS
from tests.unit.reading import TOPIC, commit, leave_open, send, site_with_topic, transactional
from txntable.errors import (
    InvalidRequestError,
    SchemaMismatchError,
    TopicAlreadyExistsError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.topic import TopicSettings
from txntable.warehouse.warehouse import Warehouse

NOTE = pa.field("note", pa.string())
PRICE = pa.field("price", pa.decimal128(10, 2))


def rows(warehouse: Warehouse, *columns: str) -> list[tuple]:
    table = warehouse.read_arrow(TOPIC, columns=columns).read_all()
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize("columns", [pa.schema([NOTE, PRICE]), [NOTE, PRICE]], ids=["schema", "fields"])
def test_new_columns_come_last_and_are_null_in_old_records(columns: pa.Schema | Sequence[pa.Field]) -> None:
    _, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "old")

    settings = warehouse.admin().add_columns(TOPIC, columns)
    with warehouse.producer() as producer:
        producer.send(TOPIC, row={"account": "new", "amount": 1, "note": "n"}, partition=0)

    assert settings.schema == pa.schema([*TWO_COLUMNS, NOTE, PRICE])
    assert rows(warehouse, "account", "note", "price") == [("old", None, None), ("new", "n", None)]


def test_adding_the_same_columns_again_writes_nothing() -> None:
    site, warehouse = site_with_topic()
    first = warehouse.admin().add_columns(TOPIC, [NOTE])
    other = site.open()
    other.topic_log(TOPIC).settings()
    objects = site.objects.snapshot()

    assert warehouse.admin().add_columns(TOPIC, [NOTE]) == other.admin().add_columns(TOPIC, [NOTE]) == first

    entries = {path for path in site.objects.snapshot().keys() - objects.keys() if "_delta_log" in path}
    assert entries == set()


def test_columns_added_by_two_admins_are_both_there() -> None:
    site, warehouse = site_with_topic()
    other = site.open().admin()
    other.describe_topics([TOPIC])
    warehouse.admin().add_columns(TOPIC, [NOTE])

    settings = other.add_columns(TOPIC, [PRICE])

    assert settings.schema.names == ["account", "amount", "note", "price"]


def test_topic_keeps_all_else_that_it_is() -> None:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic(
        "k", partitions=3, schema=TWO_COLUMNS, key=["account"], config={"segment.bytes": 2**20}
    )
    before = warehouse.topic_log("k").segments.table.metadata
    settings = warehouse.topic_log("k").settings()

    added = warehouse.admin().add_columns("k", [NOTE])

    after = site.open().topic_log("k")
    assert after.settings() == added
    assert added == TopicSettings(
        "k", settings.topic_id, 3, pa.schema([*TWO_COLUMNS, NOTE]), ("account",), {"segment.bytes": "1048576"}
    )
    metadata = after.segments.table.metadata
    assert before is not None
    assert metadata is not None
    assert (metadata.table_id, metadata.created_ms) == (before.table_id, before.created_ms)


def test_producer_that_knows_the_topic_from_before_goes_on_without_the_columns() -> None:
    site, warehouse = site_with_topic(partitions=1)
    other = site.open()
    producer = transactional(other)
    producer.begin_transaction()
    send(producer, "sent before")

    warehouse.admin().add_columns(TOPIC, [NOTE])
    producer.commit_transaction()
    commit(producer, "sent after")

    assert rows(warehouse, "account", "note") == [("sent before", None), ("sent after", None)]


def test_open_transaction_may_write_with_and_without_the_columns() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = leave_open(site.open(), "before")
    warehouse.admin().add_columns(TOPIC, [NOTE])

    producer.send(TOPIC, row={"account": "after", "amount": 1, "note": "n"}, partition=0)
    producer.commit_transaction()

    assert rows(warehouse, "account", "note") == [("before", None), ("after", "n")]


def test_rows_may_leave_a_new_column_out() -> None:
    """The same rule as for columns that were there from the beginning."""
    _, warehouse = site_with_topic(partitions=1)
    warehouse.admin().add_columns(TOPIC, [NOTE])
    two_columns = pa.table({"account": ["a"], "amount": [1]})

    with warehouse.producer() as producer:
        producer.send(TOPIC, row={"account": "a", "amount": 1}, partition=0)
        producer.send(TOPIC, rows=two_columns, partition=0)

    assert rows(warehouse, "account", "note") == [("a", None)] * 2


def test_creation_again_compares_with_the_columns_that_there_are_now() -> None:
    _, warehouse = site_with_topic()
    admin = warehouse.admin()
    admin.add_columns(TOPIC, [NOTE])

    with pytest.raises(TopicAlreadyExistsError, match="differs=schema"):
        admin.create_topic(TOPIC, partitions=2, schema=TWO_COLUMNS, exist_ok=True)
    admin.create_topic(TOPIC, partitions=2, schema=pa.schema([*TWO_COLUMNS, NOTE]), exist_ok=True)


def test_snapshot_of_the_past_has_the_columns_of_then() -> None:
    _, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    position = warehouse.transactions.refresh()
    warehouse.admin().add_columns(TOPIC, [NOTE])
    commit(transactional(warehouse), "b")

    then = warehouse.read_arrow(TOPIC, as_of=position - 1).schema.names

    assert "note" not in then
    assert "note" in warehouse.read_arrow(TOPIC).schema.names


NTZ = pa.timestamp("us")


@pytest.mark.parametrize(
    ("columns", "error", "facts"),
    [
        ([pa.field("note", pa.string(), nullable=False)], SchemaMismatchError, "column=note"),
        ([pa.field("amount", pa.int32())], SchemaMismatchError, "column=amount expected=int64 found=int32"),
        ([pa.field("account", pa.string())], SchemaMismatchError, "column=account"),
        ([pa.field("AMOUNT", pa.int64())], SchemaMismatchError, "differ by case only"),
        ([NOTE, pa.field("Note", pa.string())], SchemaMismatchError, "differ by case only"),
        ([pa.field("_note", pa.string())], SchemaMismatchError, "begin with _"),
        ([pa.field("a note", pa.string())], SchemaMismatchError, "forbid"),
        ([pa.field("note", pa.uint64())], SchemaMismatchError, "column=note"),
        ([], SchemaMismatchError, "at least one column"),
        (["note"], SchemaMismatchError, "pyarrow.Schema"),
        ([pa.field("at", NTZ)], InvalidRequestError, "columns=at"),
        ([pa.field("at", pa.list_(NTZ))], InvalidRequestError, "columns=at"),
    ],
)
def test_column_that_can_not_be_added_is_refused_and_nothing_is_written(
    columns: list, error: type[TxnTableError], facts: str
) -> None:
    _, warehouse = site_with_topic()
    version = warehouse.topic_log(TOPIC).segments.refresh().version

    with pytest.raises(error, match=facts):
        warehouse.admin().add_columns(TOPIC, columns)

    assert warehouse.topic_log(TOPIC).segments.refresh().version == version


def test_zone_less_timestamp_is_added_where_the_topic_had_one_from_the_beginning() -> None:
    _, warehouse = site_with_topic()
    warehouse.admin().create_topic("ntz", schema=pa.schema([pa.field("at", NTZ)]))

    settings = warehouse.admin().add_columns("ntz", [pa.field("until", NTZ)])

    assert settings.schema.names == ["at", "until"]


def test_topic_that_there_is_not_gets_no_columns() -> None:
    _, warehouse = site_with_topic()
    warehouse.admin().delete_topic(TOPIC)

    for name in ("nowhere", TOPIC):
        with pytest.raises(UnknownTopicOrPartitionError):
            warehouse.admin().add_columns(name, [NOTE])


def test_topic_with_kafkas_columns_keeps_them() -> None:
    """Its producers send keys and values, which a topic with other columns does not take."""
    _, warehouse = site_with_topic()
    warehouse.admin().create_topic("raw")

    with pytest.raises(InvalidRequestError, match="Kafka's columns"):
        warehouse.admin().add_columns("raw", [NOTE])

    with warehouse.producer() as producer:
        producer.send("raw", b"v")
    assert warehouse.read_arrow("raw").read_all()["value"].to_pylist() == [b"v"]


# -- inside of structs --------------------------------------------------------------------------


def grown_topic(kind: pa.DataType, old: object, inside: list[str], new: object) -> list[object]:
    """Write a value, add ``y`` inside, write another, and merge them; return what is read of both, before and after."""
    _, warehouse = site_with_topic()
    admin = warehouse.admin()
    admin.create_topic("n", schema=pa.schema([("v", kind)]))
    with warehouse.producer() as producer:
        producer.send("n", row={"v": old})
        producer.flush()
        admin.add_columns("n", [pa.field("y", pa.string())], inside=inside)
        producer.send("n", row={"v": new})
    found: list[object] = warehouse.read_arrow("n", columns=["v"]).read_all()["v"].to_pylist()
    return found


X = pa.struct([pa.field("x", pa.int64())])
INSIDE = {
    "struct": (X, {"x": 1}, ["v"], {"x": 2, "y": "b"}, {"x": 1, "y": None}),
    "null struct": (X, None, ["v"], {"x": 2, "y": "b"}, None),
    "struct in a struct": (
        pa.struct([("s", X)]),
        {"s": {"x": 1}},
        ["v", "s"],
        {"s": {"x": 2, "y": "b"}},
        {"s": {"x": 1, "y": None}},
    ),
    "list": (
        pa.list_(X),
        [{"x": 1}, None],
        ["v", "element"],
        [{"x": 2, "y": "b"}],
        [{"x": 1, "y": None}, None],
    ),
    "list of lists in a struct": (
        pa.struct([("l", pa.list_(pa.list_(X)))]),
        {"l": [[{"x": 1}], None]},
        ["v", "l", "element", "element"],
        {"l": [[{"x": 2, "y": "b"}]]},
        {"l": [[{"x": 1, "y": None}], None]},
    ),
}


@pytest.mark.parametrize("case", INSIDE)
def test_column_that_is_added_inside_of_a_struct_is_null_in_old_records(case: str) -> None:
    kind, old, inside, new, read = INSIDE[case]

    assert grown_topic(kind, old, inside, new) == [read, new]


def test_column_inside_of_a_struct_stands_last_in_it() -> None:
    _, warehouse = site_with_topic()
    admin = warehouse.admin()
    admin.create_topic("n", schema=pa.schema([("s", X), ("after", pa.string())]))

    settings = admin.add_columns("n", [NOTE, pa.field("deep", pa.list_(X))], inside=["s"])
    admin.add_columns("n", [NOTE], inside=["s", "deep", "element"])
    again = admin.add_columns("n", [pa.field("note", pa.large_string())], inside=["s"])

    assert settings.schema.names == ["s", "after"]
    assert [field.name for field in settings.schema.field("s").type.fields] == ["x", "note", "deep"]
    assert again.schema.field("s").type.field("deep").type.value_type == pa.struct([*X.fields, NOTE])


@pytest.mark.parametrize(
    ("inside", "column", "facts"),
    [
        (["nowhere"], NOTE, "inside='nowhere'"),
        (["account"], NOTE, "inside='account'"),
        (["s", "x"], NOTE, "inside='s.x'"),
        (["l"], NOTE, "inside='l'"),
        (["l", "value"], NOTE, "inside='l.value'"),
        (["m", "key"], NOTE, "inside='m.key'"),
        (["m", "value"], NOTE, "inside='m.value'"),
        (["m", "element"], NOTE, "inside='m.element'"),
        (["s"], pa.field("x", pa.int32()), "column=s.x expected=int64 found=int32"),
        (["s"], pa.field("X", pa.int64()), "differ by case only"),
        ([], pa.field("s.new", pa.int64()), "like a field of the struct beside it.*--inside.*column=s.new"),
        ([], pa.field("S.x.y", pa.int64()), "like a field of the struct beside it"),
        (["s"], pa.field("y", pa.string(), nullable=False), "column=s.y"),
        (["s"], pa.field("a note", pa.string()), "forbid"),
        (["s"], pa.field("at", NTZ), "columns=at"),
    ],
)
def test_column_that_can_not_be_added_inside_is_refused_and_nothing_is_written(
    inside: list[str], column: pa.Field, facts: str
) -> None:
    _, warehouse = site_with_topic()
    kinds = {"account": pa.string(), "s": X, "l": pa.list_(X), "m": pa.map_(X, X)}
    warehouse.admin().create_topic("n", schema=pa.schema(list(kinds.items())))
    version = warehouse.topic_log("n").segments.refresh().version

    with pytest.raises((SchemaMismatchError, InvalidRequestError), match=facts):
        warehouse.admin().add_columns("n", [column], inside=inside)

    assert warehouse.topic_log("n").segments.refresh().version == version


@pytest.mark.parametrize("inside", ["s", [1], 3, None])
def test_way_that_is_no_list_of_names_is_refused(inside: object) -> None:
    _, warehouse = site_with_topic()

    with pytest.raises(InvalidRequestError, match="inside"):
        warehouse.admin().add_columns(TOPIC, [NOTE], inside=inside)  # type: ignore[arg-type]


def test_open_transaction_may_write_with_and_without_a_column_inside() -> None:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic("n", schema=pa.schema([("s", X)]))
    producer = transactional(site.open())
    producer.begin_transaction()
    producer.send("n", row={"s": {"x": 1}})
    producer.flush()

    warehouse.admin().add_columns("n", [NOTE], inside=["s"])
    producer.send("n", row={"s": {"x": 2}})
    producer.send("n", row={"s": {"x": 3, "note": "n"}})
    producer.commit_transaction()

    found = warehouse.read_arrow("n", columns=["s"]).read_all()["s"].to_pylist()
    assert found == [{"x": 1, "note": None}, {"x": 2, "note": None}, {"x": 3, "note": "n"}]


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (X, {"x": 3, "note": "n"}, r"v\.note"),
        (pa.list_(X), [{"x": 3}, {"note": "n"}], r"v\.element\.note"),
        (pa.map_(pa.string(), X), {"k": {"x": 3, "note": "n"}}, r"v\.value\.note"),
        (pa.map_(pa.string(), X), [("k", {"note": "n"})], r"v\.value\.note"),
    ],
)
def test_field_that_a_struct_does_not_have_is_refused_and_not_dropped(
    kind: pa.DataType, value: object, path: str
) -> None:
    _, warehouse = site_with_topic()
    warehouse.admin().create_topic("n", schema=pa.schema([("v", kind)]))

    with warehouse.producer() as producer, pytest.raises(SchemaMismatchError, match=path):
        producer.send("n", row={"v": value})
