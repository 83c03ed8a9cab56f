"""What a process does for a transaction does not grow with its own life: its steps are counted, no time is taken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from txntable import Producer, Warehouse
from txntable.log import delta_log
from txntable.log.delta_log import DeltaLog

YOUNG, OLD, COUNTED = 40, 700, 20


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse on a disk."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", schema=pa.schema([("n", pa.int64())]))
    return made


def transact(producer: Producer, number: int) -> None:
    with producer.transaction() as txn:
        txn.send("t", row={"n": number})


def steps(work: Callable[[], None]) -> int:
    """How many lines of Python run while something is done, each round of a loop by itself."""
    counted = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


def test_transaction_costs_a_process_no_more_steps_late_in_its_life(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_log, "is_due", lambda version, live_files: False)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    costs = []

    for number in range(OLD + COUNTED):
        is_counted = number in range(YOUNG, YOUNG + COUNTED) or number >= OLD
        if is_counted:
            costs.append(steps(lambda number=number: transact(producer, number)))  # type: ignore[misc]
        else:
            transact(producer, number)

    young, old = sorted(costs[:COUNTED]), sorted(costs[COUNTED:])
    assert old[COUNTED // 2] <= 1.02 * young[COUNTED // 2]


def test_checkpoint_costs_a_process_no_more_steps_late_in_its_life(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came since the last one is taken as a start takes it; all that was proved before is compared as columns."""
    producer = warehouse.producer("etl")
    producer.init_transactions()
    costs: list[int] = []
    write = DeltaLog._write_checkpoint

    def counted(log: DeltaLog[Any]) -> None:
        costs.append(steps(lambda: write(log)))

    monkeypatch.setattr(DeltaLog, "_write_checkpoint", counted)

    for number in range(OLD):
        transact(producer, number)

    # T, S and P write one in each hundred versions.
    assert len(costs) == 3 * (OLD // 100)
    assert sum(costs[-6:]) <= 1.02 * sum(costs[3:9])
