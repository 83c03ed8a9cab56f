"""The page of a report after 1,000 and after 100,000 transactions of a hundred ids, in which nobody has maintained anything.

So every segment, marker and entry of a log is still there: a warehouse that is looked after has far less.
``TXNTABLE_REPORT=<transactions>`` makes fewer.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.measurement import Figure, ratio
from txntable.report.collector import collect
from txntable.report.page import render_page
from txntable.report.warehouse_report import ReportLimits
from txntable.warehouse.warehouse import Warehouse

FEW, MANY = 1_000, 100_000
_IDS = 100
_PARTITIONS = 8
_ABORTED = 10


def measure(folder: Path) -> list[Figure]:
    """Return the seconds and the bytes of a page, and what they are after many ÷ after few."""
    many = int(os.environ.get("TXNTABLE_REPORT", MANY))
    (few_s, few_bytes), (many_s, many_bytes) = (_page(folder / str(number), number) for number in (FEW, many))
    return [
        Figure(f"page after {FEW:,} transactions", few_s, "s", f"{few_bytes / 1e6:.2f} MB"),
        Figure(f"page after {many:,} transactions", many_s, "s", f"{many_bytes / 1e6:.2f} MB"),
        ratio(f"seconds after {many:,} ÷ after {FEW:,}", many_s, few_s),
        ratio("bytes ÷ bytes", many_bytes, few_bytes),
    ]


def make(url: str, transactions: int) -> None:
    """Make a warehouse with so many transactions, every tenth of them aborted, and one open."""
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic("orders", partitions=_PARTITIONS)
    producers = [warehouse.producer(f"etl-{number}") for number in range(_IDS)]
    for producer in producers:
        producer.init_transactions()
    for number in range(transactions):
        producer = producers[number % _IDS]
        producer.begin_transaction()
        producer.send("orders", key=b"%d" % number, value=b"%d" % number * 20, partition=number % _PARTITIONS)
        if number % _ABORTED == 0:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producers[0].begin_transaction()
    producers[0].send("orders", value=b"open", partition=0)
    producers[0].flush()


def _page(folder: Path, transactions: int) -> tuple[float, int]:
    make(str(folder), transactions)
    began = time.perf_counter()
    page = render_page(collect(Warehouse.open(str(folder)), ReportLimits()))
    return time.perf_counter() - began, len(page.encode())
