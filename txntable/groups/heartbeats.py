"""Heartbeats of group members: empty objects whose age is the session's (PROTOCOL.md §8.3).

Owns the objects.  A heartbeat is no commit and decides nothing: who is too old is for the group coordinator's state
machine to say, on the group's row.  Nothing here lists a folder: the row names the members.
"""

from __future__ import annotations

from collections.abc import Iterable

from txntable.format.layout import heartbeat_path
from txntable.storage.object_store import ObjectStore


def beat(store: ObjectStore, group: str, member_id: str) -> None:
    """Write a member's heartbeat: the store's own time of it counts.

    Raises
    ------
    StoreUnavailableError
        Try again: nobody is expelled before the session timeout.
    """
    store.put(heartbeat_path(group, member_id), b"")


def last_beats(store: ObjectStore, group: str, member_ids: Iterable[str]) -> dict[str, int]:
    """Return when members wrote their last heartbeats.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    group : str
        Their group.
    member_ids : iterable of str
        Whose; one HEAD each.

    Returns
    -------
    dict of str to int
        Member id -> ms since 1970 by the store's clock; who has no heartbeat is left out.

    Raises
    ------
    StoreUnavailableError
        Try again.
    """
    found = {member_id: store.head(heartbeat_path(group, member_id)) for member_id in member_ids}
    return {member_id: meta.last_modified_ms for member_id, meta in found.items() if meta is not None}


def forget(store: ObjectStore, group: str, member_id: str) -> None:
    """Delete the heartbeat of a member that is gone; that there is none is no error.

    Raises
    ------
    StoreUnavailableError
        It may be left there: it means nothing.
    """
    store.delete([heartbeat_path(group, member_id)])
