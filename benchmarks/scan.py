"""A committed scan beside a plain Parquet scan of the very same files, with aborted data and aborted transactions.

The plain scan is given the list of live files and the schema.  One query, TPC-H's first in short: an
aggregate over five columns with a predicate; the ratio is the median of alternating pairs.  What both
pay before the first file is opened is measured beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lineitem import columns, lineitem
from benchmarks.measurement import Figure, alternate, paired_ratio, ratio, rounds
from benchmarks.spark_session import session
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(7)
ABORTED_TRANSACTIONS = 10_000
QUERY = (
    "l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, count(*) AS n "
    "FROM {view} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"
)
# True of no file: what is left of a read is its planning.
NOTHING = "_commit < 0"


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time."""
    source = lineitem(folder)
    spark = session()
    try:
        frame = spark.read.parquet(str(source))
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        cases: dict[str, Callable[[str], None]] = {
            f"{aborted} % aborted data": partial(_abort_share, warehouse, frame, aborted) for aborted in (0, 10, 50)
        }
        cases[f"{ABORTED_TRANSACTIONS:,} aborted transactions"] = partial(_abort_many, warehouse)
        figures = []
        for number, (name, abort) in enumerate(cases.items()):
            topic = f"t{number}"
            warehouse.admin().create_topic(topic, partitions=8, schema=columns(source))
            _commit(warehouse, topic, frame)
            abort(topic)
            figures.extend(_compare(warehouse, spark, topic, name))
        return figures
    finally:
        spark.stop()


def _commit(warehouse: Warehouse, topic: str, frame: Any) -> None:
    producer = warehouse.producer(f"fill-{topic}")
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.write(topic, frame)


def _abort_share(warehouse: Warehouse, frame: Any, aborted: int, topic: str) -> None:
    if not aborted:
        return
    producer = warehouse.producer(f"abort-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    share = aborted / (100 - aborted)
    part = frame if share == 1 else frame.sample(fraction=share, seed=1)
    producer.config.write_dataframes(producer, [(topic, part)])
    producer.flush()
    producer.abort_transaction()


def _abort_many(warehouse: Warehouse, topic: str) -> None:
    producer = warehouse.producer(f"abort-{topic}")
    producer.init_transactions()
    for number in range(ABORTED_TRANSACTIONS):
        producer.begin_transaction()
        producer.send(topic, row={"l_orderkey": number}, partition=number % 8)
        producer.flush()
        producer.abort_transaction()


def _compare(warehouse: Warehouse, spark: Any, topic: str, name: str) -> list[Figure]:
    root = f"{warehouse.url}/{public_root(topic)}"
    files = [f"{root}/{path}" for path in sorted(warehouse.topic_log(topic).public.refresh().files.paths())]
    schema = spark.read.parquet(files[0]).schema

    def snapshot() -> None:
        _query(warehouse.read(spark, topic), spark)

    def planning() -> None:
        warehouse.read(spark, topic).where(NOTHING).collect()

    def plain() -> None:
        _query(spark.read.schema(schema).parquet(*files), spark)

    ours, planned, theirs = alternate(ROUNDS, snapshot, planning, plain)
    return [
        paired_ratio(f"snapshot scan ÷ plain Parquet scan, {name}", ours, theirs),
        Figure(f"planning of the snapshot scan, {name}", median(planned), "s", "every file ruled out"),
        ratio(
            f"snapshot scan without its planning ÷ plain Parquet scan, {name}",
            median(ours) - median(planned),
            median(theirs),
        ),
    ]


def _query(frame: Any, spark: Any) -> None:
    frame.createOrReplaceTempView("scanned")
    assert len(spark.sql(f"SELECT {QUERY.format(view='scanned')}").collect()) == 4
