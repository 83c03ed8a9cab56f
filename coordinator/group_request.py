"""What members, admins and the coordinator job ask of a consumer group, and what they get (PROTOCOL.md §8.2).

Values only.  Every request that may write carries `position`: the slot of the offset log that is decided on
(the version read, plus one).  When the slot is lost, the whole request is made again on the new rows with the new
position: nothing of an earlier try is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.assignors import DEFAULT_ASSIGNORS, Assignor
from txntable.coordinator.errors import InvalidRequestError, InvalidSessionTimeoutError
from txntable.coordinator.group import GroupRow, GroupTopic
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.row_json import check_name

MIN_SESSION_TIMEOUT_MS = 6_000
MAX_SESSION_TIMEOUT_MS = 30 * 60 * 1_000
DEFAULT_MAX_SIZE = 1_000

AnswerT_co = TypeVar("AnswerT_co", covariant=True)
TopicsFound = Mapping[str, GroupTopic | None]
"""Topics by name as the caller finds them now; ``None``: there is no such topic.  What is missing was not looked at."""


@dataclass(frozen=True, slots=True)
class OffsetLogTransition(Generic[AnswerT_co]):
    """What one commit of the offset log writes, and what to answer once that is durable.

    Attributes
    ----------
    answer : AnswerT_co
        For the caller, after the write; when nothing is written, it holds at the version that was read.
    group : GroupRow, optional
        The group's row to write at its position; when DEAD, the key to remove.
    offsets : tuple of OffsetRow
        To write at their position.
    removed : tuple of OffsetRow
        Live rows to remove.
    """

    answer: AnswerT_co
    group: GroupRow | None = None
    offsets: tuple[OffsetRow, ...] = ()
    removed: tuple[OffsetRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """What was read of a partition that is another's by now.

    Attributes
    ----------
    reader : str
        The member id under which it was read.
    end : int
        The offset behind it.
    at : int
        When it was handed out, in the order of the consumer's process.
    """

    reader: str
    end: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class Rewind:
    """That a consumer went back in each partition that it was assigned, to what is committed, or before.

    Attributes
    ----------
    began, end : int
        The first and the last of it, in the order of the consumer's process.
    """

    began: int
    end: int


class GroupReader(Protocol):
    """Who has read what is committed with group metadata, as it is now: not as of when the metadata was asked for."""

    def has_joined_since(self) -> bool:
        """Return whether it became a member of the group after the metadata was asked for."""
        ...

    def losses(self) -> Mapping[NamedPartition, Loss]:
        """Return what it has read from, and lost since, without its offsets being committed."""
        ...

    def losses_before_a_rewind(self) -> Mapping[NamedPartition, Loss]:
        """Return what it had lost likewise when it went back in all that it was assigned: none of :meth:`losses`."""
        ...

    def rewinds(self) -> Collection[Rewind]:
        """Return when it went back in all that it was assigned; empty where the order of its process says nothing."""
        ...

    def committed(self, offsets: Mapping[NamedPartition, int]) -> None:
        """Take note that a transaction has committed these offsets of it."""
        ...

    def refused(self) -> None:
        """Take note that something was refused for what it has lost."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """Who commits offsets, as of when the range was *read*: never made anew for the commit.

    Attributes
    ----------
    group : str
        The group.
    member_id : str
        Of the consumer.
    generation : int
        That it knew.
    instance_id : str, optional
        Of a static member.
    ownership : Mapping of NamedPartition to int, optional
        The ownership epoch of each partition that it owned.  ``None``: not known (metadata from elsewhere); then a
        partition that it has owned since that generation or longer counts.
    auto_commits : bool
        Whether the consumer commits what it has polled by itself, and so also what a transaction aborts.
    topic_ids : Mapping of NamedPartition to str
        Of the topic that was read by that name: offsets are of that one, whatever has the name by now.
    reader : GroupReader, optional
        The consumer itself; ``None``: metadata from elsewhere.
    """

    group: str
    member_id: str
    generation: int
    instance_id: str | None = None
    ownership: Mapping[NamedPartition, int] | None = None
    auto_commits: bool = False
    topic_ids: Mapping[NamedPartition, str] = field(default_factory=dict, compare=False, repr=False)
    reader: GroupReader | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What a member has and is to do.

    Attributes
    ----------
    group, member_id : str
        Whose it is.
    generation : int
        Of the group.
    state : GroupState
        Of the group.
    assignor : Assignor
        That the group uses.
    partitions : Mapping of NamedPartition to int
        What it owns and keeps, with the ownership epochs: to be read.
    to_release : Mapping of NamedPartition to int
        What it owns and is to give up: finish, commit, then release.
    awaited : frozenset of NamedPartition
        What it will own as soon as the others have released it.
    instance_id : str, optional
        Of a static member.
    """

    group: str
    member_id: str
    generation: int
    state: GroupState
    assignor: Assignor
    partitions: Mapping[NamedPartition, int]
    to_release: Mapping[NamedPartition, int]
    awaited: frozenset[NamedPartition]
    instance_id: str | None = None

    @property
    def metadata(self) -> GroupMetadata:
        """What commits of ranges that are read *now* carry later."""
        ownership = {**self.partitions, **self.to_release}
        return GroupMetadata(self.group, self.member_id, self.generation, self.instance_id, ownership)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A member joins, comes back, or changes what it subscribes to.

    Attributes
    ----------
    group, member_id : str
        The member id is made by the member, new for each first join.
    topics : frozenset of str
        What it subscribes to: at least one.
    topics_found : Mapping of str to GroupTopic or None
        What there is of `topics`, all of them; others of the group may be among them.
    now_ms : int
        The store's time, milliseconds since 1970.
    position : int
        The slot decided on.
    session_timeout_ms : int
        Kafka's ``session.timeout.ms``.
    assignors : tuple of Assignor
        Kafka's ``partition.assignment.strategy``, the best first.
    instance_id : str, optional
        Kafka's ``group.instance.id``.
    generation : int, optional
        The last that the member knew; ``None``: it is new.
    client_id, host : str
        For people.
    max_size : int
        Kafka's ``group.max.size``.

    Raises
    ------
    InvalidRequestError
        A name is no valid one, no topic is named, or one of them was not looked at.
    InvalidSessionTimeoutError
        The session timeout is out of bounds: configure another.
    """

    group: str
    member_id: str
    topics: frozenset[str]
    topics_found: TopicsFound
    now_ms: int
    position: int
    session_timeout_ms: int = 45_000
    assignors: tuple[Assignor, ...] = DEFAULT_ASSIGNORS
    instance_id: str | None = None
    generation: int | None = None
    client_id: str = ""
    host: str = ""
    max_size: int = DEFAULT_MAX_SIZE

    def __post_init__(self) -> None:
        check_name(self.group, "a group")
        check_name(self.member_id, "a member id")
        if self.instance_id is not None:
            check_name(self.instance_id, "a group instance id")
        if not self.topics or not self.assignors or not self.topics <= self.topics_found.keys():
            raise InvalidRequestError(
                "a member subscribes to at least one topic, looks at each of them, and supports an assignor",
                topics=sorted(self.topics),
                looked_at=sorted(self.topics_found),
            )
        if not MIN_SESSION_TIMEOUT_MS <= self.session_timeout_ms <= MAX_SESSION_TIMEOUT_MS:
            raise InvalidSessionTimeoutError(
                "the session timeout is out of bounds: set another",
                session_timeout_ms=self.session_timeout_ms,
                smallest_ms=MIN_SESSION_TIMEOUT_MS,
                largest_ms=MAX_SESSION_TIMEOUT_MS,
            )


@dataclass(frozen=True, slots=True)
class MemberRequest:
    """A member looks at its assignment, releases partitions, or leaves.

    Attributes
    ----------
    member_id : str
        Who asks.
    position : int
        The slot decided on.
    instance_id : str, optional
        Of a static member.
    generation : int, optional
        The last that it knew.
    partitions : collection of NamedPartition
        To release; others than it is to give up are passed over.
    topics_found : Mapping of str to GroupTopic or None
        What is known of the group's topics; may be empty.
    """

    member_id: str
    position: int
    instance_id: str | None = None
    generation: int | None = None
    partitions: Collection[NamedPartition] = ()
    topics_found: TopicsFound = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpelRequest:
    """Someone looks for members whose sessions have expired.

    Attributes
    ----------
    heartbeats : Mapping of str to int
        Member id -> the store's time of its heartbeat object, ms since 1970; who has none is left out.
    now_ms : int
        The store's time, ms since 1970; taken *before* the heartbeats were looked at.
    position : int
        The slot decided on.
    topics_found : Mapping of str to GroupTopic or None
        What is known of the group's topics; may be empty.
    """

    heartbeats: Mapping[str, int]
    now_ms: int
    position: int
    topics_found: TopicsFound = field(default_factory=dict)
