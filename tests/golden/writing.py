"""Write golden warehouses that are not there yet: ``python -m tests.golden.writing``.

Those that are there stay as they are: what an older version wrote is what a later one must read.  The warehouse that
Spark's own writer fills needs Java.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from tests.golden.kinds import FOR_EVER, KINDS
from tests.golden.warehouses import all_of, kinds, write
from txntable.errors import InvalidRequestError
from txntable.producer.transaction import Transaction
from txntable.spark.session import build_session
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse

NATIVE = "native"
ROWS = """
    SELECT CAST(id AS STRING) AS account, id AS amount, CAST(id AS DECIMAL(9, 2)) AS fare,
           array(named_struct('name', CAST(id AS STRING))) AS stops
    FROM range(0, 40, 1, 2)
"""
SCHEMA = pa.schema(
    [
        pa.field("account", pa.string()),
        pa.field("amount", pa.int64()),
        pa.field("fare", pa.decimal128(9, 2)),
        pa.field("stops", pa.list_(pa.field("element", pa.struct([pa.field("name", pa.string())])))),
    ]
)


def write_native(folder: Path) -> None:
    """Segments that Spark's own writer wrote: committed, aborted and of a transaction that is open."""
    settings = {SWITCH: Wish.ALWAYS.value, "spark.driver.memory": "1g"}
    session = build_session("golden", master="local[2]", settings=settings)
    warehouse = Warehouse.create(str(folder))
    warehouse.admin().create_topic("native", partitions=2, schema=SCHEMA, config=FOR_EVER)
    for name in ("committed", "aborted", "open"):
        producer = warehouse.producer(name)
        producer.init_transactions()
        producer.begin_transaction()
        written = Transaction(producer).write("native", session.sql(ROWS), distribution_mode="none")
        if written.segments_by != "spark":
            raise InvalidRequestError("spark's writer was not used; see why", segments_by=written.segments_by)
        producer.flush()
        if name == "committed":
            producer.commit_transaction()
        if name == "aborted":
            producer.abort_transaction()
    session.stop()


def main() -> None:
    """Write what is missing."""
    for kind in sorted({*KINDS} - {*kinds()}):
        site = KINDS[kind]()
        objects = {path: found.data for path, found in site.objects.snapshot().items()}
        write(kind, objects, all_of(site.copy().open()))
    if NATIVE not in kinds():
        with TemporaryDirectory() as made:
            folder = Path(made)
            write_native(folder)
            objects = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            write(NATIVE, objects, all_of(Warehouse.open(made, durability="page-cache")))


if __name__ == "__main__":
    main()
