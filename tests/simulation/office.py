"""What a simulation's clerks do: the coordinator job, admins, and the passing of days."""

from __future__ import annotations

import pytest

from tests.checker.operations import Init, Maintain
from tests.simulation.actor import Action, Actor
from tests.simulation.bank import MONEY, TELLERS
from tests.simulation.exchange import MERCHANTS
from txntable.errors import RetriableError, TransactionCoordinatorFencedError
from txntable.format.records import TopicPartition

IDS = (*TELLERS, *dict.fromkeys(MERCHANTS))


class Clerk(Actor):
    """Keeps the warehouse going, and ends other people's transactions."""

    def actions(self) -> list[Action]:
        """Run the job, mostly."""
        often = [*[self.coordinate] * 4, self.end_by_id, self.end_by_place, self.fence]
        return [*often, self.checkpoint, self.clean, self.sleep, self.sleep, self.complete]

    def coordinate(self) -> None:
        """Some rounds of one job; who lost the lease never gets it back."""
        job = self.warehouse.coordinator()
        for _ in range(self.random.randint(1, 3)):
            try:
                with self.witness.calling(Maintain("coordinate")):
                    job.run_once()
            except TransactionCoordinatorFencedError:
                with pytest.raises((TransactionCoordinatorFencedError, RetriableError)):
                    job.run_once()
                return
            self.maybe_sleep(0.3)

    def end_by_id(self) -> None:
        """Abort whatever an owner has open."""
        self.warehouse.admin().abort_transaction(self.random.choice(IDS))

    def end_by_place(self) -> None:
        """Abort what is open in a partition."""
        admin, where = self.warehouse.admin(), TopicPartition(self.random.choice(MONEY), self.random.choice([0, 1]))
        found = [one for one in admin.describe_producers([where])[where] if one.current_transaction_start_offset]
        for one in found[:1]:
            admin.abort_transaction(
                topic=where.topic, partition=where.partition, start_offset=one.current_transaction_start_offset
            )

    def fence(self) -> None:
        """Take an owner from whoever has it."""
        owner = self.random.choice(IDS)
        with self.witness.calling(Init(owner)) as asked:
            (producer_id, epoch) = self.warehouse.admin().fence_producers([owner])[owner]
            asked.saw(producer_id=producer_id, epoch=epoch)
