"""What an entry is to the log in whose slot it stands: a part of it, void, or a sign of damage (PROTOCOL.md §4.6).

A process that worked in another past of a warehouse, before it was wiped or restored, may plant an entry above the log
as it is now, before it learns.  Such an entry counts nowhere, and does no harm.  Owns who counts, and what the next
commit says for readers that do not know of void entries.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from txntable.log.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove, Txn
from txntable.log.table_state import TableState


class EntryStatus(Enum):
    """What an entry is at the version above a state."""

    COUNTS = "it was written on the state"
    VOID = "it is of another incarnation of the log"
    STRAY = "it is of this incarnation and was not written on the state: damage, unless a fence stands above it"


def entry_status(info: CommitInfo, table: TableState) -> EntryStatus:
    """Return what the entry that begins with `info` is at the version above `table`."""
    if table.follows(info):
        return EntryStatus.COUNTS
    elsewhere = info.previous != table.commit_id and info.log != table.log
    return EntryStatus.VOID if elsewhere and table.version is not None else EntryStatus.STRAY


def is_fence_of(info: CommitInfo, table: TableState) -> bool:
    """Return whether an entry above makes all between it and the state void: it begins an incarnation on the state."""
    return info.begins_log and info.previous == table.commit_id


def repairs_of(table: TableState, actions: Iterable[Action], now_ms: int) -> tuple[Action, ...]:
    """Return what the next commit says first, for readers that have folded the void entries below it as well.

    Parameters
    ----------
    table : TableState
        With the void entries since its last commit that counts.
    actions : iterable of Action
        What the commit says itself: a name that is in it needs no repair.
    now_ms : int
        The commit's in-commit timestamp.
    """
    said = {_name(action) for action in actions}
    touched: dict[object, Action] = {}
    for commit in table.void:
        for action in (*commit.repairs, *commit.actions):
            touched.setdefault(_name(action), action)
    found = (_repair(action, table, now_ms) for name, action in touched.items() if name not in said)
    return tuple(action for action in found if action is not None)


def _name(action: Action) -> object:
    match action:
        case Add() | Remove():
            return ("file", action.path)
        case Txn():
            return ("number", action.app_id)
    return type(action)


def _repair(action: Action, table: TableState, now_ms: int) -> Action | None:
    match action:
        case Add() | Remove():
            live = table.files.get(action.path)
            if live is not None:
                return Add(
                    live.path, live.partition_values, live.size, live.modification_time, False, live.stats, live.tag
                )
            return Remove(action.path, now_ms, False, action.partition_values, action.size)
        case Txn():
            # One that the table does not have stays: no number is taken back in Delta, and nobody asks for it.
            known = table.numbers.get(action.app_id)
            return None if known is None else Txn(action.app_id, known)
        case Metadata():
            return table.metadata
        case Protocol():
            return table.protocol
