"""A snapshot scan beside a plain Parquet scan of the very same files, with 0, 10 and 50 % aborted data.

The plain scan is given the list of live files and the schema.  One query, TPC-H's first in short: an
aggregate over five columns with a predicate; the ratio is the median of alternating pairs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.lineitem import columns, lineitem, session
from benchmarks.measurement import Figure, alternate, paired_ratio
from txntable.layout import public_root
from txntable.warehouse import Warehouse

ROUNDS = 7
QUERY = (
    "l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, count(*) AS n "
    "FROM {view} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"
)


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time."""
    source = lineitem(folder)
    spark = session()
    try:
        frame = spark.read.parquet(str(source))
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        figures = []
        for aborted in (0, 10, 50):
            topic = f"aborted{aborted}"
            warehouse.admin().create_topic(topic, partitions=8, schema=columns(source))
            _fill(warehouse, topic, frame, aborted)
            figures.append(_compare(warehouse, spark, topic, aborted))
        return figures
    finally:
        spark.stop()


def _fill(warehouse: Warehouse, topic: str, frame: Any, aborted: int) -> None:
    producer = warehouse.producer(f"fill-{topic}")
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.write(topic, frame)
    if aborted:
        producer.begin_transaction()
        share = aborted / (100 - aborted)
        part = frame if share == 1 else frame.sample(fraction=share, seed=1)
        producer.config.write_dataframe(producer, topic, part)
        producer.flush()
        producer.abort_transaction()


def _compare(warehouse: Warehouse, spark: Any, topic: str, aborted: int) -> Figure:
    root = f"{warehouse.url}/{public_root(topic)}"
    files = [f"{root}/{path}" for path in sorted(warehouse.topic_log(topic).public.refresh().files.paths())]
    schema = spark.read.parquet(files[0]).schema

    def snapshot() -> None:
        _query(warehouse.read(spark, topic), spark)

    def plain() -> None:
        _query(spark.read.schema(schema).parquet(*files), spark)

    ours, theirs = alternate(ROUNDS, snapshot, plain)
    return paired_ratio(f"snapshot scan ÷ plain Parquet scan, {aborted} % aborted data", ours, theirs)


def _query(frame: Any, spark: Any) -> None:
    frame.createOrReplaceTempView("scanned")
    assert len(spark.sql(f"SELECT {QUERY.format(view='scanned')}").collect()) == 4
