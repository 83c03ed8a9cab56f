"""Batches: when rows become segments, that their order is kept, and that nothing is lost or sent twice."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.producer.producing import accounts, row, started, store_of
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import StoreUnavailableError
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse, create_on

# "a" and a long: what one record of `row("a")` holds.
RECORD_BYTES = 9


def uploaded(site: Site, topic: str) -> int:
    return len(site.objects_below(f"topics/{topic}/_segments/p00000"))


def appended(warehouse: Warehouse, topic: str) -> int:
    return len(warehouse.topic_log(topic).segments.refresh().files)


def table_of(*names: str) -> pa.Table:
    return pa.Table.from_pylist([row(name, number) for number, name in enumerate(names)], TWO_COLUMNS)


def test_full_batch_of_a_transaction_is_uploaded_at_once_and_neither_enrolled_nor_appended(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer("etl", batch_size=3 * RECORD_BYTES)
    producer.init_transactions()
    producer.begin_transaction()

    for expected in (0, 0, 1, 1, 1, 2):
        producer.send("u", row=row("a"))
        assert uploaded(site, "u") == expected
    producer.send("u", row=row("last"))

    other = site.open()
    assert appended(other, "u") == 0
    found = other.transactions.row("etl")
    assert found is not None
    assert found.state is TransactionState.EMPTY
    producer.commit_transaction()
    assert accounts(site, "u") == ["a"] * 6 + ["last"]
    assert [record["_offset"] for record in published(site.open(), "u")] == list(range(7))


def test_full_batch_without_a_transaction_is_visible_at_once_and_the_rest_waits(site: Site) -> None:
    producer = site.open().producer(batch_size=2 * RECORD_BYTES)
    sent = [producer.send("u", row=row("a")) for _ in range(3)]

    assert accounts(site, "u") == ["a", "a"]
    assert [metadata.is_delivered for metadata in sent] == [True, True, False]
    producer.flush()
    assert accounts(site, "u") == ["a", "a", "a"]


def test_only_the_partition_that_is_full_is_sent(site: Site) -> None:
    producer = site.open().producer(batch_size=2 * RECORD_BYTES)

    for partition in (0, 1, 1):
        producer.send("t", row=row("a"), partition=partition)

    assert [record["_partition"] for record in published(site.open(), "t")] == [1, 1]


def test_many_small_sends_to_a_partition_become_one_segment(site: Site) -> None:
    warehouse = site.open()
    with warehouse.producer() as producer:
        for number in range(20):
            producer.send("u", rows=table_of(f"table {number}"))
            producer.send("u", row=row(f"row {number}"))

    assert appended(warehouse, "u") == 1
    assert accounts(site, "u") == [f"{kind} {number}" for number in range(20) for kind in ("table", "row")]


def test_large_table_keeps_its_order_in_every_partition(site: Site) -> None:
    with site.open().producer() as producer:
        producer.send("t", rows=table_of(*[f"k{number % 9}" for number in range(1000)]))

    found = published(site.open(), "t")
    assert len(found) == 1000
    for partition in (0, 1):
        amounts = [record["amount"] for record in found if record["_partition"] == partition]
        assert amounts == sorted(amounts)


def test_keyed_records_are_kept_apart_from_those_of_a_chosen_partition_in_their_order(site: Site) -> None:
    warehouse = site.open()
    with warehouse.producer(partitioner="default") as producer:
        where = producer.send("t", row=row("a", 0))
        producer.flush()
        for number in range(1, 5):
            producer.send("t", row=row("a", number), partition=None if number % 2 else where.partition)

    assert [record["amount"] for record in published(site.open(), "t")] == list(range(5))
    assert appended(warehouse, "t") == 5


def test_topic_with_other_partitions_is_noticed_by_the_first_send_after_a_flush(site: Site) -> None:
    producer = site.open().producer(partitioner=lambda topic, key, partitions: partitions - 1)
    first = producer.send("u", row=row("a"))
    producer.flush()
    admin = site.open().admin()
    admin.delete_topic("u")
    admin.create_topic("u", partitions=3, schema=TWO_COLUMNS)

    second = producer.send("u", row=row("b"))
    producer.flush()

    assert (first.partition, second.partition) == (0, 2)


@pytest.mark.parametrize("transactional", [True, False])
def test_record_whose_batch_could_not_be_handed_on_waits_and_the_next_send_says_so(
    site: Site, transactional: bool
) -> None:
    warehouse = site.open()
    producer = warehouse.producer("etl" if transactional else None, batch_size=2 * RECORD_BYTES)
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()
    producer.send("u", row=row("a"))
    store_of(warehouse).plan = (on(Operation.WRITE, "_segments/p", Fault.FAIL_BEFORE, occurrence=None),)

    producer.send("u", row=row("b"))
    with pytest.raises(StoreUnavailableError):
        producer.send("u", row=row("refused"))
    store_of(warehouse).plan = ()
    producer.send("u", row=row("c"))
    (producer.commit_transaction if transactional else producer.flush)()

    assert accounts(site, "u") == ["a", "b", "c"]


def test_empty_table_is_nothing_to_send(site: Site) -> None:
    told: list[object] = []
    with site.open().producer() as producer:
        producer.send("u", rows=table_of(), on_delivery=lambda metadata, error: told.append(error))

    assert told == [None]
    assert accounts(site, "u") == []


# -- any order of anything ----------------------------------------------------------------------

SENDS = st.one_of(
    st.just("flush"),
    st.tuples(
        st.sampled_from(["row", "table"]),
        st.lists(st.sampled_from(["ann", "bob", "cid", ""]) | st.none(), min_size=1, max_size=4),
        st.none() | st.integers(0, 2),
    ),
)
OPTIONAL_KEY = pa.schema([pa.field("account", pa.string()), pa.field("amount", pa.int64())])


@given(
    st.lists(SENDS, max_size=12),
    st.integers(1, 60),
    st.sampled_from(["default", "round_robin"]),
    st.sampled_from([None, "etl"]),
)
def test_every_partition_holds_its_records_once_and_in_the_order_of_their_sends(
    sends: list, batch_size: int, partitioner: str, transactional_id: str | None
) -> None:
    site = Site()
    site.create().admin().create_topic("t", partitions=3, schema=OPTIONAL_KEY, key=["account"])
    producer = site.open().producer(transactional_id, batch_size=batch_size, partitioner=partitioner)  # type: ignore[arg-type]
    if transactional_id is not None:
        producer.init_transactions()
        producer.begin_transaction()

    told = send_all(producer, sends)
    (producer.flush if transactional_id is None else producer.commit_transaction)()

    found = published(site.open(), "t")
    assert sorted(record["amount"] for record in found) == list(range(len(told)))
    for before, after in pairwise(found):
        assert before["_partition"] != after["_partition"] or before["amount"] < after["amount"]
    where = {record["amount"]: (record["_partition"], record["_offset"]) for record in found}
    for number, metadata in enumerate(told):
        assert any(
            given.partition == where[number][0] and given.base_offset <= where[number][1] <= given.last_offset
            for given in metadata.ranges
        )


def send_all(producer: Producer, sends: list) -> list:
    """Send records numbered from 0; return for each number the metadata of its send."""
    told: list = []
    for send in sends:
        if send == "flush":
            producer.flush()
            continue
        kind, names, partition = send
        rows = [{"account": name, "amount": len(told) + place} for place, name in enumerate(names)]
        if kind == "row":
            told += [producer.send("t", row=one, partition=partition) for one in rows]
        else:
            table = pa.Table.from_pylist(rows, OPTIONAL_KEY)
            told += [producer.send("t", rows=table, partition=partition)] * len(rows)
    return told


# -- several uploads at once --------------------------------------------------------------------


@dataclass
class Meeting:
    """Uploads that go on only when so many are under way."""

    barrier: threading.Barrier


class ParallelStore(MemoryStore):
    """A store to which several objects are written at once; writes of one partition may fail."""

    parallel_writes = 4

    def __init__(self) -> None:
        super().__init__()
        self.meeting: Meeting | None = None
        self.failing: str | None = None

    def writer(self, path: str):
        if "/p0" in path and self.meeting is not None:
            self.meeting.barrier.wait(timeout=60)
        if self.failing is not None and self.failing in path:
            raise StoreUnavailableError("the store gave no usable answer; try again", path=path)
        return super().writer(path)


def parallel_warehouse(site: Site) -> tuple[Warehouse, ParallelStore]:
    store = ParallelStore()
    warehouse = create_on(store, site.environment(), exist_ok=False, settings=WarehouseSettings())
    warehouse.admin().create_topic("t", partitions=8, schema=TWO_COLUMNS)
    return warehouse, store


def test_segments_are_uploaded_at_once_as_many_as_the_store_gains_by() -> None:
    warehouse, store = parallel_warehouse(Site())
    producer = started(warehouse)
    store.meeting = Meeting(threading.Barrier(4))

    with producer.transaction() as txn:
        sent = [txn.send("t", row=row("a", number), partition=number) for number in range(8)]

    assert [metadata.partition for metadata in sent] == list(range(8))
    assert not store.meeting.barrier.broken


def test_what_was_not_uploaded_waits_when_one_of_several_uploads_failed() -> None:
    warehouse, store = parallel_warehouse(Site())
    producer = started(warehouse)
    producer.begin_transaction()
    sent = [producer.send("t", row=row("a", number), partition=number) for number in range(8)]
    store.failing = "/p00003/"

    with pytest.raises(StoreUnavailableError):
        producer.flush()
    store.failing = None
    producer.commit_transaction()

    assert [metadata.offset for metadata in sent] == [0] * 8
    assert sorted(record["amount"] for record in published(warehouse, "t")) == list(range(8))


def test_segments_that_are_large_though_their_values_are_not_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.segments.segment_writer.SMALL_BYTES", 1)
    warehouse, _ = parallel_warehouse(Site())
    producer = started(warehouse)

    with producer.transaction() as txn:
        sent = [txn.send("t", row=row("a", number), partition=number % 3) for number in range(8)]

    assert sorted(metadata.offset for metadata in sent) == [0, 0, 0, 1, 1, 1, 2, 2]
    assert sorted(record["amount"] for record in published(warehouse, "t")) == list(range(8))


# -- codec --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "config", "codec"),
    [
        ({}, {}, "ZSTD"),
        *[
            ({"compression_type": name}, {}, codec)
            for name, codec in [
                ("none", "UNCOMPRESSED"),
                ("gzip", "GZIP"),
                ("snappy", "SNAPPY"),
                ("lz4", "LZ4"),
                ("zstd", "ZSTD"),
            ]
        ],
        ({"compression_type": "lz4"}, {"compression.type": "gzip"}, "GZIP"),
        ({"compression_type": "lz4"}, {"compression.type": "producer"}, "LZ4"),
    ],
)
def test_codec_is_the_producers_where_the_topic_leaves_it_to_producers(
    site: Site, settings: dict, config: dict, codec: str
) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("coded", schema=TWO_COLUMNS, config=config)
    with warehouse.producer(**settings) as producer:
        producer.send("coded", row=row("a"))

    (add,) = warehouse.topic_log("coded").segments.refresh().files
    found = warehouse.store.get(f"topics/coded/_segments/{add.path}")
    assert found is not None
    assert pq.read_metadata(pa.BufferReader(found.data)).row_group(0).column(0).compression == codec
