"""Random histories in which records go: retention, deletion of records, vacuum and the job, beside compactions.

Every history is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.
"""

from __future__ import annotations

import pytest

from tests.simulation.ageing import EVENTS, KEPT, MINUTE_MS, Ageing
from tests.simulation.picture import Place, Row, living, records
from tests.simulation.test_compaction import check_fold, run_seeds, small_segments
from txntable.compaction.compactor import CompactionOptions, compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import OffsetOutOfRangeError
from txntable.format.records import TopicPartition

__all__ = ["small_segments"]

RETENTION_MS = (300 * MINUTE_MS + 30_000, 900 * MINUTE_MS + 30_000)
_DAY_MS = 86_400_000


class Shrinking(Ageing):
    """A warehouse whose topics lose their oldest records too."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.retained = self.random.random() < 0.5
        self.log_start: dict[TopicPartition, int] = {}
        if self.retained:
            for topic in (EVENTS, KEPT):
                ms = str(self.random.choice(RETENTION_MS))
                self.config[topic]["retention.ms"] = ms
                self.writer.admin().alter_configs(topic, {"retention.ms": ms})

    def live(self, steps: int) -> None:
        """Let that many things happen."""
        often = [self.transact] * 5 + [self.append] * 3 + [self.pass_time] * 4 + [self.delete] * 2
        for _ in range(steps):
            things = [*often, self.abort, self.leave_open, *[self.end_open] * 3, self.commit_offsets, self.add_column]
            self.random.choice([*things, self.add_partition, self.come_back, self.vacuum, self.job])()

    def delete(self) -> None:
        partition = TopicPartition(self.random.choice([EVENTS, KEPT]), 0)
        admin = self.reader.admin()
        earliest = admin.list_offsets({partition: "earliest"})[partition]
        first = 0 if earliest is None else earliest.offset
        end = admin.delete_records({partition: None}, validate_only=True)[partition]
        before = self.random.randint(first, end)
        assert admin.delete_records({partition: before})[partition] == before
        self.log_start[partition] = before

    def vacuum(self) -> None:
        vacuum(self.fresh(), execute=True)

    def job(self) -> None:
        self.fresh().coordinator().run_once()

    def committed(self) -> dict[str, dict[Place, Row]]:
        """What a process that has just been started reads of each topic."""
        warehouse = self.fresh()
        read = {t: warehouse.read_arrow(t, isolation_level="read_committed").read_all() for t in self.partitions}
        return {topic: records(table) for topic, table in read.items()}


def age(seed: int) -> None:
    shrinking = Shrinking(seed)
    for _ in range(shrinking.random.randint(2, 5)):
        shrinking.live(shrinking.random.randint(4, 16))
        check_compaction(shrinking)
    shrinking.end()
    check_compaction(shrinking)
    shrinking.site.advance_ms(40 * _DAY_MS)
    shrinking.vacuum()
    check_compaction(shrinking)


def check_compaction(shrinking: Shrinking) -> None:
    warehouse = shrinking.fresh()
    warehouse.complete()
    before, now_ms = shrinking.committed(), shrinking.site.time.instant().wall_ms

    options = CompactionOptions(memory_bytes=shrinking.random.choice([1, 4000, 1 << 28]), commit_bytes=4000)
    for report in compact(shrinking.fresh(), options=options):
        assert (report.failures, report.lost) == ((), 0)

    after = shrinking.committed()
    for topic, rows in after.items():
        assert rows.items() <= before[topic].items(), topic
        gone = [row for place, row in before[topic].items() if place not in rows]
        retention_ms = int(shrinking.config[topic].get("retention.ms", "-1"))
        if topic == EVENTS:
            oldest_ms = now_ms - retention_ms if retention_ms >= 0 else 0
            assert all(row["_timestamp"].timestamp() * 1000 < oldest_ms for row in gone)
        elif retention_ms < 0:
            assert living(rows) == living(before[topic])
        check_fold(shrinking, topic)
    check_log_start(shrinking, after)


def check_log_start(shrinking: Shrinking, read: dict[str, dict[Place, Row]]) -> None:
    """What was deleted stays deleted, in every engine: the public table's files hold none of it."""
    warehouse = shrinking.fresh()
    for partition, before in shrinking.log_start.items():
        topic = warehouse.topic_log(partition.topic)
        assert all(offset >= before for number, offset in read[partition.topic] if number == partition.partition)
        shown = [add.partition_values for add in topic.public.refresh().files]
        bases = [int(values["_base_offset"] or "") for values in shown if values["_partition"] == "0"]
        assert all(base >= before for base in bases)
        if before:
            with pytest.raises(OffsetOutOfRangeError):
                warehouse.read_arrow(partition.topic, starting_offsets={0: before - 1}).read_all()


@pytest.mark.parametrize("part", range(2))
def test_only_what_is_to_go_goes_in_any_history(part: int) -> None:
    run_seeds(age, part)
