"""Every fold's overlay takes a commit as the fold itself does, and leaves it as it is (PROTOCOL.md §4.2 rule 12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.golden_logs import FOLDERS, golden_objects
from tests.unit.log.only_looked_up import OnlyLookedUp
from tests.unit.partition.history import History, new_history, play, steps
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.log.actions import decode_commit
from txntable.log.fold import Fold, take
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLogFold
from txntable.partition.partition_log import OpenTransaction, PartitionLogs
from txntable.partition.projection import PublicTable
from txntable.partition.unstable_offsets import UnstableOffsets
from txntable.transactions.transaction_log import TransactionLogFold

_CHANGEABLE = (MutableMapping, MutableSequence, MutableSet, deque)


def plain(value: object) -> object:
    """Return a copy of what a fold holds, without overlays."""
    if isinstance(value, OpenTransaction):
        return {"batches": plain(value.batches), "first_offsets": plain(value.first_offsets)}
    if isinstance(value, UnstableOffsets):
        return {name: plain(each) for name, each in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return value


def picture(table: TableState, fold: Fold) -> tuple[object, ...]:
    """Return everything that a view holds but its journal, which an overlay has of its own."""
    kept = {name: plain(value) for name, value in attributes(fold).items() if not name.startswith("_journal")}
    files = {add.path: add for add in table.files}
    return (kept, files, len(table.files), dict(table.numbers), dict(table.tombstones), table.version, table.chain)


def attributes(one: object) -> dict[str, Any]:
    """Return the attributes of an object, with slots or without."""
    slots = getattr(type(one), "__slots__", ())
    return {name: getattr(one, name) for name in slots} if slots else dict(vars(one))


@contextmanager
def unwalkable(fold: Fold) -> Iterator[None]:
    """Let every mapping of a fold answer for single keys only: an overlay costs what the commit says."""
    mappings = {name: value for name, value in attributes(fold).items() if isinstance(value, dict)}
    guarded = {name: OnlyLookedUp(mapping) for name, mapping in mappings.items()}
    for name, instead in guarded.items():
        setattr(fold, name, instead)
    yield
    for name, mapping in mappings.items():
        guarded[name].walkable = True
        setattr(fold, name, mapping)


def require_same_on_overlays(entries: Mapping[str, bytes], root: str, new: Callable[[], Fold]) -> int:
    """Fold a log entry by entry, each on an overlay first; return how many there were."""
    table, fold = TableState(), new()
    while (data := entries.get(path := commit_path(root, table.next_version))) is not None:
        commit, before = decode_commit(table.next_version, data, path), picture(table, fold)
        with unwalkable(fold):
            over_table, over = table.overlay(), fold.overlay()
            take(commit, over_table, over)
        assert picture(table, fold) == before
        take(commit, table, fold)
        assert picture(over_table, over) == picture(table, fold)
    return table.next_version


@pytest.mark.parametrize("folder", FOLDERS)
def test_overlays_of_all_logs_take_what_a_golden_warehouse_holds(folder: str) -> None:
    objects = golden_objects(folder)
    topics = sorted({path.split("/")[1] for path in objects if path.startswith("topics/")})
    folds: dict[str, Callable[[], Fold]] = {
        TRANSACTION_LOG_ROOT: TransactionLogFold,
        OFFSET_LOG_ROOT: OffsetLogFold,
        **{segments_root(name): partial(PartitionLogs, name) for name in topics},
        **{public_root(name): partial(PublicTable, name) for name in topics},
    }

    read = [require_same_on_overlays(objects, root, new) for root, new in folds.items()]

    assert sum(read) == sum("/_delta_log/" in path for path in objects)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_overlays_of_partition_logs_take_what_any_history_holds(moves: list) -> None:
    history: History = new_history()
    play(history, moves)
    log = history.topic.segments
    objects = {
        commit_path(log.root, version): found.data
        for version in range(log.table.next_version)
        if (found := log.context.store.get(commit_path(log.root, version))) is not None
    }

    assert require_same_on_overlays(objects, log.root, lambda: PartitionLogs("t")) == log.table.next_version


@pytest.mark.parametrize(
    "new", [TransactionLogFold, OffsetLogFold, lambda: PartitionLogs("t"), lambda: PublicTable("t")]
)
def test_overlay_shares_nothing_that_can_be_changed_with_its_fold(new: Callable[[], Fold]) -> None:
    fold = new()
    over = fold.overlay()

    shared = [
        name
        for name, value in attributes(fold).items()
        if isinstance(value, _CHANGEABLE) and value is attributes(over)[name]
    ]

    assert shared == []
    assert attributes(over).keys() == attributes(fold).keys()
