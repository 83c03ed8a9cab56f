"""A small world of writers that decide what nobody could read, as a call would whose arguments nobody had looked at.

*unreadable*: rows that no fold takes, and numbers that no decoder takes, are asked of every log between transactions.

They are asked below the calls that bound their arguments: what is judged is that a log refuses them before anything is
put, and that everybody goes on, whoever was refused among them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.onlookers import TOPICS, Onlooker
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import World
from txntable.coordinator.batch_memory import BatchRow
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow
from txntable.errors import InvalidRequestError
from txntable.log.actions import Action, Add, Txn
from txntable.log.delta_log import DeltaLog
from txntable.log.keyed_table import keyed_add
from txntable.offsets.offset_rows import columns_of
from txntable.transactions.transaction_rows import batch_columns

_TOO_LARGE = 2**63


class Careless(Onlooker):
    """Writes as others do, and decides what cannot be read."""

    kinds: tuple[str, ...] = ("write", "write", "remember", "remember", "stand", "number", "place", "pause", "complete")

    def remember(self) -> None:
        """Ask T for a batch id of 65 bits."""
        row = BatchRow("x", _TOO_LARGE, 1, 0, 1)
        self._ask(self.warehouse.transactions.log, keyed_add(batch_columns(row), 0))

    def stand(self) -> None:
        """Ask O for an offset of 65 bits."""
        committed = CommittedOffset(_TOO_LARGE, "", "", 0, 0)
        row = OffsetRow("careless", TOPICS[0], 0, 1, committed)
        self._ask(self.warehouse.offsets.log, keyed_add(columns_of(row), 0))

    def number(self) -> None:
        """Ask T for a number of 65 bits."""
        self._ask(self.warehouse.transactions.log, Txn("careless", _TOO_LARGE))

    def place(self) -> None:
        """Ask S for a segment that is nowhere."""
        values = dict.fromkeys(
            ("_partition", "_base_offset", "_last_offset", "_producer_id", "_producer_epoch", "_control", "_marker")
        )
        self._ask(self.warehouse.topic_log(TOPICS[0]).segments, Add("p00000/nowhere.parquet", values, 1, 0))

    def _ask(self, log: DeltaLog, action: Action) -> None:
        try:
            log.commit("CARELESS", lambda table: [action])
        except InvalidRequestError:
            return
        raise AssertionError("what nobody can read was not refused")


UNREADABLE: Mapping[str, World] = {"unreadable": SmallWorld((Careless, Onlooker, Careless))}
