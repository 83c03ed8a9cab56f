"""A topic with every type of column, written in every way, whose records are known from what its writers were told."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from txntable.format.layout import log_folder
from txntable.log.cleanup import clean_up
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

TOPIC, PARTITIONS = "varied", 3
DAY_MS = 86_400_000
SCHEMA = pa.schema(
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
        pa.field("local", pa.timestamp("us")),
        pa.field("address", pa.struct([pa.field("street", pa.string()), pa.field("tags", pa.list_(pa.string()))])),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("numbers", pa.list_(pa.int64())),
    ]
)
_NULLS: dict[str, object] = dict.fromkeys(SCHEMA.names)


def row(number: int) -> dict[str, Any]:
    """One of three shapes: full, with special values, with nulls only."""
    key = {"account": f"a{number % 7}", "amount": number}
    if number % 3 == 0:
        return _NULLS | key
    special = number % 3 == 1
    return (
        _NULLS
        | key
        | {
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
            "local": dt.datetime.fromisoformat("2013-03-31T02:30:00"),
            "address": {"street": None if special else "x", "tags": ["a", None]},
            "counts": {"k": number},
            "numbers": [] if special else [1, None, 3],
        }
    )


@dataclass
class VariedTopic:
    """The topic, and the records that must be seen in it."""

    warehouse: Warehouse
    expected: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.warehouse.url}/topics/{TOPIC}"

    def create(self) -> None:
        self.warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=["account"])

    def write(self) -> None:
        """Commits, aborts, records outside of transactions, and at last a transaction that stays open."""
        producer = self.warehouse.producer("etl")
        producer.init_transactions()
        for first in range(0, 18, 3):
            rows = [row(number) for number in range(first, first + 3)]
            producer.begin_transaction()
            if first % 9 == 3:
                self.send(producer, rows)
                producer.flush()
                producer.abort_transaction()
                continue
            sent = self.send(producer, rows)
            producer.commit_transaction()
            self.expect(rows, sent, self.last_decision())
        with self.warehouse.producer() as plain:
            rows = [row(100), row(101)]
            sent = self.send(plain, rows)
            plain.flush()
            self.expect(rows, sent, 0)
        producer.begin_transaction()
        self.send(producer, [row(200)])
        producer.flush()

    def send(self, producer: Producer, rows: list[dict[str, Any]]) -> list[Any]:
        return [producer.send(TOPIC, row=each) for each in rows]

    def last_decision(self) -> int:
        found = self.warehouse.transactions.row("etl")
        assert found is not None
        assert found.decision is not None
        return found.decision.position

    def expect(self, rows: list[dict[str, Any]], sent: list[Any], commit: int) -> None:
        for each, metadata in zip(rows, sent, strict=True):
            where = {"_partition": metadata.partition, "_offset": metadata.offset, "_commit": commit}
            self.expected.append(where | each)

    # -- what happens to a log --------------------------------------------------------------

    def checkpoint(self) -> None:
        topic = self.warehouse.topic_log(TOPIC)
        for log in (topic.segments, topic.public):
            log.refresh()
            log.write_checkpoint()

    def clean_up(self) -> int:
        """Delete the entries below a checkpoint, as a month later; return how many files went."""
        gone = 0
        for log in (self.warehouse.topic_log(TOPIC).segments, self.warehouse.topic_log(TOPIC).public):
            for entry in (Path(self.warehouse.url) / log_folder(log.root)).iterdir():
                os.utime(entry, (0, 0))
            gone += len(clean_up(self.warehouse.context, log.root, DAY_MS).paths)
        return gone


def fresh(topic: VariedTopic) -> None:
    topic.create()
    topic.write()


def checkpointed(topic: VariedTopic) -> None:
    topic.create()
    topic.write()
    topic.checkpoint()


def cleaned(topic: VariedTopic) -> None:
    topic.create()
    topic.write()
    topic.checkpoint()
    assert topic.clean_up() > 0


def recreated(topic: VariedTopic) -> None:
    topic.create()
    topic.write()
    topic.warehouse.admin().delete_topic(TOPIC)
    topic.expected.clear()
    topic.create()
    topic.write()


HISTORIES: dict[str, Callable[[VariedTopic], None]] = {
    "from version 0": fresh,
    "from a checkpoint": checkpointed,
    "after log cleanup": cleaned,
    "after delete and create": recreated,
}


def make(folder: Path, history: str) -> VariedTopic:
    topic = VariedTopic(Warehouse.create(str(folder / "wh"), durability="page-cache"))
    HISTORIES[history](topic)
    return topic


# -- comparing ------------------------------------------------------------------------------


def canonical(rows: list[dict[str, Any]], names: list[str] | None = None) -> list[dict[str, Any]]:
    """Rows in offset order, values as they compare: maps as dictionaries, NaN equal to itself, times in UTC."""
    found = [
        {name: _comparable(value) for name, value in each.items() if names is None or name in names} for each in rows
    ]
    return sorted(found, key=lambda each: (each["_partition"], each["_offset"]))


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


COLUMNS = ["_partition", "_offset", "_commit", *SCHEMA.names]
