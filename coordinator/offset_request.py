"""What consumers, transactions and admins ask of a group's offsets (PROTOCOL.md §8.1).

Values only; `position` is the slot of the offset log that is decided on, and the *request* that Kafka's order of
offsets goes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.errors import InvalidRequestError
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.row_json import check_name

MAX_METADATA_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RangeStart:
    """Where the group stood when a range was read.

    Attributes
    ----------
    offset : int, optional
        The committed offset; ``None``: there was none.
    """

    offset: int | None


@dataclass(frozen=True, slots=True)
class NewOffset:
    """An offset to commit.

    Attributes
    ----------
    offset : int
        The next record to read, from 0; nothing else is checked of it, as in Kafka.
    topic_id : str
        Of the topic that was read.
    metadata : str
        The application's own text; may be empty.
    read_from : RangeStart, optional
        The commit counts only if the group still stands there.  ``None``: wherever it stands.

    Raises
    ------
    InvalidRequestError
        The offset is negative.
    """

    offset: int
    topic_id: str
    metadata: str = ""
    read_from: RangeStart | None = None

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise InvalidRequestError("an offset is not negative; commit another", offset=self.offset)


@dataclass(frozen=True, slots=True)
class OffsetTransaction:
    """The transaction that offsets are part of; T is asked about it before (``verify_offsets``).

    Attributes
    ----------
    transactional_id : str
        Whose row in the transaction log decides.
    producer_id, epoch : int
        Which transaction.
    """

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Offsets of a group are committed: at once, or with a transaction.

    Attributes
    ----------
    group : str
        The group.
    offsets : Mapping of NamedPartition to NewOffset
        What to commit.
    position : int
        The slot decided on.
    member : GroupMetadata, optional
        Frozen when the ranges were read; ``None``: no member of the group.
    transaction : OffsetTransaction, optional
        ``None``: a plain commit.
    max_metadata_bytes : int
        Kafka's ``offset.metadata.max.bytes``.

    Raises
    ------
    InvalidRequestError
        The group is no valid name, or the metadata is another group's.
    """

    group: str
    offsets: Mapping[NamedPartition, NewOffset]
    position: int
    member: GroupMetadata | None = None
    transaction: OffsetTransaction | None = None
    max_metadata_bytes: int = MAX_METADATA_BYTES

    def __post_init__(self) -> None:
        check_name(self.group, "a group")
        if self.member is not None and self.member.group != self.group:
            raise InvalidRequestError(
                "the group metadata is of another group", group=self.group, metadata=self.member.group
            )
