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
from tests.simulation import test_group_crashes as operate_groups
from tests.simulation.rubbish import leave_junk, merge, upload_and_die
from tests.simulation.site import TWO_COLUMNS, Site
from tests.simulation.test_erasure_crashes import wait_with_all
from tests.unit.admin.group_members import SESSION_MS
from txntable.admin.restoration import Restoration
from txntable.compaction.compactor import compact
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import Extent
from txntable.compaction.vacuum import vacuum
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse, open_on

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


def newest_entry(site: Site, root: str) -> str:
    return max(path for path in site.objects.snapshot() if path.startswith(f"{root}/_delta_log/0"))


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


def settings() -> Site:
    """The warehouse's and a topic's altered; records that a retention expired, and idle ids, offsets and groups."""
    site = Site()
    admin = site.create().admin()
    for name in ("kept", "short"):
        admin.create_topic(name, schema=TWO_COLUMNS, config=FOR_EVER)
        commit(site, name, "abc", flush=True)
        admin.alter_consumer_group_offsets("idle", {TopicPartition(name, 0): 1})
    admin.alter_configs("short", {"retention.ms": DAY_MS, "segment.bytes": 2**20})
    # A month at least is what its logs and files are kept for: so nothing of what is told here is cleaned up.
    admin.alter_warehouse({"vacuum_retention_ms": 40 * DAY_MS})
    site.advance_ms(8 * DAY_MS)
    commit(site, "short", "d", flush=True)
    site.open().coordinator().run_once()
    compact(site.open())
    # Whoever maintains it later would find that it is older than a day.
    admin.alter_configs("short", FOR_EVER)
    commit(site, "kept", "e")
    return site


def ended() -> Site:
    """Transactions ended by their timeout, an admin and a newer producer; one that hung, and its id that moved on."""
    site = Site()
    site.create().admin().create_topic("t", partitions=2, schema=TWO_COLUMNS, config=FOR_EVER)
    commit(site, "t", "ab", flush=True)
    for name in ("late", "aborted", "fenced", "hanging"):
        producer = producer_of(site.open(), name)
        producer.begin_transaction()
        if name != "hanging":
            producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, name)
        send(producer, "t", "x")
        producer.flush()
        match name:
            case "late":
                site.advance_ms(60_001)
                site.open().coordinator().run_once()
            case "aborted":
                site.open().admin().abort_transaction("aborted")
            case "fenced":
                site.open().admin().fence_producers(["fenced"])
    _abort_hanging(site)
    commit(site, "t", "c")
    return site


def _abort_hanging(site: Site) -> None:
    """Lose what the transaction log has of what is open, and end it by its place."""
    site.objects.delete(newest_entry(site, TRANSACTION_LOG_ROOT))
    topic = site.open().topic_log("t")
    topic.settings()
    (hanging,) = topic.segments.fold.open.values()
    for partition, offset in hanging.first_offsets.items():
        site.open().admin().abort_transaction(topic="t", partition=partition, start_offset=offset)


def settled() -> Site:
    """Offsets of transactions one after the other; a deleted group, deleted offsets, and those of a deleted topic."""
    site = Site()
    admin = site.create().admin()
    for name in ("t", "gone"):
        admin.create_topic(name, partitions=2, schema=TWO_COLUMNS, config=FOR_EVER)
        commit(site, name, "abcd", flush=True)
    producer = producer_of(site.open(), "copier")
    for offset in (1, 2):
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition("t", 0): offset, TopicPartition("gone", 0): 1}, "g")
        producer.commit_transaction()
    producer.close()
    checkpoint(site.open())
    producer = producer_of(site.open(), "copier")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 3}, "g")
    producer.commit_transaction()
    for group in ("deleted", "forgetful"):
        admin.alter_consumer_group_offsets(group, {TopicPartition("t", 1): 1, TopicPartition("t", 0): 1})
    admin.delete_consumer_groups(["deleted"])
    admin.delete_consumer_group_offsets("forgetful", [TopicPartition("t", 1)])
    admin.delete_topic("gone")
    site.open().coordinator().run_once()
    return site


def members() -> Site:
    """A group whose members gave partitions up, were expelled, and met a topic that was created again and grew."""
    site = operate_groups.site_with_two_members()
    admin = site.open().admin()
    for name in ("debit", "credit"):
        admin.alter_configs(name, FOR_EVER)
        commit(site, name, "abc")
    operate_groups.release(site.open())
    operate_groups.leave(site.open())
    site.advance_ms(SESSION_MS + 1)
    operate_groups.join(site.open(), "c")
    operate_groups.expel(site.open())
    admin.create_partitions({"debit": 3})
    operate_groups.refresh(site.open())
    return site


def restored() -> Site:
    """Fenced as after a restore, where the offset log had lost its newest entry; and a transaction of after it."""
    site = Site()
    site.create().admin().create_topic("t", partitions=2, schema=TWO_COLUMNS, config=FOR_EVER)
    commit(site, "t", "ab", flush=True)
    producer = producer_of(site.open(), "copier")
    for offset in (1, 2):
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition("t", 0): offset}, "g")
        producer.commit_transaction()
    producer.close()
    site.objects.delete(newest_entry(site, OFFSET_LOG_ROOT))
    restoring = open_on(site.store(), site.environment(), recovering=True)
    Restoration(restoring.completer, restoring.admin()).fence_all()
    commit(site, "t", "cd", flush=True)
    return site


def erased() -> Site:
    """A value purged from segments and manifests, and what came after."""
    site = Site()
    site.create().admin().create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"], config=FOR_EVER)
    commit(site, "t", "ab", flush=True)
    commit(site, "t", "bc")
    site.advance_ms(2 * 3_600_000)
    merge(site.open(), "t")
    erase(wait_with_all(site, site.open()), {"account": "b"}, extent=Extent.PURGE)
    commit(site, "t", "d")
    return site


KINDS: dict[str, Callable[[], Site]] = {
    found.__name__: found
    for found in (
        layers, statistics, maintained, transactions, topics, groups, settings, ended, settled, members, restored,
        erased
    )
}  # fmt: skip
"""Written in memory, on clocks that stand still; what Spark writes is in :mod:`tests.golden.writing`."""
