"""Topics that change in the middle of everything: partitions, columns, settings; one is deleted and made again."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tests.chaos.life import Life, RecordedProducer
from tests.chaos.money import Teller
from tests.chaos.premises import ACCOUNTS, SCRATCH
from tests.checker.operations import Write
from txntable.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

_MOST_PARTITIONS, _MOST_COLUMNS = 12, 12


class Founder(Teller):
    """Moves money in transactions, in whose middle it, or another one, changes the topics."""

    def __init__(self, life: Life, who: str) -> None:
        super().__init__(life, f"founder {who}")
        self.admin = life.warehouse.admin()

    def move_money(self, producer: RecordedProducer) -> None:
        """Inside a transaction: move money, change topics, move more."""
        for portion in self.moved():
            producer.append(portion)
            self.chance.choice([self.grow, self.widen, self.alter, self.delete, self.make, self.scratch_on(producer)])()
        (producer.abort if self.chance.random() < 0.1 else producer.commit)()

    def write(self, topic: str, amount: int = 0) -> Write:
        """Return a record for any partition that the topic has now."""
        partitions = len(self.admin.describe_topics([topic])[0].partitions) if topic in ACCOUNTS else 2
        return Write((topic, self.chance.randrange(partitions)), self.life.label(), amount=amount)

    def scratch_on(self, producer: RecordedProducer) -> Callable[[], None]:
        """Return what writes to the topic that comes and goes."""

        def scratch() -> None:
            if SCRATCH in self.admin.list_topics():
                producer.append([Write((SCRATCH, 0), self.life.label())])

        return scratch

    def grow(self) -> None:
        """Add a partition."""
        topic = self.chance.choice(ACCOUNTS)
        partitions = self.life.warehouse.topic_log(topic).settings().partitions
        if partitions < _MOST_PARTITIONS:
            self.admin.create_partitions({topic: partitions + 1})

    def widen(self) -> None:
        """Add a column."""
        column = pa.field(f"c{self.chance.randrange(_MOST_COLUMNS)}", pa.int64())
        self.admin.add_columns(self.chance.choice(ACCOUNTS), [column])

    def alter(self) -> None:
        """Change a setting."""
        size = self.chance.choice(["20000", "5000", None])
        self.admin.alter_configs(self.chance.choice(ACCOUNTS), {"segment.bytes": size})

    def delete(self) -> None:
        """Delete the topic that comes and goes."""
        try:
            self.admin.delete_topic(SCRATCH)
        except UnknownTopicOrPartitionError:
            return

    def make(self) -> None:
        """Make it again."""
        try:
            self.admin.create_topic(SCRATCH, partitions=self.chance.randint(1, 3))
        except TopicAlreadyExistsError:
            return
