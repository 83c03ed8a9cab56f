"""What a simulation's clerks do: the coordinator job, admins, and the passing of days."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.bank import MONEY, TELLERS, Actor
from tests.simulation.exchange import MERCHANTS
from txntable.client.records import TopicPartition
from txntable.errors import RetriableError, TransactionCoordinatorFencedError


class Clerk(Actor):
    """Keeps the warehouse going, and ends other people's transactions."""

    def actions(self) -> list[Callable[[], object]]:
        often = [self.coordinate] * 4 + [self.end_by_id, self.end_by_place, self.fence]
        return [*often, self.checkpoint, self.clean, self.look, self.sleep, self.sleep]

    def coordinate(self) -> None:
        """Some rounds of one job; who lost the lease never gets it back."""
        job = self.warehouse.coordinator()
        for _ in range(self.random.randint(1, 3)):
            try:
                job.run_once()
            except TransactionCoordinatorFencedError:
                with pytest.raises((TransactionCoordinatorFencedError, RetriableError)):
                    job.run_once()
                return
            self.maybe_jump(0.3)

    def end_by_id(self) -> None:
        self.warehouse.admin().abort_transaction(self.random.choice([*TELLERS, *MERCHANTS]))

    def end_by_place(self) -> None:
        admin, where = self.warehouse.admin(), TopicPartition(self.random.choice(MONEY), self.random.randrange(2))
        found = [one for one in admin.describe_producers([where])[where] if one.current_transaction_start_offset]
        for one in found[:1]:
            admin.abort_transaction(
                topic=where.topic, partition=where.partition, start_offset=one.current_transaction_start_offset
            )

    def fence(self) -> None:
        self.warehouse.admin().fence_producers([self.random.choice([*TELLERS, *MERCHANTS])])
