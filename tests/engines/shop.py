"""A warehouse with everything that the table of a topic can hold, and the rows that must be seen in it.

The rows are known from what the writers were told, and from nothing that was read: which transaction a row was in, how
it ended, and what was deleted since.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.engines.values import encode
from tests.spark.compacting import later_clock
from txntable.compaction.compactor import compact
from txntable.format.layout import log_folder
from txntable.format.records import RecordMetadata, TopicPartition
from txntable.log.cleanup import clean_up
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

ORDERS, PAYMENTS, LATEST, CLOSED = "orders", "payments", "latest", "closed"
DAY_MS, SENT_MS = 86_400_000, 1_700_000_000_000
OF_ORDERS = pa.schema(
    [
        pa.field("account", pa.string(), nullable=False),
        pa.field("amount", pa.int64()),
        pa.field("small", pa.int8()),
        pa.field("short", pa.int16()),
        pa.field("medium", pa.int32()),
        pa.field("single", pa.float32()),
        pa.field("ratio", pa.float64()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("huge", pa.decimal128(38, 6)),
        pa.field("paid", pa.bool_()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("address", pa.struct([pa.field("street", pa.string()), pa.field("tags", pa.list_(pa.string()))])),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("numbers", pa.list_(pa.int64())),
        pa.field("lines", pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("n", pa.int32())]))),
        pa.field("Größe", pa.int32()),
    ]
)
# A zone-less timestamp: the table asks for version 3 of readers.
OF_PAYMENTS = pa.schema(
    [
        pa.field("account", pa.string(), nullable=False),
        pa.field("amount", pa.int64()),
        pa.field("local", pa.timestamp("us")),
    ]
)
OF_LATEST = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])
ADDED, ADDED_INSIDE = pa.field("note", pa.string()), pa.field("city", pa.string())


def order(number: int) -> dict[str, Any]:
    """One of three shapes: nulls only, special values, full."""
    key = {"account": f"a{number % 7}", "amount": number}
    if number % 3 == 0:
        return dict.fromkeys(OF_ORDERS.names) | key
    special = number % 3 == 1
    return key | {
        "small": -128,
        "short": 32_767,
        "medium": -(2**31),
        "single": math.inf if special else -1.5,
        "ratio": math.nan if special else number / 7,
        "price": Decimal("-0.01") if special else Decimal(number),
        "huge": Decimal("99999999999999999999999999999999.999999"),
        "paid": special,
        "raw": b"" if special else b"\x00\xff",
        "day": dt.date(1969, 12, 31),
        "at": dt.datetime(2013, 3, 31, 1, 59, 59, 999_999, tzinfo=dt.UTC),
        "address": {"street": None if special else "x", "tags": ["a", None]},
        "counts": {"k": number},
        "numbers": [] if special else [1, None, 3],
        "lines": [{"sku": "s", "n": number}, {"sku": None, "n": None}],
        "Größe": number,
    }


def payment(number: int) -> dict[str, Any]:
    local = None if number % 3 == 0 else dt.datetime.fromisoformat("2013-03-31T02:30:00.000001")
    return {"account": f"a{number % 7}", "amount": -number, "local": local}


class Shop:
    """The warehouse while it is written, and its expected rows by topic, each with `_commit` as it was decided.

    Snapshots can be read from `merged_through` on, and are whole up to `published`.
    """

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse.create(str(folder), durability="page-cache")
        self.expected: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.merged_through = self.published = 0
        self._producer = self.warehouse.producer("etl", transaction_timeout_ms=600_000)
        self._sent: list[tuple[RecordMetadata, dict[str, Any]]] = []

    def create(self) -> None:
        admin = self.warehouse.admin()
        admin.create_topic(ORDERS, partitions=3, schema=OF_ORDERS, key=["account"])
        admin.create_topic(PAYMENTS, partitions=2, schema=OF_PAYMENTS, key=["account"])
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
        admin.create_topic(LATEST, partitions=1, schema=OF_LATEST, key=["account"], config=compacted)
        admin.create_topic(CLOSED, partitions=1, schema=OF_LATEST)
        self._producer.init_transactions()

    def send(self, producer: Producer, topic: str, row: dict[str, Any]) -> None:
        self._sent.append((producer.send(topic, row=row, timestamp_ms=SENT_MS + row["amount"]), row))

    def transact(self, numbers: range, *, commit: bool = True, added: bool = False) -> None:
        """Send an order and a payment for each number in one transaction."""
        self._producer.begin_transaction()
        for number in numbers:
            sent = order(number)
            if added:
                sent |= {ADDED.name: f"n{number}"}
                if sent["address"] is not None:
                    sent["address"] |= {ADDED_INSIDE.name: "Köln"}
            self.send(self._producer, ORDERS, sent)
            self.send(self._producer, PAYMENTS, payment(number))
            self.send(self._producer, LATEST, {"account": f"a{number % 3}", "amount": number})
        self._producer.flush()
        if not commit:
            self._producer.abort_transaction()
            self._sent.clear()
            return
        self._producer.commit_transaction()
        self._expect(self._last_decision())

    def append(self, numbers: range) -> None:
        """Send orders and payments outside of transactions."""
        with self.warehouse.producer() as plain:
            for number in numbers:
                self.send(plain, ORDERS, order(number))
                self.send(plain, PAYMENTS, payment(number))
            plain.flush()
            self._expect(0)

    def leave_open(self, number: int) -> None:
        """Begin a transaction, write its records durably, and say nothing more."""
        self._producer.begin_transaction()
        self._producer.send(ORDERS, row=order(number))
        self._producer.send(PAYMENTS, row=payment(number))
        self._producer.flush()

    def die_between_tables(self, numbers: range) -> None:
        """Commit a transaction whose process died when it was in one public table, and not yet in the other."""
        producer = self.warehouse.producer("dying")
        producer.init_transactions()
        log = Path(self.warehouse.url) / log_folder(self.warehouse.topic_log(ORDERS).public.root)
        before = set(log.iterdir())
        producer.begin_transaction()
        for number in numbers:
            producer.send(ORDERS, row=order(number))
            self.send(producer, PAYMENTS, payment(number))
        producer.commit_transaction()
        late = set(log.iterdir()) - before
        assert late
        for entry in late:
            entry.unlink()
        self.published = self._last_decision("dying") - 1
        self._expect(self.published + 1)

    def _last_decision(self, transactional_id: str = "etl") -> int:
        found = self.warehouse.transactions.row(transactional_id)
        assert found is not None
        assert found.decision is not None
        return found.decision.position

    def _expect(self, commit: int) -> None:
        for metadata, row in self._sent:
            where = {"_partition": metadata.partition, "_offset": metadata.offset, "_commit": commit}
            at = dt.datetime.fromtimestamp((SENT_MS + row["amount"]) / 1000, tz=dt.UTC)
            self.expected[metadata.topic].append(where | {"_timestamp": at} | row)
        self._sent.clear()

    # -- what happens to a topic --------------------------------------------------------------

    def add_columns(self) -> None:
        admin = self.warehouse.admin()
        admin.add_columns(ORDERS, [ADDED])
        admin.add_columns(ORDERS, [ADDED_INSIDE], inside=["address"])

    def compact(self) -> None:
        """Two hours later: merge, take away what was aborted, keep the latest of each key."""
        with pytest.MonkeyPatch.context() as patch:
            later_clock(patch)
            for report in compact(self.warehouse):
                assert not report.failures
                assert report.topic == CLOSED or report.written_segments
        self.merged_through = self._last_decision()
        rows = self.expected[LATEST]
        newest = {row["account"]: row["_offset"] for row in sorted(rows, key=lambda row: row["_offset"])}
        self.expected[LATEST] = [row for row in rows if row["_offset"] == newest[row["account"]]]

    def delete_records(self, partition: int, keep: int) -> None:
        """Delete all orders of a partition but the last ones: a merged segment is cut."""
        rows = sorted((row for row in self.expected[ORDERS] if row["_partition"] == partition), key=_offset)
        assert len(rows) > keep
        first = rows[-keep]["_offset"]
        self.warehouse.admin().delete_records({TopicPartition(ORDERS, partition): first})
        self.expected[ORDERS] = [
            row for row in self.expected[ORDERS] if row["_partition"] != partition or row["_offset"] >= first
        ]

    def close_topic(self) -> None:
        with self.warehouse.producer() as plain:
            plain.send(CLOSED, row={"account": "a0", "amount": 1})
        self.warehouse.admin().delete_topic(CLOSED)

    def clean_up(self) -> None:
        """Write checkpoints and delete the entries below, as a month later: readers begin at a checkpoint."""
        public = [self.warehouse.topic_log(name).public for name in (ORDERS, PAYMENTS, LATEST)]
        for table in public:
            table.refresh()
            table.write_checkpoint()
        transactions = self.warehouse.transactions.log
        transactions.refresh()
        transactions.write_checkpoint()
        for root in (transactions.root, *(table.root for table in public)):
            for entry in (Path(self.warehouse.url) / log_folder(root)).iterdir():
                os.utime(entry, (0, 0))
            assert clean_up(self.warehouse.context, root, DAY_MS).paths


def _offset(row: dict[str, Any]) -> int:
    offset: int = row["_offset"]
    return offset


def write_shop(folder: Path) -> Shop:
    """Write the whole history."""
    shop = Shop(folder)
    shop.create()
    shop.transact(range(6))
    shop.transact(range(6, 9), commit=False)
    shop.append(range(9, 12))
    shop.transact(range(12, 18))
    shop.close_topic()
    shop.compact()
    shop.delete_records(shop.expected[ORDERS][0]["_partition"], keep=1)
    shop.add_columns()
    shop.transact(range(18, 27), added=True)
    shop.clean_up()
    shop.transact(range(27, 33), added=True)
    shop.transact(range(33, 36), commit=False)
    shop.append(range(36, 39))
    shop.transact(range(39, 45), added=True)
    shop.leave_open(99)
    shop.die_between_tables(range(45, 48))
    return shop


def names_of(topic: str) -> list[str]:
    """The user's columns of a topic at the end."""
    schema = {ORDERS: OF_ORDERS, PAYMENTS: OF_PAYMENTS}.get(topic, OF_LATEST)
    return [*schema.names, ADDED.name] if topic == ORDERS else list(schema.names)


def whole(topic: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as the newest schema shows it: columns that it was written without are null."""
    found = {name: row.get(name) for name in ("_partition", "_offset", "_timestamp", *names_of(topic))}
    address = found.get("address")
    if address is not None:
        found["address"] = {"street": None, "tags": None, ADDED_INSIDE.name: None, **address}
    return {name: encode(value) for name, value in found.items()}
