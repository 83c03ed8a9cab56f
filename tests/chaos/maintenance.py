"""Upkeep under fire: compaction, vacuum, coordinator jobs, and admins that take ids away."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.chaos.life import Life
from tests.chaos.premises import Site
from tests.chaos.program import Program
from tests.checker.operations import Init, Maintain
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import DamagedDataError, InvalidTxnStateError, TransactionCoordinatorFencedError, TxnTableError
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.upkeep.transaction_coordinator import CoordinatorConfig

_OFTEN = CoordinatorConfig(
    completion_interval_ms=500,
    publication_interval_ms=1_000,
    member_expulsion_interval_ms=1_000,
    transactional_id_expiration_interval_ms=2_000,
    producer_id_expiration_interval_ms=2_000,
    offset_expiration_interval_ms=2_000,
    log_cleanup_interval_ms=5_000,
    decision_age_ms=100,
)


class Compacting(Program):
    """Compacts all topics, again and again."""

    def turn(self) -> None:
        self.compact()
        self.life.rest(1_000)

    def compact(self) -> None:
        """Compact all topics once."""
        with self.life.recorder.calling(Maintain("compact")):
            failures = [text for report in compact(self.life.warehouse) for text in report.failures]
        check(failures)


class Vacuuming(Program):
    """Deletes what killed writers have left."""

    def turn(self) -> None:
        with self.life.recorder.calling(Maintain("vacuum")):
            report = vacuum(self.life.warehouse, execute=True)
        with _tally(self.life.site).open("a") as tally:
            tally.write(f"{report.objects}\n")
        check(report.failures)
        self.life.rest(3_000)


def vacuumed(site: Site) -> int:
    """Return how many objects all vacuums have deleted; one that was killed on the way has not told."""
    path = _tally(site)
    return sum(map(int, path.read_text().splitlines())) if path.exists() else 0


def _tally(site: Site) -> Path:
    return Path(site.folder) / "vacuumed"


def check(failures: Sequence[str]) -> None:
    """Stop where upkeep has found damage: what else fails, the next round does."""
    damaged = [text for text in failures if DamagedDataError.code in text]
    assert not damaged, damaged


class Coordinating(Program):
    """Does the coordinator's job until another one takes the lease, and takes it back after a while."""

    def turn(self) -> None:
        began, lasts_ms = self.life.environment.instant(), self.chance.uniform(500, 8_000) * self.life.scenario.rests

        def over() -> bool:
            return self.life.stopping or self.life.environment.since_ms(began) > lasts_ms

        # Fenced: the other job goes on.
        with self.life.recorder.calling(Maintain("coordinate")), suppress(TransactionCoordinatorFencedError):
            self.life.warehouse.coordinator(_OFTEN).run(over, self.tell)
        self.life.rest(2_000)

    def tell(self, report: CoordinatorReport) -> None:
        """Nobody listens."""


class Administrating(Program):
    """Takes ids from their producers, ends transactions over their heads, and looks around."""

    def __init__(self, life: Life, transactional_ids: Sequence[str]) -> None:
        super().__init__(life)
        self.ids = transactional_ids
        self.admin = life.warehouse.admin()

    def turn(self) -> None:
        self.chance.choice([self.fence, self.terminate, self.look])()
        self.life.rest(2_000)

    def fence(self) -> None:
        """Fence one id."""
        chosen = self.chance.choice(self.ids)
        with self.life.recorder.calling(Init(chosen)) as call:
            (identity,) = self.admin.fence_producers([chosen]).values()
            call.saw(producer_id=identity[0], epoch=identity[1])

    def terminate(self) -> None:
        """Abort what is open, of one id."""
        going_on = [row.transactional_id for row in self.admin.list_transactions() if row.state.is_open]
        if not going_on:
            return
        # What a coordinator does, too.  It may have ended meanwhile.
        with self.life.recorder.calling(Maintain("coordinate")), suppress(InvalidTxnStateError):
            self.admin.abort_transaction(self.chance.choice(going_on))

    def look(self) -> None:
        """Find nothing that hangs."""
        hanging = self.admin.find_hanging_transactions(max_transaction_timeout_ms=0)
        assert not hanging, hanging

    def recover(self, error: TxnTableError) -> None:
        """The next turn does something else."""
