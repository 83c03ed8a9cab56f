"""What a pipeline does, without Spark: the loop of ``txntable.spark.pipelines.pipeline``, with state by key.

A run inits, begins (with a batch id or not), reads a range of the group, copies it, counts each key's records in a
topic that is compacted by key, and commits all of that with the offsets.  Of several processes one is the pipeline:
the newest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.checker.operations import Level, Read
from tests.simulation.actor import Action, Actor
from tests.simulation.copying import IN, copies_of, member_of
from tests.simulation.journal import Draft, Journal
from tests.simulation.recorded import RecordedProducer, read
from tests.simulation.recorded_consumer import RecordedConsumer
from tests.simulation.turns import Process
from txntable.errors import BatchAlreadyCommittedError, BatchOutOfOrderError, TxnTableError

STATE, PIPE = "state", "pipe"


@dataclass
class Schedule:
    """The scheduler outside: which run is the newest."""

    newest: int = 0

    def next(self) -> int:
        """The next run's number."""
        self.newest += 1
        return self.newest


class Pipeline(Actor):
    """One process of the pipeline."""

    most_actions = 5

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...], schedule: Schedule) -> None:
        super().__init__(process, journal, topics)
        self.schedule = schedule
        self.sender: RecordedProducer | None = None
        self.consumer: RecordedConsumer | None = None

    def actions(self) -> list[Action]:
        """Run again and again."""
        return [*[self.run_once] * 4, self.run_batch, self.run_batch, self.pause, self.restart]

    def restart(self) -> None:
        """Begin as a new process would."""
        self.sender = self.consumer = None

    def run_batch(self) -> None:
        """A run of the scheduler, which is started again when it fails: it counts once."""
        batch = self.schedule.next()
        for _ in range(2):
            try:
                self.run_once(batch)
            except (BatchAlreadyCommittedError, BatchOutOfOrderError):
                return
            except TxnTableError as error:
                self.recover(error)
                self.restart()
            else:
                return

    def run_once(self, batch: int | None = None) -> None:
        """One transaction."""
        if self.sender is None:
            producer = self.producer(PIPE, transaction_timeout_ms=600_000)
            producer.init()
            self.sender = producer
        consumer, producer = self.consuming(), self.sender
        producer.begin(batch)
        polled = consumer.read(self.random.choice([None, 2]), producer.txn)
        if polled:
            rows = read(self.witness, self.warehouse, Read(Level.SNAPSHOT), [STATE])[STATE]
            counts = counts_in(rows)
            counts.update(Counter(key or "" for _, key in polled))
            producer.send(copies_of(polled, self.witness), flush=self.random.random() >= 0.3)
            changed = sorted({key or "" for _, key in polled})
            producer.send([Draft(STATE, self.witness.name("s"), key, counts[key]) for key in changed])
        self.process.pause()
        consumer.send_offsets(producer)
        producer.commit()

    def consuming(self) -> RecordedConsumer:
        """The static member that the newest process is."""
        if self.consumer is None:
            made = member_of(self.warehouse, PIPE, enable_auto_commit=False, group_instance_id=PIPE)
            self.consumer = RecordedConsumer(made, self.witness)
            self.consumer.subscribe([IN])
        return self.consumer

    def recover(self, error: TxnTableError) -> None:
        """Abort what can be aborted; how the rest ended the next init finds out."""
        producer = self.sender
        if producer is not None and producer.producer.state in ("IN_TRANSACTION", "ABORTABLE_ERROR"):
            try:
                producer.abort()
            except TxnTableError:
                self.sender = None
        if self.sender is not None and self.sender.producer.state != "READY":
            self.sender = None
        if error.code == "FENCED_INSTANCE_ID":
            self.consumer = None


def counts_in(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """The newest count of each key."""
    ordered = sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))
    return Counter({row["account"]: row["amount"] for row in ordered})
