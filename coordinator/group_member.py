"""A member of a consumer group: who it is, what it has, and what it is to have (PROTOCOL.md §8.2).

Owns the JSON of a member.  A partition that a member *owns* is its alone until it releases it, leaves or is
expelled; its *ownership epoch* is the generation since which it owns it without a break.  Must not know of other
members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.enrolment import decode_partitions, encode_partitions
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import DamagedDataError, UnsupportedFormatError
from txntable.coordinator.row_json import Fields, decode_object

_WHAT = "group member"
_REQUIRED: Fields = {
    "member_id": str,
    "client_id": str,
    "host": str,
    "topics": list,
    "assignors": list,
    "session_timeout_ms": int,
    "joined_ms": int,
    "joined_generation": int,
}
_OPTIONAL: Fields = {"instance_id": str, "owned": dict, "target": dict}
_EPOCH = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member.

    Attributes
    ----------
    member_id : str
        That it made for itself; never used twice.
    topics : tuple of str
        What it subscribes to, ascending; a pattern is resolved before.
    assignors : tuple of Assignor
        What it supports, the best first.
    session_timeout_ms : int
        Without a heartbeat for longer than this, it may be expelled.
    joined_ms : int
        The store's time of its last join: counts as a heartbeat.
    joined_generation : int
        The generation that its last join led to.
    instance_id : str, optional
        Of a static member.
    client_id, host : str
        For people; may be empty.
    owned : Mapping of NamedPartition to int
        What it has, with the ownership epochs.
    target : frozenset of NamedPartition
        What it is to have.
    """

    member_id: str
    topics: tuple[str, ...]
    assignors: tuple[Assignor, ...]
    session_timeout_ms: int
    joined_ms: int
    joined_generation: int
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    owned: Mapping[NamedPartition, int] = field(default_factory=dict)
    target: frozenset[NamedPartition] = frozenset()

    @property
    def to_release(self) -> frozenset[NamedPartition]:
        """What it has and is not to have."""
        return frozenset(self.owned) - self.target

    @property
    def awaited(self) -> frozenset[NamedPartition]:
        """What it is to have and another still has."""
        return self.target - frozenset(self.owned)


def encode_member(member: GroupMember) -> dict[str, object]:
    """Return the JSON form of `member`."""
    epochs = sorted(set(member.owned.values()))
    owned: dict[str, dict[str, str]] = {}
    for epoch in epochs:
        since = [partition for partition, own in member.owned.items() if own == epoch]
        for topic, ranges in _encode_ranges(since).items():
            owned.setdefault(topic, {})[str(epoch)] = ranges
    fields = {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "topics": list(member.topics),
        "assignors": [assignor.value for assignor in member.assignors],
        "session_timeout_ms": member.session_timeout_ms,
        "joined_ms": member.joined_ms,
        "joined_generation": member.joined_generation,
        "owned": dict(sorted(owned.items())) or None,
        "target": _encode_ranges(member.target) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_member(document: object) -> GroupMember:
    """Return the member that `document` stores.

    Raises
    ------
    DamagedDataError
        It contradicts the format.
    UnsupportedFormatError
        It is of a format that this version does not know.
    """
    fields = decode_object(document, _WHAT, _REQUIRED, _OPTIONAL)
    return GroupMember(
        topics=tuple(_texts(fields.pop("topics"))),
        assignors=tuple(decode_assignor(name) for name in _texts(fields.pop("assignors"))),
        owned=_decode_owned(fields.pop("owned") or {}),
        target=frozenset(_decode_ranges(fields.pop("target") or {})),
        **fields,
    )


def decode_assignor(name: str) -> Assignor:
    """Return the assignor that a stored name names.

    Raises
    ------
    UnsupportedFormatError
        This version does not know it: use a newer one.
    """
    try:
        return Assignor(name)
    except ValueError as error:
        raise UnsupportedFormatError(
            "a group uses an assignor that this version does not know: use a newer version", assignor=shown(name)
        ) from error


def _encode_ranges(partitions: Iterable[NamedPartition]) -> dict[str, str]:
    numbers: dict[str, set[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, set()).add(partition)
    return {topic: encode_partitions(each) for topic, each in sorted(numbers.items())}


def _decode_ranges(document: Mapping[str, Any]) -> list[NamedPartition]:
    return [
        (topic, partition)
        for topic, ranges in zip(document, _texts(document.values()), strict=True)
        for partition in sorted(decode_partitions(ranges))
    ]


def _decode_owned(document: Mapping[str, Any]) -> dict[NamedPartition, int]:
    owned: dict[NamedPartition, int] = {}
    for topic, epochs in document.items():
        if not isinstance(epochs, dict) or not all(_EPOCH.fullmatch(epoch) for epoch in epochs):
            raise DamagedDataError("a stored member has misspelt ownership epochs", row=_WHAT, topic=topic)
        for epoch, ranges in epochs.items():
            owned |= dict.fromkeys(_decode_ranges({topic: ranges}), int(epoch))
    return owned


def _texts(values: Iterable[object]) -> list[str]:
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(list(values)):
        raise DamagedDataError("a stored member has something that is no text", row=_WHAT)
    return texts
