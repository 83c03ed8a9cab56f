"""A small world of who reads on from an offset while segments are merged below it.

*resumed*: who reads a topic in parts, each time from where the last part ended, while its segments are merged.

The markers and what was aborted leave gaps in a merged segment: it has fewer records than offsets.  Where the reader
goes on is in the middle of one, then.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.onlookers import TOPICS
from tests.simulation.rubbish import merge
from tests.simulation.site import published
from tests.simulation.slot_races import UNTIL_ALL_ENDED, Actor
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import Weather, World
from txntable.format.records import TopicPartition

PARTITIONS = tuple(TopicPartition(TOPICS[0], number) for number in (0, 1))


class Merging(Actor):
    """Has transactions, and merges what they have left."""

    def act(self) -> None:
        producer = self.producer("x")
        for _ in range(self.random.randint(4, 10)):
            self.transact(producer)
            if self.random.random() < 0.4:
                merge(self.warehouse, TOPICS[0])
            self.process.rest(self.random.choice([0, 5, 20]), 0)


class Resuming(Actor):
    """Reads a few records, and goes on behind them as another consumer; in the end it has been given all."""

    def act(self) -> None:
        given: list[tuple[int, int]] = []
        for turns in (*[20] * 30, UNTIL_ALL_ENDED):
            self.process.rest(turns, 0)
            given += self.read_on(given, self.random.choice([1, 1, 2, 3]))
        self.warehouse.complete()
        while found := self.read_on(given, 500):
            given += found
        there = [(row["_partition"], row["_offset"]) for row in published(self.warehouse, TOPICS[0])]
        passed_over = sorted(set(there) - set(given))
        assert not passed_over, f"committed, and passed over by who reads on: {passed_over}"
        assert len(given) == len(set(given)), "given twice to who reads on"

    def read_on(self, given: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        """Read some records from behind the last one of each partition."""
        with self.warehouse.consumer(auto_offset_reset="earliest", prefetch=False) as consumer:
            consumer.assign(PARTITIONS)
            for partition in PARTITIONS:
                mine = [offset for number, offset in given if number == partition.partition]
                consumer.seek(partition, max(mine, default=-1) + 1)
            polled = consumer.poll(max_records=most)
        return [(each.partition, record.offset) for each, records in polled.items() for record in records]


RESUMED: Mapping[str, World] = {"resumed": SmallWorld((Merging, Resuming), rough=Weather)}
