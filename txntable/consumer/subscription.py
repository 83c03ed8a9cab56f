"""What a consumer reads: its partitions, where it stands in each, and whether it chose them itself.

Owns Kafka's rule that partitions are either assigned or those of subscribed topics, never both; and that a
partition which came into being after the subscription is read from its beginning: nothing in it is older.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from txntable.consumer.fetch_position import AutoOffsetReset, FetchPosition
from txntable.errors import IllegalStateError
from txntable.format.records import TopicPartition


class Subscription:
    """The partitions of one consumer.

    Parameters
    ----------
    reset : AutoOffsetReset
        Where it begins in a partition.
    in_group : bool
        Whether it looks for a group's committed offset before.

    Attributes
    ----------
    positions : dict of TopicPartition to FetchPosition
        The partitions that it reads.
    topics : frozenset of str
        Those that it subscribed to; empty: partitions are assigned.
    changes : int
        How often anything but reading has changed `positions`: until it grows, the same partitions are wanted.
    """

    def __init__(self, reset: AutoOffsetReset, *, in_group: bool = False) -> None:
        self._reset = reset
        self._in_group = in_group
        self.positions: dict[TopicPartition, FetchPosition] = {}
        self.topics: frozenset[str] = frozenset()
        self.changes = 0

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
        begin = FetchPosition(None, self._reset, awaits_committed=self._in_group)
        self.positions = {partition: self.positions.get(partition, begin) for partition in partitions}
        self.topics = topics
        self.changes += 1

    def forget(self, topics: Iterable[str]) -> None:
        """Let no partition of these topics go on where it stands: they are other topics of the same names."""
        gone = frozenset(topics)
        self.positions = {p: position for p, position in self.positions.items() if p.topic not in gone}
        self.changes += 1

    def grow(self, topic: str, partitions: int) -> None:
        """Take note of how many partitions a subscribed topic has now."""
        if topic in self.topics:
            for number in range(partitions):
                partition = TopicPartition(topic, number)
                if partition not in self.positions:
                    self._put(partition, FetchPosition(None, AutoOffsetReset.EARLIEST))

    def gain(self, partitions: Mapping[TopicPartition, AutoOffsetReset]) -> None:
        """Read more partitions of a group, each from its committed offset, else from that end."""
        for partition, reset in partitions.items():
            paused = partition in self.positions and self.positions[partition].paused
            self._put(partition, FetchPosition(None, reset, paused, awaits_committed=self._in_group))

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions no more."""
        for partition in partitions:
            self.positions.pop(partition, None)
        self.changes += 1

    @property
    def wanted(self) -> list[TopicPartition]:
        """The partitions that are not paused, and of which it is known where they begin."""
        return [
            partition
            for partition, position in self.positions.items()
            if not (position.paused or position.awaits_committed)
        ]

    @property
    def unplaced(self) -> list[TopicPartition]:
        """The partitions of which only the reset says where they begin."""
        return [
            partition
            for partition, position in self.positions.items()
            if position.offset is None and not position.awaits_committed
        ]

    @property
    def awaiting(self) -> list[TopicPartition]:
        """The partitions whose committed offset is to be looked for."""
        return [partition for partition, position in self.positions.items() if position.awaits_committed]

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

    def begin(self, partition: TopicPartition, committed: int | None) -> None:
        """Stand at a committed offset; ``None``: there is none, and the reset says where.  Raises as :meth:`of`."""
        self._put(partition, replace(self.of(partition), offset=committed, awaits_committed=False))

    def stand_at(self, partition: TopicPartition, offset: int) -> None:
        """Take note of where reading begins: nothing is chosen anew by that.  Raises as :meth:`of`."""
        self.positions[partition] = replace(self.of(partition), offset=offset)

    def move(self, partition: TopicPartition, offset: int, *, sought: bool = False) -> None:
        """Stand at an offset; raises as :meth:`of`."""
        position = self.of(partition)
        self._put(partition, FetchPosition(offset, self._reset, position.paused, sought=sought))

    def advance(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Stand at these offsets, all at once: everything before them was read.  Raises as :meth:`of`."""
        moved = {each: FetchPosition(offset, self._reset, self.of(each).paused) for each, offset in offsets.items()}
        self.positions.update(moved)

    def move_to(self, partition: TopicPartition, reset: AutoOffsetReset, *, sought: bool = False) -> None:
        """Begin at an end of the partition, which is looked for when it is needed; raises as :meth:`of`."""
        position = self.of(partition)
        self._put(partition, FetchPosition(None, reset, position.paused, sought=sought))

    def pause(self, partition: TopicPartition, *, paused: bool) -> None:
        """Want nothing of a partition, or want it again; raises as :meth:`of`."""
        self._put(partition, replace(self.of(partition), paused=paused))

    def _put(self, partition: TopicPartition, position: FetchPosition) -> None:
        self.positions[partition] = position
        self.changes += 1


def _both(call: str) -> IllegalStateError:
    return IllegalStateError(
        "partitions are either assigned or subscribed to, not both; call unsubscribe first", call=call
    )
