"""A process of a simulation that does a few things, as a program of a user would, and goes on after an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.checker.operations import Maintain
from tests.simulation.journal import Journal
from tests.simulation.recorded import RecordedProducer
from tests.simulation.turns import JUMPS_MS, Process
from txntable.errors import DamagedDataError, TxnTableError
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog

DAY_MS = 86_400_000

Action = Callable[[], object]


class Actor:
    """One process; a kind of it says what it does.

    Parameters
    ----------
    process : Process
        Its turns and chances.
    journal : Journal
        Of the run.
    topics : sequence of str
        What it works on.
    """

    most_actions = 5

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...]) -> None:
        self.process, self.random, self.journal, self.topics = process, process.random, journal, topics
        self.site = process.turns.site
        self.witness = journal.witness(process.name)

    def actions(self) -> list[Action]:
        """What it may do; what it mostly does comes first."""
        raise NotImplementedError

    def run(self) -> None:
        """Open the warehouse and do a few things."""
        self.warehouse = self.process.opened()
        actions = self.actions()
        for _ in range(self.random.randint(2, self.most_actions)):
            action = self.random.choice(actions)
            self.process.doing(action.__name__)
            try:
                action()
            except DamagedDataError:
                raise
            except TxnTableError as error:
                self.recover(error)

    def recover(self, error: TxnTableError) -> None:
        """Go on after an error: what it left open is in the operation log."""

    def producer(self, owner: str | None = None, **settings: Any) -> RecordedProducer:
        """A producer whose records leave one by one, or all at flush."""
        made = {
            "transaction_timeout_ms": 60_000,
            "enable_idempotence": owner is not None or self.random.random() < 0.7,
            "batch_size": self.random.choice([1_000_000, 1]),
        }
        producer = self.warehouse.producer(owner, **{**made, **settings})
        return RecordedProducer(producer, self.warehouse, self.witness)

    def partition(self) -> int | None:
        """The partitioner's choice, or one's own."""
        return self.random.choice([None, 0, 1])

    # -- what anybody may do ----------------------------------------------------------------

    def sleep(self) -> None:
        """Let time pass for all."""
        self.site.advance_ms(self.random.choice(JUMPS_MS))

    def maybe_sleep(self, chance: float) -> None:
        """Let time pass, sometimes."""
        if self.random.random() < chance:
            self.sleep()

    def pause(self) -> None:
        """Let the others go on."""
        self.process.pause()

    def complete(self) -> None:
        """Finish what others have decided."""
        self.warehouse.complete()

    def checkpoint(self) -> None:
        """Write a checkpoint of some log."""
        log = self.any_log()
        with self.witness.calling(Maintain("checkpoint")):
            log.write_checkpoint()

    def clean(self) -> None:
        """Delete the oldest entries of some log."""
        root = self.any_log().root
        with self.witness.calling(Maintain("cleanup")):
            clean_up(self.warehouse.context, root, DAY_MS)

    def any_log(self) -> DeltaLog[Any]:
        """One of the logs."""
        topic = self.warehouse.topic_log(self.random.choice(self.topics))
        warehouse = self.warehouse
        return self.random.choice([warehouse.transactions.log, topic.segments, topic.public, warehouse.offsets.log])
