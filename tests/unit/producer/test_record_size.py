"""How large records are, and that too large ones are refused where Kafka refuses them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import accounts, row, started
from txntable.errors import RecordTooLargeError, SchemaMismatchError, TransactionAbortedError
from txntable.format.topic import TopicSettings
from txntable.producer.record_size import value_sizes
from txntable.producer.row_check import RowCheck

UTC = pa.timestamp("us", tz="UTC")
STRUCT = pa.struct([pa.field("a", pa.int16()), pa.field("b", pa.string())])


@pytest.mark.parametrize(
    ("kind", "value", "size"),
    [
        (pa.bool_(), True, 1),
        (pa.int8(), 1, 1),
        (pa.int32(), 1, 4),
        (pa.int64(), 1, 8),
        (pa.float32(), 1.5, 4),
        (pa.float64(), 1.5, 8),
        (pa.date32(), dt.date(2013, 1, 1), 4),
        (UTC, dt.datetime(2013, 1, 1, tzinfo=dt.UTC), 8),
        (pa.timestamp("us"), dt.datetime(2013, 1, 1), 8),  # noqa: DTZ001  a column without a zone
        (pa.decimal128(9, 2), Decimal("1.25"), 16),
        (pa.string(), "Zürich", 7),
        (pa.binary(), b"abc", 3),
        (pa.list_(pa.string()), ["ab", None, "c"], 3),
        (STRUCT, {"a": 1, "b": "xyz"}, 5),
        (pa.map_(pa.string(), pa.int64()), [("ab", 1), ("c", None)], 11),
        (pa.list_(STRUCT), [{"a": 1, "b": "x"}, None, {"a": None, "b": "yz"}], 5),
        (pa.int64(), None, 0),
        (pa.string(), None, 0),
        (STRUCT, None, 0),
    ],
)
def test_size_is_the_bytes_of_the_value_alone_in_a_table_and_in_a_slice(
    kind: pa.DataType, value: object, size: int
) -> None:
    settings = TopicSettings("t", "a" * 32, 1, pa.schema([pa.field("x", kind)]))
    array = pa.array([value, None, value, value], kind)

    assert RowCheck(settings).check({"x": value}).size == size
    assert value_sizes([array], 4).tolist() == [size, 0, size, size]
    assert value_sizes([array.slice(1, 2)], 2).tolist() == [0, size]
    assert value_sizes([pa.chunked_array([array, array.slice(2)])], 6).tolist() == [size, 0, size, size, size, size]


def test_items_behind_a_null_list_count_nothing() -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))

    assert value_sizes([hidden], 2).tolist() == [0, 8]


COLUMNS = pa.schema(
    [("x", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.binary())), ("d", pa.struct([("a", pa.string())]))]
)
RECORDS = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(max_size=6),
        "l": st.none() | st.lists(st.none() | st.binary(max_size=4), max_size=3),
        "d": st.none() | st.fixed_dictionaries({"a": st.none() | st.text(max_size=3)}),
    }
)


@given(st.lists(RECORDS, max_size=8))
def test_a_record_is_as_large_alone_as_in_a_table(records: list[dict]) -> None:
    check = RowCheck(TopicSettings("t", "a" * 32, 1, COLUMNS))

    singly = [check.check(record).size for record in records]

    table = pa.Table.from_pylist(records, COLUMNS)
    assert value_sizes(table.columns, len(records)).tolist() == singly


ODD_VALUES = [
    (pa.int64(), True),
    (pa.int64(), 2**63),
    (pa.int8(), 128),
    (pa.int64(), 1.5),
    (pa.int64(), "1"),
    (pa.float64(), "1.0"),
    (pa.bool_(), 1),
    (pa.string(), 1),
    (pa.string(), "\ud800"),
    (pa.string(), b"\xff"),
    (pa.binary(), 1),
    (pa.binary(), "x"),
    (pa.date32(), "2013-01-01"),
    (UTC, "2013-01-01"),
    (pa.decimal128(4, 2), Decimal("100.001")),
    (pa.list_(pa.int64()), [1, "2"]),
    (STRUCT, {"a": 2**15, "b": "x"}),
]


@pytest.mark.parametrize(("kind", "value"), ODD_VALUES)
def test_value_that_arrow_does_not_take_is_refused_when_it_is_sent(kind: pa.DataType, value: object) -> None:
    check = RowCheck(TopicSettings("t", "a" * 32, 1, pa.schema([pa.field("x", kind)])))

    with pytest.raises(SchemaMismatchError, match="does not fit its column") as refused:
        check.check({"x": value})

    assert refused.value.facts["column"] == "x"


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (pa.float64(), 3, 3.0),
        (pa.int64(), 3.0, 3),
        (pa.binary(), bytearray(b"x"), b"x"),
        (pa.timestamp("us"), 10**18, 10**18),
        (pa.list_(pa.string()), ("a", None), ["a", None]),
        (pa.list_(pa.int64()), [1, 2.0], [1, 2]),
        (STRUCT, {"a": 1}, {"a": 1, "b": None}),
        (STRUCT, {"a": 1.0, "b": None}, {"a": 1, "b": None}),
        (pa.map_(pa.string(), pa.int64()), {"a": 1}, [("a", 1)]),
    ],
)
def test_value_that_arrow_brings_to_the_type_is_taken(kind: pa.DataType, value: object, taken: object) -> None:
    check = RowCheck(TopicSettings("t", "a" * 32, 1, pa.schema([pa.field("x", kind)])))

    assert check.check({"x": value}).values == (taken,)


def test_nested_value_that_is_changed_after_its_send_is_written_as_it_was_sent(site: Site) -> None:
    site.open().admin().create_topic("nested", schema=pa.schema([("l", pa.list_(pa.int64()))]))
    warehouse = site.open()
    producer = warehouse.producer()
    reused = [1]
    producer.send("nested", row={"l": reused})
    reused.append(2)

    producer.flush()

    (add,) = warehouse.topic_log("nested").segments.refresh().files
    found = warehouse.store.get(f"topics/nested/_segments/{add.path}")
    assert found is not None
    assert pq.read_table(pa.BufferReader(found.data)).column("l").to_pylist() == [[1]]


@pytest.mark.parametrize(
    ("column", "value", "path"),
    [
        (pa.field("x", pa.int64(), nullable=False), None, "x"),
        (pa.field("x", pa.list_(pa.field("element", pa.int64(), nullable=False))), [1, None], "x.element"),
        (pa.field("x", pa.struct([pa.field("a", pa.int64(), nullable=False)])), {"a": None}, "x.a"),
        (pa.field("x", pa.struct([pa.field("a", pa.int64(), nullable=False)])), {}, "x.a"),
    ],
)
def test_null_where_none_may_be_is_refused_with_its_path(column: pa.Field, value: object, path: str) -> None:
    check = RowCheck(TopicSettings("t", "a" * 32, 1, pa.schema([column])))

    with pytest.raises(SchemaMismatchError, match="must not be null") as refused:
        check.check({"x": value})

    assert refused.value.facts["column"] == path


# -- limits -------------------------------------------------------------------------------------

# The producer's limit, the topic's; a record of `row("x" * 12)` has 20 bytes.
LIMITS = [
    ((20, None), 12, True),
    ((20, None), 13, False),
    ((None, 20), 12, True),
    ((None, 20), 13, False),
    ((19, 20), 12, False),
]


@pytest.mark.parametrize(("limits", "letters", "taken"), LIMITS)
@pytest.mark.parametrize("as_table", [False, True])
def test_record_is_refused_at_send_when_it_is_above_the_producers_or_the_topics_limit(
    site: Site, limits: tuple[int | None, int | None], letters: int, taken: bool, as_table: bool
) -> None:
    ours, topics = limits
    config = {} if topics is None else {"max.message.bytes": topics}
    site.open().admin().create_topic("limited", schema=TWO_COLUMNS, config=config)
    producer = site.open().producer(max_request_size=1000 if ours is None else ours)
    record = row("x" * letters)
    small = row("s")

    def send() -> None:
        if as_table:
            producer.send("limited", rows=pa.Table.from_pylist([small, record], TWO_COLUMNS))
        else:
            producer.send("limited", row=record)

    if taken:
        send()
    else:
        with pytest.raises(RecordTooLargeError) as refused:
            send()
        assert refused.value.facts["size"] == letters + 8
    producer.send("limited", row=small)
    producer.close()
    assert len(accounts(site, "limited")) == 1 + taken * (1 + as_table)


def test_record_that_is_too_large_spoils_its_transaction(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer("etl", max_request_size=20)
    producer.init_transactions()
    producer.begin_transaction()
    fine = producer.send("u", row=row("fine"))

    with pytest.raises(RecordTooLargeError):
        producer.send("u", row=row("x" * 13))
    with pytest.raises(RecordTooLargeError):
        producer.commit_transaction()
    producer.abort_transaction()

    with pytest.raises(TransactionAbortedError):
        _ = fine.offset
    assert accounts(site, "u") == []


def test_wrong_argument_does_not_spoil_the_transaction_where_a_too_large_record_does(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()

    with pytest.raises(SchemaMismatchError):
        producer.send("u", row={"account": 7})

    producer.send("u", row=row("fine"))
    producer.commit_transaction()
    assert accounts(site, "u") == ["fine"]
