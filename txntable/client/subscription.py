"""What a consumer reads: its partitions, where it stands in each, and whether it chose them itself.

Owns Kafka's rule that partitions are either assigned or those of subscribed topics, never both; and that a
partition which came into being after the subscription is read from its beginning: nothing in it is older.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from txntable.client.fetch_position import FetchPosition, OffsetReset
from txntable.client.records import TopicPartition
from txntable.errors import IllegalStateError, InvalidRequestError


class Subscription:
    """The partitions of one consumer.

    Parameters
    ----------
    reset : OffsetReset
        Where it begins in a partition.

    Attributes
    ----------
    positions : dict of TopicPartition to FetchPosition
        The partitions that it reads.
    topics : frozenset of str
        Those that it subscribed to; empty: partitions are assigned.
    """

    def __init__(self, reset: OffsetReset) -> None:
        self._reset = reset
        self.positions: dict[TopicPartition, FetchPosition] = {}
        self.topics: frozenset[str] = frozenset()

    # -- which partitions -------------------------------------------------------------------

    def check_assigns(self) -> None:
        """Refuse to assign partitions where topics are subscribed to.

        Raises
        ------
        IllegalStateError
            Unsubscribe first.
        """
        if self.topics:
            raise _both("assign")

    def check_subscribes(self) -> None:
        """Refuse to subscribe where partitions are assigned; raises as :meth:`check_assigns`."""
        if self.positions and not self.topics:
            raise _both("subscribe")

    def replace_by(self, partitions: Iterable[TopicPartition], topics: frozenset[str] = frozenset()) -> None:
        """Read these partitions; those that were read before go on where they stand.

        Parameters
        ----------
        partitions : iterable of TopicPartition
            All of them.
        topics : frozenset of str, optional
            The topics whose partitions they are, where they were subscribed to.
        """
        begin = FetchPosition(None, self._reset)
        self.positions = {partition: self.positions.get(partition, begin) for partition in partitions}
        self.topics = topics

    def forget(self, topics: Iterable[str]) -> None:
        """Let no partition of these topics go on where it stands: they are other topics of the same names."""
        gone = frozenset(topics)
        self.positions = {p: position for p, position in self.positions.items() if p.topic not in gone}

    def grow(self, topic: str, partitions: int) -> None:
        """Take note of how many partitions a subscribed topic has now."""
        if topic in self.topics:
            for number in range(partitions):
                partition = TopicPartition(topic, number)
                self.positions.setdefault(partition, FetchPosition(None, OffsetReset.EARLIEST))

    @property
    def wanted(self) -> list[TopicPartition]:
        """The partitions that are not paused."""
        return [partition for partition, position in self.positions.items() if not position.paused]

    # -- where it stands --------------------------------------------------------------------

    def of(self, partition: TopicPartition) -> FetchPosition:
        """Return where it stands in a partition.

        Raises
        ------
        IllegalStateError
            The partition is not assigned: assign it, or subscribe to its topic.
        """
        position = self.positions.get(partition)
        if position is None:
            raise IllegalStateError(
                "the partition is not assigned to this consumer; assign it, or subscribe to its topic",
                partition=partition,
            )
        return position

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Stand at an offset; raises as :meth:`of`."""
        self.positions[partition] = replace(self.of(partition), offset=offset, reset=self._reset)

    def move_to(self, partition: TopicPartition, reset: OffsetReset) -> None:
        """Begin at an end of the partition, which is looked for when it is needed; raises as :meth:`of`."""
        self.positions[partition] = replace(self.of(partition), offset=None, reset=reset)

    def pause(self, partition: TopicPartition, *, paused: bool) -> None:
        """Want nothing of a partition, or want it again; raises as :meth:`of`."""
        self.positions[partition] = replace(self.of(partition), paused=paused)


def checked_partitions(partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return partitions as such, each once.

    Raises
    ------
    InvalidRequestError
        They are no list of pairs of a topic and a number.
    """
    pairs = partitions if isinstance(partitions, Iterable) and not isinstance(partitions, str) else None
    found = [] if pairs is None else list(pairs)
    if pairs is None or not all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) and type(each[1]) is int
        for each in found
    ):
        raise InvalidRequestError("partitions are given as a list of TopicPartition", partitions=repr(partitions))
    return list(dict.fromkeys(TopicPartition(*each) for each in found))


def _both(call: str) -> IllegalStateError:
    return IllegalStateError(
        "partitions are either assigned or those of subscribed topics; call unsubscribe before the other", call=call
    )
