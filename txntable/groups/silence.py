"""What a group is once those of its members that have been silent for too long are gone (PROTOCOL.md §8.3).

Anyone may expel them, and whoever looks at a group without writing sees it as it is then: as Kafka's coordinator shows
a group whose members' sessions have expired.  Owns what is known of heartbeats at one time.  Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_request import ExpelRequest
from txntable.coordinator.group_shard import expel
from txntable.coordinator.store_time import AHEAD_MS
from txntable.groups.heartbeats import last_beats
from txntable.storage.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class GroupAsSeen:
    """A group without its silent members.

    Attributes
    ----------
    row : GroupRow
        As it will be when they are expelled.
    silent : tuple of GroupMember
        They, ascending by member id.
    heartbeat_age_ms : Mapping of str to int
        Member id -> time since a member was heard of.
    """

    row: GroupRow
    silent: tuple[GroupMember, ...]
    heartbeat_age_ms: Mapping[str, int]


def see(store: ObjectStore, row: GroupRow, clock: Callable[[], int]) -> GroupAsSeen:
    """Return what a group is for whoever looks at it now.

    Parameters
    ----------
    store : ObjectStore
        Has the heartbeats; one HEAD for each member.
    row : GroupRow
        The group, as O knows it.
    clock : callable
        Returns the store's time, ms since 1970.

    Raises
    ------
    StoreUnavailableError
        Try again.
    """
    if not row.members:
        return GroupAsSeen(row, (), {})
    now_ms = clock()
    beats = beats_until(store, row.group, row.members, now_ms, clock)
    transition = expel(row, ExpelRequest(beats, now_ms, row.position + 1))
    signs = {name: max(member.joined_ms, beats.get(name, 0)) for name, member in row.members.items()}
    return GroupAsSeen(
        transition.group or row,
        tuple(row.members[name] for name in sorted(transition.answer)),
        {name: max(0, now_ms - at) for name, at in signs.items()},
    )


def beats_until(
    store: ObjectStore, group: str, member_ids: Iterable[str], now_ms: int, clock: Callable[[], int]
) -> dict[str, int]:
    """Return when members wrote their last heartbeats; those written since `now_ms` are of then.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    group : str
        Their group.
    member_ids : iterable of str
        Whose; one HEAD each.
    now_ms : int
        The store's time, ms since 1970, taken before.
    clock : callable
        Returns the store's time: what is far ahead of it when the heartbeats were looked at shows no life, and stays.

    Raises
    ------
    StoreUnavailableError
        Try again.
    """
    found = last_beats(store, group, sorted(member_ids))
    latest_ms = clock() + AHEAD_MS
    return {name: min(at, now_ms) if at <= latest_ms else at for name, at in found.items()}
