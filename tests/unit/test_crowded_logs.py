"""A decision settles what is its own: neither T's open transactions nor O's pending offsets are walked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.log.only_looked_up import OnlyLookedUp
from txntable import TopicPartition
from txntable.offsets.offset_log import OffsetLogFold
from txntable.warehouse.warehouse import Warehouse

OTHERS = 5


@pytest.fixture
def crowded(tmp_path: Path) -> Warehouse:
    """Some transactions that are open, with records and offsets."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=1, schema=pa.schema([("n", pa.int64())]))
    for number in range(OTHERS):
        begun(made, f"other{number}")
    return made


def begun(warehouse: Warehouse, transactional_id: str) -> Any:
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"n": 1})
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, f"group of {transactional_id}")
    producer.flush()
    return producer


def test_commit_walks_no_open_transaction_and_no_pending_offset(
    crowded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = begun(crowded, "mine")
    guarded = []
    for fold, name in ((crowded.transactions.log.fold, "_under_way"), (crowded.offsets.log.fold, "pending")):
        guarded.append(OnlyLookedUp(getattr(fold, name)))
        monkeypatch.setattr(fold, name, guarded[-1])

    producer.commit_transaction()

    offsets = crowded.offsets.log.fold.offsets
    assert offsets["group of mine"]["t", 0].committed is not None
    assert all(offsets[f"group of other{number}"]["t", 0].pending for number in range(OTHERS))
    assert crowded.transactions.log.fold.incomplete() == []
    for each in guarded:
        each.walkable = True


def test_rows_that_wait_for_a_transaction_are_those_that_a_walk_finds(crowded: Warehouse) -> None:
    producer = begun(crowded, "mine")
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 7}, "group of other0")
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 9}, "group of mine")
    crowded.offsets.refresh()
    restored = OffsetLogFold()
    restored.restore(crowded.offsets.log.table)
    transactions: set[tuple[int, int]] = set()

    for fold in (crowded.offsets.log.fold, restored):
        transactions = {(one.producer_id, one.epoch) for row in fold.pending.values() for one in row.pending}
        assert len(transactions) == OTHERS + 1
        for each in transactions:
            wanted = [row for row in fold.pending.values() if each in {(p.producer_id, p.epoch) for p in row.pending}]
            assert sorted(fold.pending_of([each]), key=str) == sorted(wanted, key=str)
        assert len(fold.pending_of(transactions)) == len(fold.pending)
    producer.abort_transaction()
    left = crowded.offsets.log.fold.pending_of(transactions)
    assert sorted(left, key=str) == sorted(crowded.offsets.log.fold.pending.values(), key=str)
    assert len(crowded.offsets.log.fold.pending) == OTHERS
