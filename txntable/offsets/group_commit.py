"""Offsets that a group commits: as users write them, and as the group coordinator's state machine takes them.

The rules are those of PROTOCOL.md §8.1.

Owns what is refused before anything is asked of the log: an offset or a text that no group could hold.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.offset_request import MAX_METADATA_BYTES, CommitRequest, NewOffset, OffsetTransaction
from txntable.coordinator.row_json import check_name, check_number, check_text
from txntable.errors import (
    IllegalStateError,
    InvalidRequestError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
)
from txntable.format.kafka_call_names import answering_offset
from txntable.format.records import TopicPartition, checked_partitions
from txntable.format.topic import TopicSettings


@answering_offset
@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, as Kafka's clients have it.

    Attributes
    ----------
    offset : int
        The next record to read, from 0.
    metadata : str
        The application's own text, at most 4096 bytes of UTF-8.
    """

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """Offsets that one group commits together.

    Attributes
    ----------
    group : str
        The group.
    offsets : Mapping of TopicPartition to NewOffset
        What to commit.
    member : GroupMetadata or None
        Of the consumer, frozen when it read; ``None``: no member of the group.

    Raises
    ------
    OffsetMetadataTooLargeError
        A text is too long: shorten it.
    """

    group: str
    offsets: Mapping[tuple[str, int], NewOffset]
    member: GroupMetadata | None = None

    def __post_init__(self) -> None:
        for partition, new in self.offsets.items():
            if (size := len(new.metadata.encode())) > MAX_METADATA_BYTES:
                raise OffsetMetadataTooLargeError(
                    "the metadata beside an offset is too long; shorten it",
                    group=self.group,
                    partition=TopicPartition(*partition),
                    bytes=size,
                    max_bytes=MAX_METADATA_BYTES,
                )

    def request(self, position: int, transaction: OffsetTransaction | None = None) -> CommitRequest:
        """Return what is asked of the state machine at a slot of the offset log."""
        return CommitRequest(self.group, self.offsets, position, self.member, transaction)


def check_manual_commit(group: str, *, auto_commits: bool) -> None:
    """Refuse to put into a transaction what a consumer commits by itself, too: an abort would lose what it polled.

    Raises
    ------
    IllegalStateError
        Create the consumer with ``enable_auto_commit=False``.
    """
    if auto_commits:
        raise IllegalStateError(
            "this consumer auto-commits what a transaction may abort; create it with enable_auto_commit=False",
            group=group,
        )


def committing_member(group: GroupMetadata | str) -> tuple[str, GroupMetadata | None]:
    """Return the group whose offsets go into a transaction, and as what member; a name alone is none.

    Who says no member id is none either: as Kafka's, a consumer that assigns its partitions itself is not checked.

    Raises
    ------
    InvalidRequestError
        It is no name of a group.
    IllegalStateError
        See :func:`check_manual_commit`; or the metadata are from before the consumer was a member, and would pass
        unchecked: ask for them again.
    """
    name, member = (group.group, group) if isinstance(group, GroupMetadata) else (group, None)
    check_name(name, "a group")
    if member is None:
        return name, None
    check_manual_commit(name, auto_commits=member.auto_commits)
    if member.member_id:
        return name, member
    if member.reader is not None and member.reader.has_joined_since():
        raise IllegalStateError(
            "the group metadata are from before the consumer joined its group; ask for them again, after the last poll",
            group=name,
        )
    return name, None


def topics_of(offsets: object) -> set[str]:
    """Return the topics of offsets that a user wrote.

    Raises
    ------
    InvalidRequestError
        They are no mapping of partitions.
    """
    if not isinstance(offsets, Mapping):
        raise InvalidRequestError("offsets must be a mapping of partitions to offsets", offsets=shown(offsets))
    return {partition.topic for partition in checked_partitions(list(offsets))}


def new_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    topics: Mapping[str, TopicSettings],
    read: Mapping[tuple[str, int], str] | None = None,
) -> dict[tuple[str, int], NewOffset]:
    """Return offsets as the state machine takes them.

    Parameters
    ----------
    offsets : Mapping of TopicPartition to OffsetAndMetadata or int
        As the user wrote them.
    topics : Mapping of str to TopicSettings
        Their topics, by name.
    read : Mapping of (str, int) to str, optional
        The ids of the topics that were read, where that is known: what was read of one whose name another has by now
        is left out.

    Raises
    ------
    InvalidRequestError
        An offset is no integer from 0 to 2^63 - 1, or its text no valid Unicode.
    UnknownTopicOrPartitionError
        There is no such partition.
    """
    found: dict[tuple[str, int], NewOffset] = {}
    for partition, given in offsets.items():
        one = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        check_number(one.offset, "an offset to commit")
        check_text(one.metadata, "the metadata beside an offset")
        topic = topics[partition[0]]
        if (read or {}).get((partition[0], partition[1]), topic.topic_id) != topic.topic_id:
            # Nothing of it is the new one's, nor takes away what is committed there.
            continue
        if type(partition[1]) is not int or not 0 <= partition[1] < topic.partitions:
            raise UnknownTopicOrPartitionError(
                "the topic has no such partition", topic=topic.name, partition=shown(partition[1])
            )
        found[topic.name, partition[1]] = NewOffset(one.offset, topic.topic_id, one.metadata)
    return found
