"""The golden warehouses of format 1, one function for each kind: what is written into them, by the calls of a client.

They were written once (``python -m tests.golden.writing``) and are read for ever.  A new kind is a new function and a
new archive; an old one is never written again, for what an older version wrote is the point of it.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.rubbish import leave_junk, upload_and_die
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

DAY_MS = 86_400_000
FOR_EVER = {"retention.ms": -1}
EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        *(pa.field(f"i{bits}", kind) for bits, kind in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32()))),
        pa.field("real", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("yes", pa.bool_()),
        pa.field("text", pa.string()),
        pa.field("bytes", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("fare", pa.decimal128(9, 2)),
        pa.field("wide", pa.decimal128(38, 10)),
        pa.field("place", pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32())])),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        *(pa.field(f"more{number}", pa.int32()) for number in range(20)),
    ]
)


def producer_of(warehouse: Warehouse, name: str) -> Producer:
    producer = warehouse.producer(name, transaction_timeout_ms=60_000)
    producer.init_transactions()
    return producer


def send(producer: Producer, topic: str, accounts: str, amount: int | None = 1) -> None:
    for account in accounts:
        producer.send(topic, row={"account": account, "amount": amount})


def commit(site: Site, topic: str, accounts: str, *, flush: bool = False, amount: int | None = 1) -> None:
    """A transaction of its own: carried by the decision, or appended before it."""
    producer = producer_of(site.open(), "etl")
    producer.begin_transaction()
    send(producer, topic, accounts, amount)
    if flush:
        producer.flush()
    producer.commit_transaction()
    producer.close()


def checkpoint(warehouse: Warehouse) -> None:
    """Checkpoints of T, O, and the S and P of each topic."""
    topics = [warehouse.topic_log(name) for name in warehouse.admin().list_topics()]
    of_topics = [log for topic in topics for log in (topic.segments, topic.public)]
    for log in (warehouse.transactions.log, warehouse.offsets.log, *of_topics):
        log.refresh()
        log.write_checkpoint()


def layers() -> Site:
    """Each log with a checkpoint and entries above it; chains; segments carried and appended."""
    site = Site()
    admin = site.create().admin()
    for name in ("debit", "credit"):
        admin.create_topic(name, partitions=2, schema=TWO_COLUMNS, key=["account"], config=FOR_EVER)
    commit(site, "debit", "abc")
    commit(site, "credit", "defg", flush=True)
    producer = producer_of(site.open(), "batches")
    for batch in ("2026-11-20", 7):
        with producer.transaction(batch) as transaction:
            transaction.send("debit", row={"account": "batch", "amount": 2})
            producer.send_offsets_to_transaction({TopicPartition("credit", 0): 1}, "g")
    checkpoint(site.open())
    commit(site, "debit", "hij")
    commit(site, "credit", "k", flush=True)
    plain = site.open().producer()
    plain.send("debit", row={"account": "plain", "amount": None})
    plain.close()
    site.open().admin().alter_consumer_group_offsets("g", {TopicPartition("credit", 1): 1})
    return site


def statistics() -> Site:
    """Bounds of every type, left out where they cannot be said; more columns than have any; texts that are cut."""
    site = Site()
    site.create().admin().create_topic("types", schema=EVERY_TYPE, config=FOR_EVER)
    full = {
        "i8": -128, "i16": 32_767, "i32": -1, "real": 0.1, "double": -0.0, "yes": False, "text": "\U0010ffff" * 33,
        "bytes": b"\x00\xff", "day": dt.date(1, 1, 1),
        "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999_500, tzinfo=dt.UTC),
        "local": dt.datetime(1969, 12, 31, 23, 59, 59, 1), "fare": decimal.Decimal("-1.28"),  # noqa: DTZ001
        "wide": decimal.Decimal("12345678901234567890.0123456789"), "place": {"city": "Zürich", "zip": None},
        "tags": ["a", None], "counts": [("a", 1), ("b", None)], "more0": 1, "more19": 19,
    }  # fmt: skip
    batches: list[list[dict]] = [
        [{"id": 1, **full}, {"id": 2, "text": "x" * 40, "place": None}],
        [{"id": 3, "double": float("nan")}, {"id": 4, "double": 1.5}],
        [{"id": 5, "double": float("inf"), "text": 'line\n"quoted" \u2028'}],
        [{"id": 6}],
    ]
    for rows in batches:
        producer = producer_of(site.open(), "etl")
        producer.begin_transaction()
        for row in rows:
            producer.send("types", row=row)
        producer.commit_transaction()
    return site


def maintained() -> Site:
    """Merged, settled, cut, compacted by key with tombstones, vacuumed: and what came after."""
    site = Site()
    admin = site.create().admin()
    admin.create_topic("ledger", schema=TWO_COLUMNS, config=FOR_EVER)
    admin.create_topic("latest", schema=TWO_COLUMNS, key=["account"], config={"cleanup.policy": "compact"})
    for accounts in ("ab", "bc", "cd"):
        commit(site, "ledger", accounts, flush=accounts == "bc")
        commit(site, "latest", accounts, amount=len(accounts))
    commit(site, "latest", "b", amount=None)
    producer = producer_of(site.open(), "etl")
    producer.begin_transaction()
    send(producer, "ledger", "xyz")
    producer.flush()
    producer.abort_transaction()
    upload_and_die(site, "ledger")
    leave_junk(site, "ledger")
    site.open().admin().delete_records({TopicPartition("ledger", 0): 1})
    for _ in range(2):
        site.advance_ms(9 * DAY_MS)
        site.open().coordinator().run_once()
        compact(site.open())
        vacuum(site.open(), execute=True)
        commit(site, "ledger", "ef")
        commit(site, "latest", "ae", amount=9)
    checkpoint(site.open())
    commit(site, "latest", "z")
    return site


def transactions() -> Site:
    """Prepared, open, fenced, aborted, decided and completed by nobody; with offsets of each."""
    site = Site()
    site.create().admin().create_topic("t", partitions=2, schema=TWO_COLUMNS, config=FOR_EVER)
    commit(site, "t", "a")
    for name in ("prepared", "open", "fenced", "aborted"):
        producer = producer_of(site.open(), name)
        producer.begin_transaction()
        send(producer, "t", name)
        producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, name)
        producer.flush()
        if name == "prepared":
            producer.prepare_transaction()
        if name == "fenced":
            producer_of(site.open(), name)
        if name == "aborted":
            producer.abort_transaction()
    for name, log in (("carried", "topics/t/_segments"), ("appended", "topics/t")):
        dying = producer_of(site.open(on(Operation.PUT_IF_ABSENT, f"{log}/_delta_log", Fault.KILL_BEFORE)), name)
        dying.begin_transaction()
        send(dying, "t", name)
        if name == "appended":
            dying.flush()
        with suppress(ProcessKilled):
            dying.commit_transaction()
    return site


def topics() -> Site:
    """Deleted, created again under its name; with more partitions and columns than at first; Kafka's own."""
    site = Site()
    admin = site.create().admin()
    place = pa.struct([pa.field("city", pa.string())])
    admin.create_topic("again", partitions=2, schema=TWO_COLUMNS, config=FOR_EVER)
    commit(site, "again", "old", flush=True)
    admin.delete_topic("again")
    admin.create_topic("again", schema=TWO_COLUMNS, config=FOR_EVER)
    commit(site, "again", "new")
    admin.create_topic("gone", schema=TWO_COLUMNS)
    admin.delete_topic("gone")
    admin.create_topic("grown", schema=pa.schema([*TWO_COLUMNS, pa.field("place", place)]), config=FOR_EVER)
    commit(site, "grown", "ab")
    admin.add_columns("grown", [pa.field("note", pa.string())])
    admin.add_columns("grown", [pa.field("zip", pa.int32())], inside=["place"])
    admin.create_partitions({"grown": 3})
    producer = producer_of(site.open(), "etl")
    with producer.transaction() as transaction:
        for number in range(3):
            row = {"account": "c", "amount": number, "place": {"city": "x", "zip": number}, "note": "n"}
            transaction.send("grown", row=row, partition=number)
    producer.close()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        sender = site.open().producer(compression_type=codec)
        if codec == "none":
            site.open().admin().create_topic("kafka", partitions=2, config=FOR_EVER)
        sender.send("kafka", key=codec.encode(), value=b"v", headers=[("codec", codec.encode())])
        sender.send("kafka", key=codec.encode(), value=None)
        sender.close()
    return site


def groups() -> Site:
    """A group with two members, one with committed offsets alone, one that is empty, and offsets of a transaction."""
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", partitions=3, schema=TWO_COLUMNS, key=["account"], config=FOR_EVER)
    commit(site, "t", "abcdefgh")
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    members = [site.open().consumer({"group.id": "shared", **settings}) for _ in range(2)]
    for _ in range(6):
        for member in members:
            member.subscribe(["t"])
            member.poll(timeout_ms=0)
    members[0].commit()
    left = site.open().consumer({"group.id": "left", **settings})
    left.subscribe(["t"])
    left.poll(timeout_ms=0)
    left.commit()
    left.close()
    admin.alter_consumer_group_offsets("simple", {TopicPartition("t", 0): 1})
    producer = producer_of(site.open(), "etl")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition("t", 1): 1}, "simple")
    producer.commit_transaction()
    return site


KINDS: dict[str, Callable[[], Site]] = {
    found.__name__: found for found in (layers, statistics, maintained, transactions, topics, groups)
}
"""Written in memory, on clocks that stand still; what Spark writes is in :mod:`tests.golden.writing`."""
