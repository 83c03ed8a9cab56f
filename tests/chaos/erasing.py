"""Topics of which records go: by key, by age, by deletion; and who writes to them meanwhile."""

from __future__ import annotations

from tests.chaos.life import DEAD, RecordedProducer
from tests.chaos.maintenance import Compacting
from tests.chaos.money import Teller
from tests.chaos.premises import EVENTS, HAPPENINGS, KEEP_MS, KEPT, KEYED_CONFIG, KEYS
from tests.checker.operations import Maintain, Write
from txntable.format.records import TopicPartition


class Keeper(Teller):
    """Writes what is so far, key by key, in transactions over all topics; and deletes keys."""

    def move_money(self, producer: RecordedProducer) -> None:
        """Inside a transaction: write, and end."""
        for _ in range(self.chance.choice([1, 1, 2])):
            producer.append([self.record() for _ in range(self.chance.choice([1, 2, 4]))])
            self.life.rest(self.chance.choice([0, 0, 20, 200]))
        (producer.abort if self.chance.random() < 0.2 else producer.commit)()

    def record(self) -> Write:
        """Return the next record of some key; a key is always in the same partition."""
        topic, key = self.chance.choice(list(KEYED_CONFIG)), self.chance.choice(KEYS)
        place = topic, KEYS.index(key) % 2
        if topic != HAPPENINGS and self.chance.random() < 0.15:
            return Write(place, f"{DEAD}{self.life.time_of_death()}", key=key, dead=True)
        return Write(place, self.life.label(), key=key)


class Erasing(Compacting):
    """Deletes records and changes settings, beside compaction by key and retention."""

    topics: tuple[str, ...] = (HAPPENINGS, KEPT)

    def turn(self) -> None:
        self.chance.choice([self.delete, self.compact, self.alter])()
        self.life.rest(600)

    def delete(self) -> None:
        """Delete what is before some offset."""
        partition = TopicPartition(self.chance.choice(self.topics), self.chance.choice([0, 1]))
        admin = self.life.warehouse.admin()
        end = admin.delete_records({partition: None}, validate_only=True)[partition]
        before = self.chance.choice([end, end // 2, max(0, end - 1), 1 if end else 0])
        with self.life.recorder.calling(Maintain("delete_records", partition.topic)):
            found = admin.delete_records({partition: before})[partition]
        assert found >= before, "what was deleted is gone"

    def alter(self) -> None:
        """Keep records shorter, or for ever."""
        changes = {"retention.ms": self.chance.choice(["-1", str(KEEP_MS), str(2 * KEEP_MS)])}
        with self.life.recorder.calling(Maintain("retention")):
            self.life.warehouse.admin().alter_configs(self.chance.choice(self.topics), changes)


class Trimming(Erasing):
    """The same for the events of everyday."""

    topics = (EVENTS,)
