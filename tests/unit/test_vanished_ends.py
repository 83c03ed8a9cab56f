"""The end of a log is looked for while the whole warehouse is taken away: that is no loss, but another warehouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.lost_ends import entries_of, lose, lose_decisions, site_with_records
from tests.unit.reading import TOPIC, transactional
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.log.delta_log import DeltaLog
from txntable.log.table_state import TableState
from txntable.transactions.decided_end import require_settled
from txntable.warehouse.warehouse import Warehouse

SEGMENT_LOG_ROOT = f"topics/{TOPIC}/_segments"


def commit_offsets(site: Site) -> None:
    producer = transactional(site.open(), "copier")
    for offset in (1, 2):
        with producer.transaction():
            producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): offset}, "readers")
    producer.close()


def lose_offsets(site: Site) -> None:
    site.objects.delete(entries_of(site, OFFSET_LOG_ROOT)[-1])


def settled(warehouse: Warehouse) -> None:
    require_settled(warehouse.transactions, warehouse.offsets)


@pytest.mark.parametrize(
    ("judged", "lose_end", "look"),
    [
        (TRANSACTION_LOG_ROOT, lambda site: lose_decisions(site, 9), lambda it: it.topic_log(TOPIC).require_decided()),
        (TRANSACTION_LOG_ROOT, lambda site: lose_decisions(site, 2), settled),
        (SEGMENT_LOG_ROOT, lambda site: lose(site, 1), lambda it: it.topic_log(TOPIC).require_whole()),
        (OFFSET_LOG_ROOT, lose_offsets, lambda it: it.offsets.require_whole()),
    ],
    ids=["decisions of a topic", "decisions of groups", "records", "offsets"],
)
def test_end_that_was_looked_for_while_all_is_taken_away_is_not_lost(
    judged: str,
    lose_end: Callable[[Site], object],
    look: Callable[[Warehouse], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: what was read of the log ended where it was taken away, and was said to be damaged."""
    site, refresh = site_with_records(), DeltaLog.refresh
    commit_offsets(site)
    lose_end(site)
    warehouse = site.open()
    warehouse.offsets.refresh()
    warehouse.topic_log(TOPIC).read_public()
    warehouse.topic_log(TOPIC).segments.refresh()
    with pytest.raises(DamagedDataError):
        look(warehouse)

    def refresh_while_all_is_taken_away(log: DeltaLog[Any]) -> TableState:
        found = refresh(log)
        if log.root == judged:
            site.objects.restore({})
        return found

    monkeypatch.setattr(DeltaLog, "refresh", refresh_while_all_is_taken_away)

    with pytest.raises(WarehouseReplacedError):
        look(warehouse)
