"""A copy by a group of processes that are killed and paused is the original: nothing lost, nothing twice, in order."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.integration.copiers import (
    BLOWS,
    GARBAGE,
    GROUP,
    PARTITIONS,
    SOURCE,
    TARGET,
    Copying,
    open_warehouse,
    started_producer,
    values_by_partition,
)
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

# As many as Kafka's own test has, and more blows, by hand: TXNTABLE_COPY_RECORDS=100000.
RECORDS = int(os.environ.get("TXNTABLE_COPY_RECORDS", "20000"))
SEED = int(os.environ.get("TXNTABLE_SEED", "7"))


def test_copy_is_the_original_when_copiers_are_killed_and_paused_at_every_moment(tmp_path: Path) -> None:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for topic in (SOURCE, TARGET):
        warehouse.admin().create_topic(topic, partitions=PARTITIONS)
    blows = list(BLOWS) * max(1, RECORDS // 30_000)
    random.Random(SEED).shuffle(blows)
    copying = Copying(warehouse.url, RECORDS, blows, SEED)

    copying.run(patience_ms=60_000 * len(blows))

    original = values_by_partition(warehouse, SOURCE)
    assert copying.struck == blows
    assert sum(len(values) for values in original.values()) >= RECORDS
    for copier in range(copying.copiers):
        # Ends what a last kill left open.
        started_producer(open_warehouse(warehouse.url), f"copier {copier}")
    for found in (dict(copying.seen), values_by_partition(warehouse, TARGET)):
        assert GARBAGE not in {value for values in found.values() for value in values}
        assert found == original
    check_offsets(open_warehouse(warehouse.url))


def check_offsets(warehouse: Warehouse) -> None:
    """The group has read everything, and no transaction is open in any log."""
    warehouse.complete()
    partitions = [TopicPartition(SOURCE, number) for number in range(PARTITIONS)]
    with warehouse.consumer(group_id=GROUP) as consumer:
        committed = {each.partition: one.offset for each, one in consumer.committed(partitions).items() if one}
    assert committed.keys() == set(range(PARTITIONS))
    # What lies behind, if anything, are markers.
    assert warehouse.read_arrow(SOURCE, starting_offsets=committed).read_all().num_rows == 0
    warehouse.transactions.refresh()
    assert warehouse.transactions.log.fold.under_way == {}
    warehouse.offsets.refresh()
    assert warehouse.offsets.log.fold.pending == {}
    segments = warehouse.topic_log(TARGET).segments
    segments.refresh()
    assert segments.fold.open == {}
