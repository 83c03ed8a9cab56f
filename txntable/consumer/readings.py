"""What a consumer has handed out and not committed yet: the offsets of a transaction, and who owned them when.

Owns the rule that group metadata is frozen *when something is read*: of each partition the first reading since the
last commit counts, and one that was lost meanwhile stays here until the consumer goes back, or reads on after it was
refused.  What a transaction aborts is here again: who tries once more with the same records sends their offsets, too.
What was lost when the consumer went back in everything else is set aside: whether it is given up its producer knows,
who knows when a transaction held something.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from txntable.coordinator.group_request import GroupMetadata, Loss
from txntable.coordinator.offset_request import RangeStart
from txntable.format.records import TopicPartition
from txntable.runtime.process_order import next_in_order


@dataclass(frozen=True, slots=True)
class Reading:
    """What was handed out of one partition.

    Attributes
    ----------
    topic_id : str
        Of the topic that was read.
    start, end : int
        From this offset, before that one.
    owner : GroupMetadata or None
        Of the consumer when the first of it was read; ``None``: it was no member.
    read_from : RangeStart or None
        Where the group stood, of a bounded range; ``None``: it was polled.
    at : int
        When the last of it was handed out, in the order of the process.
    """

    topic_id: str
    start: int
    end: int
    owner: GroupMetadata | None = None
    read_from: RangeStart | None = None
    at: int = field(default=0, compare=False)

    def epoch(self, partition: TopicPartition) -> int | None:
        """Return the ownership epoch under which it was read."""
        return None if self.owner is None or self.owner.ownership is None else self.owner.ownership.get(partition)


class Readings:
    """The readings of one consumer.

    Parameters
    ----------
    now : callable
        Returns the number of what happens now, in the order of the process.

    Attributes
    ----------
    by_partition : dict of TopicPartition to Reading
        What is not committed, nor in a transaction.
    aside : dict of TopicPartition to Reading
        What was lost when the consumer went back in everything else; the newest of each partition: who has given that
        up has given up what was before it.
    """

    def __init__(self, now: Callable[[], int] = next_in_order) -> None:
        self._now = now
        self.by_partition: dict[TopicPartition, Reading] = {}
        self.aside: dict[TopicPartition, Reading] = {}
        # In a transaction that is not decided.
        self._sent: dict[TopicPartition, Reading] = {}
        # Lost, and refused for it.
        self._refused: set[TopicPartition] = set()
        self._refused_aside: set[TopicPartition] = set()

    @property
    def ranges(self) -> dict[TopicPartition, Reading]:
        """The bounded ranges among them."""
        return {each: reading for each, reading in self.by_partition.items() if reading.read_from is not None}

    def refuse(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that something was refused for what was lost of these: it is, until the consumer reads on."""
        self._refused.update(partitions)

    def refuse_aside(self) -> None:
        """Take note that a transaction was refused for what is set aside: likewise."""
        self._refused_aside.update(self.aside)

    def read_on(self) -> None:
        """Take note that the consumer reads on, and give up what was refused: who has it now reads it again."""
        self.drop(self._refused)
        for partition in self._refused_aside:
            self.aside.pop(partition, None)
        self._refused.clear()
        self._refused_aside.clear()

    def set_aside(self, assigned: Collection[TopicPartition], before: int) -> None:
        """Take note that the consumer has gone back in all that is assigned, after what was handed out before."""
        for partition in self.by_partition.keys() - assigned:
            reading = self.by_partition[partition]
            if reading.owner is not None and reading.at < before:
                # There first, and then not here: a producer may ask in a thread of its own.
                self.aside[partition] = reading
                del self.by_partition[partition]
                if partition in self._refused:
                    self._refused_aside.add(partition)

    def polled(self, partition: TopicPartition, reading: Reading) -> None:
        """Take note of records that a poll returned: what was handed out before goes on."""
        if not self.went_on(partition, reading.end):
            self.by_partition[partition] = replace(reading, at=self._now())

    def went_on(self, partition: TopicPartition, end: int) -> bool:
        """Take note of what a poll returned after other records that are not committed; return whether there are."""
        old = self.by_partition.get(partition)
        if old is None:
            return False
        self.by_partition[partition] = replace(old, end=end, at=self._now())
        return True

    def took(self, partition: TopicPartition, reading: Reading) -> None:
        """Take note of a bounded range, in place of what was read before."""
        self.by_partition[partition] = replace(reading, at=self._now())

    def drop_all(self) -> None:
        """Forget all readings: the consumer has given up everything."""
        self.drop(self.by_partition.keys() | self._sent.keys())
        self.aside.clear()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget readings: they are committed, or given up."""
        for partition in list(partitions):
            self.by_partition.pop(partition, None)
            self._sent.pop(partition, None)

    def sent(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that a transaction has these."""
        for partition in partitions:
            reading = self.by_partition.pop(partition, None)
            if reading is not None:
                self._sent[partition] = _joined(self._sent.get(partition, reading), reading)

    def decided(self, partitions: Iterable[TopicPartition], *, committed: bool) -> None:
        """Take note how the transaction ended that had these: what it aborted is here again, unless dropped since."""
        for partition in partitions:
            reading = self._sent.pop(partition, None)
            if reading is not None and not committed:
                self.by_partition[partition] = _joined(reading, self.by_partition.get(partition, reading))

    def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that these were given up, also where the group leaves them to the consumer after all.

        It reads them from what is committed then: what was handed out before cannot be committed beside that.
        """
        given_up = set(partitions)
        for readings in (self.by_partition, self._sent):
            for partition in readings.keys() & given_up:
                reading = readings[partition]
                if reading.owner is not None:
                    ownership = {each: at for each, at in (reading.owner.ownership or {}).items() if each != partition}
                    readings[partition] = replace(reading, owner=replace(reading.owner, ownership=ownership))

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forget what these committed offsets cover."""
        self.drop(
            each
            for each, offset in offsets.items()
            if each in self.by_partition and self.by_partition[each].end <= offset
        )

    def lost(self, current: GroupMetadata | None) -> list[TopicPartition]:
        """Return the partitions that are not owned any more as they were when they were read."""
        return [*self._lost(current)]

    def _lost(self, current: GroupMetadata | None) -> dict[TopicPartition, Reading]:
        # Of a copy: a producer asks in a thread of its own, while the consumer polls on.
        return {
            partition: reading
            for partition, reading in dict(self.by_partition).items()
            if reading.owner is not None
            and (
                current is None
                or current.member_id != reading.owner.member_id
                # Given up meanwhile: read under no ownership, which is as lost as under another one.
                or reading.epoch(partition) is None
                or (current.ownership or {}).get(partition) != reading.epoch(partition)
            )
        }

    def losses(self, current: GroupMetadata | None) -> dict[tuple[str, int], Loss]:
        """Return what was read of the partitions that are lost."""
        return _as_losses(self._lost(current))

    def losses_aside(self) -> dict[tuple[str, int], Loss]:
        """Return what was set aside."""
        return _as_losses(dict(self.aside))

    def metadata(
        self, current: GroupMetadata | None, partitions: Iterable[TopicPartition] | None = None
    ) -> GroupMetadata | None:
        """Return who commits now, with what was frozen when these partitions were read.

        Parameters
        ----------
        current : GroupMetadata, optional
            Of the consumer now; ``None``: it is no member, and speaks as the one that it was when it read.
        partitions : iterable of TopicPartition, optional
            Whose readings count; default: all.
        """
        found = dict(self.by_partition)
        readings = found if partitions is None else {each: found[each] for each in partitions if each in found}
        if current is None:
            # Read as a member that is none any more, as far as it knows: whether it owns them is for the log to say.
            known = (*readings.values(), *dict(self.aside).values())
            current = next((each.owner for each in known if each.owner is not None), None)
        if current is None:
            return None
        ownership, former = dict(current.ownership or {}), None
        for partition, reading in readings.items():
            ownership.pop(partition, None)
            if (epoch := reading.epoch(partition)) is not None:
                ownership[partition] = epoch
            if reading.owner is not None and reading.owner.member_id != current.member_id:
                former = reading.owner.member_id
        if former is None:
            return replace(current, ownership=ownership)
        # Read as a member that is no more: it is that one which has to be refused, not who has its instance id now.
        return replace(current, member_id=former, instance_id=None, ownership=ownership)


def _as_losses(readings: Mapping[TopicPartition, Reading]) -> dict[tuple[str, int], Loss]:
    return {
        (each.topic, each.partition): Loss(reading.owner.member_id, reading.end, reading.at)
        for each, reading in readings.items()
        if reading.owner is not None
    }


def _joined(earlier: Reading, later: Reading) -> Reading:
    """Return what two readings of a partition are, one after the other; a bounded range takes the place of others."""
    if later.read_from is not None or later.topic_id != earlier.topic_id:
        return later
    return replace(earlier, end=later.end, at=later.at)
