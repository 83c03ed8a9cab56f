"""``Warehouse.read_arrow``: each level, offsets, columns, and damage that reaches the reader as what it is."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.unit.producer.producing import store_of
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts_in,
    commit,
    leave_open,
    places,
    plain,
    read_only,
    segments_of,
    site_with_topic,
    transactional,
)
from txntable.errors import (
    DamagedDataError,
    InvalidRequestError,
    OffsetOutOfRangeError,
    SchemaMismatchError,
    StoreUnavailableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.isolation import IsolationLevel
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse() -> Warehouse:
    """Partition 0: a committed, an aborted, an open, a plain record; partition 1: a committed one."""
    _, warehouse = site_with_topic()
    producer = transactional(warehouse)
    commit(producer, "committed")
    abort(producer, "aborted")
    commit(producer, "elsewhere", partition=1)
    leave_open(warehouse, "open")
    plain(warehouse, "plain")
    return warehouse


@pytest.mark.parametrize(
    ("level", "accounts"),
    [
        ("read_committed", ["committed", "elsewhere"]),
        ("snapshot", ["committed", "plain", "elsewhere"]),
        ("read_uncommitted", ["committed", "aborted", "open", "plain", "elsewhere"]),
        (IsolationLevel.READ_COMMITTED, ["committed", "elsewhere"]),
    ],
)
def test_level_decides_what_is_read(warehouse: Warehouse, level: Any, accounts: list[str]) -> None:
    assert accounts_in(warehouse.read_arrow(TOPIC, isolation_level=level)) == accounts


def test_default_level_is_the_snapshot(warehouse: Warehouse) -> None:
    assert accounts_in(warehouse.read_arrow(TOPIC)) == ["committed", "plain", "elsewhere"]


def test_records_bring_their_place_and_commit_with_gaps_where_markers_are(warehouse: Warehouse) -> None:
    table = warehouse.read_arrow(TOPIC).read_all()

    assert [(row["_partition"], row["_offset"], row["account"]) for row in table.to_pylist()] == [
        (0, 0, "committed"),
        (0, 5, "plain"),
        (1, 0, "elsewhere"),
    ]
    assert table["_commit"].to_pylist()[1] == 0
    assert all(commit > 0 for commit in (table["_commit"][0].as_py(), table["_commit"][2].as_py()))
    assert warehouse.read_arrow(TOPIC, isolation_level="read_uncommitted").read_all()["_commit"].null_count == 5


def test_offsets_bound_what_is_read_by_partition(warehouse: Warehouse) -> None:
    read = warehouse.read_arrow(
        TOPIC, isolation_level="read_uncommitted", starting_offsets={0: 1}, ending_offsets={0: 5, 1: 0}
    )

    assert places(read) == [(0, 2, "aborted"), (0, 4, "open")]


def test_columns_are_those_asked_for_in_that_order(warehouse: Warehouse) -> None:
    reader = warehouse.read_arrow(TOPIC, columns=["_offset", "account"])

    assert reader.schema.names == ["_offset", "account"]
    assert reader.read_all().num_columns == 2


@pytest.mark.parametrize(
    ("filters", "accounts"),
    [
        ([("account", "=", "plain")], ["plain"]),
        ([("account", "!=", "plain")], ["committed", "elsewhere"]),
        ([("account", "in", ["plain", "elsewhere"]), ("_partition", ">=", 1)], ["elsewhere"]),
        ([("account", "not in", ("plain",)), ("_offset", "<", 1)], ["committed", "elsewhere"]),
        ([[("account", "==", "plain")], [("_partition", ">", 0)]], ["plain", "elsewhere"]),
        ([("_commit", "<=", 0)], ["plain"]),
        ([("amount", ">", 1)], []),
        ([("account", "in", [])], []),
    ],
)
def test_filters_leave_the_records_that_pass(warehouse: Warehouse, filters: Any, accounts: list[str]) -> None:
    assert (
        warehouse.read_arrow(TOPIC, filters=filters, columns=["account"]).read_all()["account"].to_pylist() == accounts
    )
    assert accounts_in(warehouse.snapshot().read_arrow(TOPIC, filters=filters)) == accounts


def test_filters_and_offsets_hold_together(warehouse: Warehouse) -> None:
    read = warehouse.read_arrow(
        TOPIC, isolation_level="read_uncommitted", filters=[("_offset", ">", 1)], ending_offsets={0: 5}
    )

    assert places(read) == [(0, 2, "aborted"), (0, 4, "open")]


def test_segments_that_cannot_hold_a_wanted_record_are_not_read() -> None:
    site, warehouse = site_with_topic()
    producer = transactional(warehouse)
    commit(producer, "ann")
    (first,) = segments_of(site)
    commit(producer, "zoe")
    site.objects.delete(first)

    assert accounts_in(warehouse.read_arrow(TOPIC, filters=[("account", ">", "m")])) == ["zoe"]


@pytest.mark.parametrize(
    ("filters", "values"),
    [
        ([("key", "=", b"b")], [b"2"]),
        ([("key", "!=", b"b")], [b"1", b"3"]),
        ([("key", ">", b"a\xff")], [b"2", b"3"]),
        ([("key", "in", [b"a", b"\xff"])], [b"1", b"3"]),
        ([("value", "=", b"nothing")], []),
    ],
)
def test_filters_choose_by_keys_which_are_bytes(filters: Any, values: list[bytes]) -> None:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic("keyed")
    producer = warehouse.producer()
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"\xff", b"3"), (None, b"4")):
        producer.send("keyed", key=key, value=value)
        producer.flush()

    assert site.open().read_arrow("keyed", filters=filters).read_all()["value"].to_pylist() == values


PLACES: list[dict[str, Any] | None] = [
    None,
    {"city": "a", "deep": None},
    {"city": "b", "deep": {"n": 1}},
    {"city": None, "deep": {"n": None}},
]
TAGS: list[list[str | None] | None] = [[], [None], None, ["x"]]
# A column whose own name has dots, and a struct that has such a path.
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("home.deep.n", pa.int64()),
        ("place", pa.struct([("city", pa.string()), ("deep", pa.struct([("n", pa.int64())]))])),
        ("tags", pa.list_(pa.string())),
    ]
)


def nested(rows_a_segment: int) -> Warehouse:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic("nested", schema=NESTED)
    producer = transactional(warehouse)
    for first in range(0, len(PLACES), rows_a_segment):
        with producer.transaction() as transaction:
            for number in range(first, first + rows_a_segment):
                row = {"id": number, "home.deep.n": -number, "place": PLACES[number], "tags": TAGS[number]}
                transaction.send("nested", row=row)
    return site.open()


@pytest.mark.parametrize("rows_a_segment", [1, 2, 4])
@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([("place.city", "=", "b")], [2]),
        ([("place.city", "!=", "b")], [1]),
        ([("place.city", "in", ["a", "b"])], [1, 2]),
        ([("place.city", "is", None)], [0, 3]),
        ([("place.city", "is not", None)], [1, 2]),
        ([("place", "is", None)], [0]),
        ([("place", "is not", None)], [1, 2, 3]),
        ([("place.deep", "is", None)], [0, 1]),
        ([("place.deep", "is not", None)], [2, 3]),
        ([("home.deep.n", "<", -1)], [2, 3]),
        ([("place.deep.n", "is not", None)], [2]),
        ([("place.city", ">", "a"), ("id", "<", 9)], [2]),
        ([[("place.city", "=", "a")], [("id", "=", 3)]], [1, 3]),
        ([("tags", "is not", None)], [0, 1, 3]),
        ([("tags", "is", None)], [2]),
        ([("id", "is", None)], []),
    ],
)
def test_filters_look_inside_of_structs_and_for_nulls(rows_a_segment: int, filters: Any, wanted: list[int]) -> None:
    assert nested(rows_a_segment).read_arrow("nested", filters=filters).read_all()["id"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("column", "value"), [("place", {"city": "b"}), ("tags", ["x"]), ("place.deep", {"n": 1}), ("tags", "x")]
)
def test_filter_by_what_has_no_order_is_refused_with_what_has_one(column: str, value: Any) -> None:
    with pytest.raises(InvalidRequestError, match=f"name what is inside of a struct as outer.inner.* column={column} "):
        nested(4).read_arrow("nested", filters=[(column, "=", value)])


def test_segments_that_cannot_hold_a_wanted_record_inside_of_a_struct_are_not_read() -> None:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic("nested", schema=NESTED)
    producer = transactional(warehouse)
    with producer.transaction() as transaction:
        transaction.send("nested", row={"id": 1, "place": {"city": "ann"}})
    (first,) = segments_of(site, "nested")
    with producer.transaction() as transaction:
        transaction.send("nested", row={"id": 1, "place": {"city": "zoe"}})
    site.objects.delete(first)

    found = site.open().read_arrow("nested", filters=[("place.city", ">", "m")]).read_all()

    assert found["place"].to_pylist() == [{"city": "zoe", "deep": None}]


def test_topic_without_records_reads_as_no_rows_of_its_schema() -> None:
    _, warehouse = site_with_topic()

    for level in IsolationLevel:
        table = warehouse.read_arrow(TOPIC, isolation_level=level).read_all()
        assert (table.num_rows, table.schema.names[:2]) == (0, ["account", "amount"])


@pytest.mark.parametrize(
    ("arguments", "error", "facts"),
    [
        ({"isolation_level": "serializable"}, InvalidRequestError, "known=snapshot,read_committed,read_uncommitted"),
        ({"isolation_level": "read_committed", "as_of": 3}, InvalidRequestError, "isolation_level=read_committed"),
        ({"as_of": 10_000}, OffsetOutOfRangeError, "as_of=10000 head="),
        ({"as_of": -1}, OffsetOutOfRangeError, "as_of=-1"),
        ({"as_of": True}, InvalidRequestError, "as_of=True"),
        ({"as_of": dt.datetime(2026, 11, 20)}, InvalidRequestError, "needs its zone"),  # noqa: DTZ001
        ({"as_of": dt.datetime(2999, 1, 1, tzinfo=dt.UTC)}, OffsetOutOfRangeError, "has not come yet"),
        ({"as_of": dt.datetime(1999, 1, 1, tzinfo=dt.UTC)}, OffsetOutOfRangeError, "created later"),
        ({"columns": ["price"]}, SchemaMismatchError, "columns=price"),
        ({"filters": [("price", "=", 1)]}, SchemaMismatchError, "column='price'"),
        ({"filters": []}, InvalidRequestError, "a filter is a list"),
        ({"filters": "amount > 1"}, InvalidRequestError, "a filter is a list"),
        ({"filters": [("amount", "~", 1)]}, InvalidRequestError, "a filter is a list"),
        ({"filters": [("amount", "in", "1")]}, InvalidRequestError, "a filter is a list"),
        ({"filters": [[]]}, InvalidRequestError, "a filter is a list"),
        ({"filters": [("amount", "=", "1")]}, InvalidRequestError, "column=amount type=int64"),
        (
            {"filters": [("amount", "=", None)]},
            InvalidRequestError,
            r"""ask \("column", "is", None\) .* column=amount""",
        ),
        (
            {"filters": [("amount", "in", [None])]},
            InvalidRequestError,
            "no value is compared with null",
        ),
        ({"filters": [("amount", "is", 1)]}, InvalidRequestError, "the operators is and is not take None"),
        ({"filters": [("amount.cents", "=", 1)]}, SchemaMismatchError, "column='amount.cents'"),
        ({"filters": [("_timestamp", ">", "2026-11-01")]}, InvalidRequestError, "a datetime with its time zone, which"),
        ({"filters": [("amount", "in", [1, float("nan")])]}, InvalidRequestError, "nothing equals NaN"),
        ({"starting_offsets": {2: 0}}, UnknownTopicOrPartitionError, "partition=2 partitions=2"),
        ({"starting_offsets": {0: 99}}, OffsetOutOfRangeError, "offset=99"),
        ({"ending_offsets": {0: -1}}, OffsetOutOfRangeError, "offset=-1"),
    ],
)
def test_call_that_can_not_be_answered_is_refused_before_anything_is_read(
    warehouse: Warehouse, arguments: dict[str, Any], error: type[TxnTableError], facts: str
) -> None:
    with pytest.raises(error, match=facts):
        warehouse.read_arrow(TOPIC, **arguments)


@pytest.mark.parametrize("level", [level.value for level in IsolationLevel])
def test_topic_that_there_is_not_is_refused(warehouse: Warehouse, level: str) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="topic=nowhere"):
        warehouse.read_arrow("nowhere", isolation_level=level)


@pytest.mark.parametrize("level", [level.value for level in IsolationLevel])
def test_deleted_topic_is_refused(warehouse: Warehouse, level: str) -> None:
    warehouse.admin().delete_topic(TOPIC)

    with pytest.raises(UnknownTopicOrPartitionError, match=r"deleted|no such topic"):
        warehouse.read_arrow(TOPIC, isolation_level=level)


@pytest.mark.parametrize(
    ("level", "accounts"),
    [
        ("read_committed", ["committed", "elsewhere"]),
        ("snapshot", ["committed", "plain", "elsewhere"]),
        ("read_uncommitted", ["committed", "aborted", "open", "plain", "elsewhere"]),
    ],
)
def test_reader_without_write_access_reads_what_is_published(level: str, accounts: list[str]) -> None:
    site, warehouse = site_with_topic()
    producer = transactional(warehouse)
    commit(producer, "committed")
    abort(producer, "aborted")
    commit(producer, "elsewhere", partition=1)
    leave_open(warehouse, "open")
    plain(warehouse, "plain")

    assert accounts_in(read_only(site).read_arrow(TOPIC, isolation_level=level)) == accounts


# -- damage -------------------------------------------------------------------------------------


def test_missing_segment_in_the_middle_reaches_the_caller_as_our_error() -> None:
    """Arrow calls our generator from its own code: the error must not become another, nor an end."""
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    for number in range(5):
        commit(producer, f"a{number}")
    path = sorted(segments_of(site))[2]
    site.objects.delete(path)

    for read_whole in (pa.RecordBatchReader.read_all, list):
        with pytest.raises(DamagedDataError) as raised:
            read_whole(warehouse.read_arrow(TOPIC))
        assert f"path={path} partition=0 base_offset=4 last_offset=4 commit=" in str(raised.value)


def test_records_before_a_damaged_segment_are_read_and_the_error_comes_again() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    for number in range(3):
        commit(producer, f"a{number}")
    site.objects.delete(sorted(segments_of(site))[1])

    reader = warehouse.read_arrow(TOPIC)

    assert reader.read_next_batch()["account"].to_pylist() == ["a0"]
    with pytest.raises(DamagedDataError):
        reader.read_next_batch()
    with pytest.raises(DamagedDataError):
        warehouse.read_arrow(TOPIC, starting_offsets={0: 2}).read_all()
    assert accounts_in(warehouse.read_arrow(TOPIC, starting_offsets={0: 3})) == ["a2"]


def test_two_segments_of_one_topic_that_were_swapped_are_damage() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a0", "a1")
    commit(producer, "b0", "b1", "b2")
    first, second = segments_of(site)
    one, other = site.objects.get(first), site.objects.get(second)
    assert one is not None
    assert other is not None
    site.objects.put(first, other.data)
    site.objects.put(second, one.data)

    with pytest.raises(DamagedDataError, match="partition=0 base_offset=0 last_offset=1"):
        warehouse.read_arrow(TOPIC).read_all()


def test_store_that_fails_while_reading_is_told_as_such(warehouse: Warehouse) -> None:
    reader = warehouse.read_arrow(TOPIC)
    store_of(warehouse).plan = (on(Operation.GET, "/p00000/", Fault.FAIL_BEFORE),)

    with pytest.raises(StoreUnavailableError):
        reader.read_all()


def test_offsets_may_be_said_in_words(warehouse: Warehouse) -> None:
    assert accounts_in(warehouse.read_arrow(TOPIC, starting_offsets={0: "latest"})) == ["elsewhere"]
    assert accounts_in(warehouse.read_arrow(TOPIC, ending_offsets="earliest")) == []


@pytest.mark.parametrize("offsets", [{0: True}, {0: 1.5}, {0: None}, {0: "middle"}, "middle", [0, 1], 3])
def test_offsets_that_are_none_are_refused(warehouse: Warehouse, offsets: Any) -> None:
    with pytest.raises(InvalidRequestError, match="'earliest' or 'latest'"):
        warehouse.read_arrow(TOPIC, starting_offsets=offsets)
    with pytest.raises(InvalidRequestError, match="'earliest' or 'latest'"):
        warehouse.snapshot().read_arrow(TOPIC, ending_offsets=offsets)


@pytest.mark.parametrize("columns", ["account", 3])
def test_columns_that_are_no_list_are_refused(warehouse: Warehouse, columns: Any) -> None:
    with pytest.raises(InvalidRequestError, match="list of names"):
        warehouse.read_arrow(TOPIC, columns=columns)
