"""A source of streams of which every record is known: files of numbers, one file for each micro-batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from txntable.warehouse.warehouse import Warehouse

RECORDS_IN_A_FILE = 5
NUMBERS = pa.schema([pa.field("number", pa.int64())])
SETTLE_SECONDS = 120


def write_files(folder: Path, files: int, first: int = 0) -> list[int]:
    """Write files of ascending numbers; return all their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + files):
        base = number * RECORDS_IN_A_FILE
        lines = [f'{{"number": {base + record}}}\n' for record in range(RECORDS_IN_A_FILE)]
        (folder / f"{number:05d}.json").write_text("".join(lines))
    return list(range(first * RECORDS_IN_A_FILE, (first + files) * RECORDS_IN_A_FILE))


def numbers_stream(spark: Any, folder: Path) -> Any:
    """The files as a stream, one for each micro-batch."""
    return spark.readStream.schema("number long").option("maxFilesPerTrigger", 1).json(f"file://{folder}")


def started(writer: Any, checkpoint: Path) -> Any:
    """A query that goes on from its checkpoint until its source has no more."""
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def drain(writer: Any, checkpoint: Path) -> None:
    """Run such a query to its end; raises what it raises."""
    query = started(writer, checkpoint)
    try:
        query.awaitTermination(SETTLE_SECONDS)
    finally:
        query.stop()


def numbers_in(warehouse: Warehouse, topic: str) -> Counter[int]:
    """How often each number is in a topic."""
    return Counter(warehouse.read_arrow(topic, columns=["number"]).read_all()["number"].to_pylist())


def create_topics(warehouse: Warehouse, *topics: str) -> None:
    """Create topics of numbers."""
    for topic in topics:
        warehouse.admin().create_topic(topic, partitions=2, schema=NUMBERS)
