"""A stream and a change feed of delta-spark beside real processes that write, compact, retain and delete records.

Each record that was ever committed comes once, and decisions come in their order.  The processes are those of
``tests.chaos``, killed and paused; here is one session.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chaos.__main__ import arena_on
from tests.chaos.judgement import end
from tests.chaos.premises import EVENTS
from tests.checker.operations import Outcome, Send
from txntable.format.layout import public_root

SECONDS, SEED = 4, 7
OFFSET = "_base_offset + _offset_delta AS _offset"
Batches = list[list[tuple[str, int, int, int]]]


def collected(frame: Any) -> list[tuple[str, int, int, int]]:
    rows = frame.selectExpr("value", "_partition", OFFSET, "_commit").collect()
    return [(bytes(row[0]).decode(), row[1], row[2], row[3]) for row in rows]


def reading(spark: Any, url: str, batches: Batches) -> Any:
    """A stream that goes on until it is stopped, a few files at a time."""

    def take(frame: Any, _: int) -> None:
        batches.append(collected(frame))

    stream = spark.readStream.format("delta").option("startingVersion", 0).option("maxFilesPerTrigger", 40).load(url)
    return stream.writeStream.foreachBatch(take)


def in_order_of_decisions(batches: Batches) -> bool:
    positions = [[row[3] for row in batch if row[3] > 0] for batch in batches]
    positions = [found for found in positions if found]
    return all(max(before) <= min(after) for before, after in pairwise(positions))


def test_stream_and_change_feed_show_each_record_once_beside_compaction_and_deletion(
    spark: Any, tmp_path: Path
) -> None:
    topic, batches = EVENTS, Batches()
    with arena_on("local", tmp_path, SEED, "streams") as arena, arena.open():
        url = f"{arena.site.url}/{public_root(topic)}"
        stream = reading(spark, url, batches).option("checkpointLocation", str(tmp_path / "checkpoint"))
        # Micro-batches go on in threads of the session.
        query = stream.start()
        arena.run(SECONDS)
        judgement = end(arena)
        query.processAllAvailable()
        query.stop()
        changes = spark.sql(f"SELECT * FROM table_changes('{catalogued(spark, url)}', 0)")
        changed = collected(changes)
        kinds = {row[0] for row in changes.select("_change_type").distinct().collect()}

    streamed = [row for batch in batches for row in batch]
    assert judgement.violations == []
    assert Counter(row[:3] for row in streamed).most_common(1)[0][1] == 1
    assert {row[:3] for row in streamed} == {row[:3] for row in changed}
    assert len(changed) == len(streamed)
    assert kinds == {"insert"}
    assert in_order_of_decisions(batches)
    acknowledged = {
        write.value
        for one in judgement.history
        if isinstance(one.call, Send) and one.outcome is Outcome.OK and one.call.txn is None
        for write in one.call.writes
        if write.place[0] == topic
    }
    assert acknowledged <= {row[0] for row in streamed}


def catalogued(spark: Any, url: str) -> str:
    """A name of the table, which the change feed asks for."""
    name = f"beside_{abs(hash(url))}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{url}'")
    return name
