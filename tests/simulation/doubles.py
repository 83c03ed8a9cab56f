"""A small world of identities that several have at once, as after a fork, or of a machine that was copied.

*doubles*: producers with one identity among them, in transactions and without, that send different records.

The clients refuse to be forked; that the logs do not take one's record for another's is what is judged here: what
anybody was told is stored.  Nothing is said about what was refused, since one's commit commits what another appended.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.onlookers import MINUTE_MS, TOPICS, Onlooker
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import World
from txntable.partition.batch import ProducerEpoch
from txntable.producer.producer import Producer


class Double(Onlooker):
    """Writes under an identity that others have, too."""

    kinds: tuple[str, ...] = ("plainly", "plainly", "together", "together", "pause", "complete", "sleep")

    def plainly(self) -> None:
        """Append without a transaction."""
        producer = self.warehouse.producer()
        if self.is_copy(producer, "plain"):
            producer.resume(self.told.copied["plain"])
        for _ in range(self.random.randint(1, 4)):
            value = self.send(producer)
            self.share(producer, "plain")
            self.process.pause()
            producer.flush()
            self.told.committed[value] = 1

    def together(self) -> None:
        """Take part in a transaction: who commits it commits what all have appended."""
        producer = self.warehouse.producer("x", transaction_timeout_ms=MINUTE_MS)
        if self.is_copy(producer, "x"):
            producer.resume(self.told.copied["x"])
        else:
            producer.init_transactions()
            self.share(producer, "x")
        producer.begin_transaction()
        values = [self.send(producer) for _ in range(self.random.randint(1, 3))]
        self.process.pause()
        producer.flush()
        self.process.pause()
        producer.commit_transaction()
        self.told.committed.update(dict.fromkeys(values, 1))

    def is_copy(self, producer: Producer, name: str) -> bool:
        return name in self.told.copied and self.random.random() < 0.8

    def share(self, producer: Producer, name: str) -> None:
        """Let others have the identity that a producer has."""
        if producer.producer_id is not None and producer.producer_epoch is not None:
            self.told.copied[name] = ProducerEpoch(producer.producer_id, producer.producer_epoch)

    def send(self, producer: Producer) -> str:
        """Send a record that nobody else sends."""
        self.count += 1
        value = f"{self.process.name}-{self.count}"
        producer.send(TOPICS[0], value.encode(), partition=self.random.choice([0, 0, 1]))
        return value


DOUBLES: Mapping[str, World] = {"doubles": SmallWorld((Double, Double, Double))}
