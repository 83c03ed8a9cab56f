"""What a transaction has enrolled in: topics by their id, with their partitions (PROTOCOL.md §6.1).

Owns the union and the range coding (``0-99,101``) under which a row stores partitions; a set
of partitions has exactly one spelling.  Must not know of rows, states or epochs.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import DamagedDataError, InvalidRequestError
from txntable.coordinator.row_json import decode_object
from txntable.coordinator.topic_name import is_topic_id, is_topic_name

LARGEST_PARTITION_COUNT = 100_000
"""Of a topic."""
_RANGES = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")


@dataclass(frozen=True, slots=True)
class EnrolledTopic:
    """The partitions of one topic that a transaction may write to.

    Attributes
    ----------
    name : str
        The topic's name, for people and paths; the topic id is what counts.
    partitions : frozenset of int
        From 0; never empty.

    Raises
    ------
    InvalidRequestError
        No name, no partition, or a negative one.
    """

    name: str
    partitions: frozenset[int]

    def __post_init__(self) -> None:
        if not self.name or not self.partitions or min(self.partitions) < 0:
            raise InvalidRequestError(
                "an enrolled topic has a name and at least one partition, none negative",
                name=shown(self.name),
                partitions=sorted(self.partitions),
            )


Topics = Mapping[str, EnrolledTopic]
"""Enrolled topics by topic id (32 hex digits)."""


def enrolled_union(topics: Topics, more: Topics) -> dict[str, EnrolledTopic]:
    """Return `topics` with the topics and partitions of `more` added."""
    union = dict(topics)
    for topic_id, topic in more.items():
        known = topics[topic_id].partitions if topic_id in topics else frozenset()
        union[topic_id] = EnrolledTopic(topic.name, known | topic.partitions)
    return union


def missing_partitions(topics: Topics, topic_id: str, partitions: Collection[int]) -> list[int]:
    """Return those of `partitions` that are not enrolled, ascending."""
    known = topics[topic_id].partitions if topic_id in topics else frozenset()
    return sorted(set(partitions) - known)


def encode_partitions(partitions: Collection[int]) -> str:
    """Return the ranges of `partitions`, ascending: ``{0, 1, 2, 5}`` is ``0-2,5``."""
    ranges: list[tuple[int, int]] = []
    for partition in sorted(partitions):
        if ranges and ranges[-1][1] == partition - 1:
            ranges[-1] = (ranges[-1][0], partition)
        else:
            ranges.append((partition, partition))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def decode_partitions(text: str) -> frozenset[int]:
    """Return the partitions that `text` spells.

    Raises
    ------
    DamagedDataError
        It is not what :func:`encode_partitions` writes.
    """
    partitions: set[int] = set()
    lowest = 0
    for part in text.split(",") if _RANGES.fullmatch(text) else ():
        first, _, last = part.partition("-")
        following = int(last or first) + 1
        # Ascending, or it is refused below: a text that names one range over and over must cost no more than its bytes.
        partitions.update(range(max(int(first), lowest), following))
        lowest = max(lowest, following)
    if not partitions or encode_partitions(partitions) != text:
        raise DamagedDataError("the partitions of a stored row are misspelt", partitions=reprlib.repr(text))
    return frozenset(partitions)


def encode_topics(topics: Topics) -> dict[str, dict[str, str]]:
    """Return the JSON form of `topics`, in the order of their ids."""
    return {
        topic_id: {"name": topic.name, "partitions": encode_partitions(topic.partitions)}
        for topic_id, topic in sorted(topics.items())
    }


def decode_topics(document: Mapping[str, object], what: str) -> dict[str, EnrolledTopic]:
    """Return the topics of a stored row; `what` is what messages call the row.

    Raises
    ------
    DamagedDataError, UnsupportedFormatError
        See :func:`txntable.coordinator.row_json.decode_object` and :func:`decode_partitions`.
    """
    topics: dict[str, EnrolledTopic] = {}
    for topic_id, topic in document.items():
        fields = decode_object(topic, what, {"name": str, "partitions": str}, {})
        if not is_topic_name(fields["name"]) or not is_topic_id(topic_id):
            raise DamagedDataError(
                "a stored row holds a topic that no call accepts", row=what, topic_id=reprlib.repr(topic_id)
            )
        topics[topic_id] = EnrolledTopic(fields["name"], decode_partitions(fields["partitions"]))
    return topics
