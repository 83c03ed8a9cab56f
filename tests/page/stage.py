"""Warehouses to look at: a busy one, an empty one, and one in which every name wants to be markup."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from examples.busy_warehouse import Day
from tests.simulation.site import Site
from txntable.format.records import TopicPartition
from txntable.report.collector import Collector
from txntable.report.warehouse_report import ReportLimits, WarehouseReport
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
MARKUP = (
    "<script>window.injected = 1</script>",
    "<img src=x onerror='window.injected = 1'>",
    '"><svg onload="window.injected = 1">',
    "</title></style></textarea><script>window.injected = 1</script>",
    "' onmouseover='window.injected = 1",
    "&lt;script&gt; {{ 7 * 7 }} {% raw %} ${7*7}",
    "javascript:window.injected=1//",
    "<!-- --><base href='https://example.com/'>",
    "]]></script><meta http-equiv=refresh content='0;url=https://example.com'>",
)
"""Texts that would run, load or break something where they are not escaped."""
DIRECTIONS = (
    "\u202egnirts desrever a\u202c",
    "\u2066isolate\u2069 then \u200fright to left",
    "\u05e9\u05dc\u05d5\u05dd \u0627\u0644\u0633\u0644\u0627\u0645",
    "bell \x07 escape \x1b[31m null \x00 del \x7f",
    "line\u2028separator and\nnewline",
)
"""Texts that turn the order of what is read, or steer a terminal."""
LONG = "endless-" * 4000
"""A name as long as names may be."""
COLUMN = "<script>'&lt\"</script>"
"""A column's name, which must have none of some characters."""
HOSTILE = (*MARKUP, *DIRECTIONS, LONG)


def busy() -> WarehouseReport:
    """A shop's day."""
    site = Site()
    warehouse = site.create()
    Day(warehouse, site.advance_ms, HOUR_MS).play()
    return replace(Collector(warehouse, ReportLimits()).collect(), url="s3://lake/shop")


def empty() -> WarehouseReport:
    """A warehouse that nobody has used."""
    return replace(Collector(Site().create(), ReportLimits()).collect(), url="s3://lake/new")


def hostile() -> WarehouseReport:
    """Transactional ids, groups, keys, values, columns, settings and the URL want to be something else."""
    site = Site()
    warehouse = site.create()
    fill_hostile(warehouse)
    site.advance_ms(30_000)
    limits = ReportLimits(records=3 * len(HOSTILE), blocking=len(HOSTILE))
    return replace(Collector(warehouse, limits).collect(), url=f"/tmp/{MARKUP[0]}{DIRECTIONS[0]}")


def fill_hostile(warehouse: Warehouse) -> None:
    """Use every hostile text as a transactional id with an open transaction, as a group, a key and a value."""
    admin = warehouse.admin()
    admin.create_topic("plain")
    admin.create_topic("T-" + "x" * 240)
    admin.create_topic("columns", schema=pa.schema([pa.field(COLUMN, pa.string())]))
    with warehouse.producer() as producer:
        for text in HOSTILE:
            producer.send("plain", key=text.encode(), value=text.encode())
        producer.send("plain", key=b"\xff\xfe<b>", value=None)
        producer.send("columns", row={COLUMN: MARKUP[1] + DIRECTIONS[0]})
    for text in HOSTILE:
        producer = warehouse.producer(text)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("plain", value=text.encode())
        producer.flush()
        admin.alter_consumer_group_offsets(text, {TopicPartition("plain", 0): 0})
