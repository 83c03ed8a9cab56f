"""A consumer whose calls are written down.

Its assignment has a number in the operation log, which rises whenever its positions may have moved otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tests.checker.operations import CommitOffsets, FetchOffsets, Join, Level, Place, Poll, Rewind
from tests.checker.operations import Seen as SeenRecord
from tests.simulation.journal import Witness
from tests.simulation.recorded import RecordedProducer, seen, value_of
from txntable.consumer.consumer import Consumer
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.coordinator.group_request import GroupMetadata
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata


class RecordedConsumer(ConsumerRebalanceListener):
    """A consumer, and what it was given.

    Parameters
    ----------
    consumer : Consumer
        The product's.
    witness : Witness
        Writes it down.
    """

    def __init__(self, consumer: Consumer, witness: Witness) -> None:
        self.consumer = consumer
        self.group = consumer.config.group_id
        self._witness = witness
        self._name = witness.name(self.group or "follower")
        committed = consumer.config.level is IsolationLevel.READ_COMMITTED
        self._level = Level.COMMITTED if committed else Level.UNCOMMITTED
        self._assignment = 0
        self._rebalanced = False
        self._next: dict[TopicPartition, int] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe, and listen to what changes hands."""
        self.consumer.subscribe(topics, listener=self)

    def assign(self, places: Sequence[Place]) -> None:
        """Take partitions without a group's say."""
        self._assignment += 1
        self._next.clear()
        self.consumer.assign([TopicPartition(*place) for place in places])

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Take note of what is given up."""
        self._moved(partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Take note of what came."""
        self._moved(partitions)

    def _moved(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment += 1
        self._rebalanced = True
        for partition in partitions:
            self._next.pop(partition, None)

    # -- reading ----------------------------------------------------------------------------

    def poll(self, most: int | None = None, txn: str | None = None) -> list[tuple[SeenRecord, str | None]]:
        """Poll, and return the records with their keys."""
        found: list[tuple[SeenRecord, str | None]] = []
        try:
            with self._witness.calling(Poll(self._name, self._assignment, txn=txn, level=self._level)) as asked:
                for partition, records in self.consumer.poll(max_records=most).items():
                    for record in records:
                        value = value_of(record.row, record.timestamp_ms)
                        key = record.row["key"].decode() if "key" in record.row else record.row["account"]
                        found.append((SeenRecord((partition.topic, partition.partition), record.offset, value), key))
                    self._next[partition] = records[-1].offset + 1
                asked.saw(assignment=self._assignment, records=tuple(one for one, _ in found))
        finally:
            self._join()
        self._leave_to_the_consumer()
        return found

    def _leave_to_the_consumer(self) -> None:
        """Say that what was handed out may be committed from now on: at any poll, release or close."""
        if self.consumer.config.enable_auto_commit and self.group is not None and self._next:
            with self._witness.calling(self._offsets({tuple(each): at for each, at in self._next.items()})) as asked:
                asked.leave_open()

    def read(self, most: int | None, txn: str | None) -> list[tuple[SeenRecord, str | None]]:
        """Read a range from what is committed, and return the records with their keys."""
        self._assignment += 1
        try:
            with self._witness.calling(Poll(self._name, self._assignment, txn=txn, level=self._level)) as asked:
                rows = self.consumer.read_arrow(max_offsets_per_partition=most).read_all().to_pylist()
                topic = next(iter(self.consumer.assignment())).topic if rows else ""
                records = tuple(seen({topic: rows}))
                asked.saw(assignment=self._assignment, records=records)
        finally:
            self._assignment += 1
            self._join()
        return [(one, row["key"].decode()) for one, row in zip(records, rows, strict=True)]

    def _join(self) -> None:
        if self._rebalanced and self.group is not None:
            self._rebalanced = False
            known = self.consumer.group_metadata()
            owned = frozenset((each.topic, each.partition) for each in self.consumer.assignment())
            with self._witness.calling(Join(self.group, known.member_id, known.generation, owned)):
                pass

    # -- offsets ----------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit what was polled, plainly."""
        if self._next:
            offsets = {partition: OffsetAndMetadata(offset) for partition, offset in self._next.items()}
            with self._witness.calling(self._offsets({tuple(each): at for each, at in self._next.items()})) as asked:
                asked.stubbornly(lambda: self.consumer.commit(offsets))

    def send_offsets(self, producer: RecordedProducer) -> None:
        """Let the producer's transaction commit everything that was handed out."""
        wanted = {place: new.offset for place, new in self.consumer.offsets_to_send().offsets.items()}
        if wanted:
            producer.has_work = True
            with self._witness.calling(self._offsets(wanted, producer.txn)) as asked:
                asked.stubbornly(lambda: producer.producer.send_offsets_of(self.consumer))

    def send_polled(self, producer: RecordedProducer, polled: Sequence[SeenRecord]) -> None:
        """Let the transaction commit offsets that the user counted itself: Kafka's way."""
        wanted = {one.place: one.offset + 1 for one in polled}
        offsets: Any = {TopicPartition(*place): OffsetAndMetadata(at, "copied") for place, at in wanted.items()}
        if not offsets:
            return
        producer.has_work = True
        with self._witness.calling(self._offsets(wanted, producer.txn)) as asked:
            asked.stubbornly(
                lambda: producer.producer.send_offsets_to_transaction(offsets, self.consumer.group_metadata())
            )

    def send_assigned(self, producer: RecordedProducer, asked_before: GroupMetadata | None = None) -> None:
        """Let the transaction commit the positions of what is assigned now: Kafka's idiom."""
        positions = {each: self.consumer.position(each) for each in self.consumer.assignment()}
        producer.has_work = True
        with self._witness.calling(
            self._offsets({tuple(each): at for each, at in positions.items()}, producer.txn)
        ) as asked:
            asked.stubbornly(
                lambda: producer.producer.send_offsets_to_transaction(
                    positions, asked_before or self.consumer.group_metadata()
                )
            )

    def _offsets(self, wanted: dict[Any, int], txn: str | None = None) -> CommitOffsets:
        known = self.consumer.group_metadata()
        member = known.member_id or None
        return CommitOffsets(self.group or "", wanted, txn, member, known.generation if member else None)

    def rewind(self) -> None:
        """Go back to what the group has committed."""
        self._assignment += 1
        self._next.clear()
        with self._witness.calling(Rewind(self._name, self.group or "")) as asked:
            asked.stubbornly(self.consumer.seek_to_committed)

    def seek_back(self, places: Sequence[Place]) -> None:
        """Go back to what the group has committed by asking and seeking, one by one: Kafka's idiom."""
        committed = self.fetch(places)
        self._assignment += 1
        for place in places:
            self._next.pop(TopicPartition(*place), None)
            self.consumer.seek(TopicPartition(*place), committed.get(place, 0))

    def fetch(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask for the group's offsets."""
        offsets: dict[Place, int] = {}
        with self._witness.calling(FetchOffsets(self.group or "", asked=frozenset(places))) as asked:
            for partition, found in self.consumer.committed([TopicPartition(*place) for place in places]).items():
                if found is not None:
                    offsets[partition.topic, partition.partition] = found.offset
            asked.saw(offsets=offsets)
        return offsets
