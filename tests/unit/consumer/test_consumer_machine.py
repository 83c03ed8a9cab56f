"""Consumers on any history: transactions that commit, abort or stay open, plain appends, polls, seeks, pauses."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, SECOND, consumer_at
from tests.unit.producer.producing import started
from txntable.format.records import RecordMetadata, TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import open_on

PARTITIONS = (FIRST, SECOND)
partitions = st.sampled_from(PARTITIONS)
producers = st.sampled_from(["one", "two"])
numbers = st.integers(1, 3)


class ConsumerMachine(RuleBasedStateMachine):
    """A `read_committed` consumer returns the committed records below the last stable offset, once, in order."""

    @initialize(max_poll_records=st.integers(1, 4), batch_bytes=st.sampled_from([1, 1_000_000]), prefetch=st.booleans())
    def start(self, max_poll_records: int, batch_bytes: int, prefetch: bool) -> None:
        self.site = Site()
        warehouse = self.site.create()
        warehouse.admin().create_topic("raw", partitions=2)
        self.plain = warehouse.producer()
        self.producers = {name: started(self.site.open(), name) for name in ("one", "two")}
        self.open: dict[str, list[RecordMetadata]] = {}
        self.committed: dict[TopicPartition, set[int]] = {partition: set() for partition in PARTITIONS}
        self.consumer = consumer_at(
            open_on(MemoryStore(self.site.objects), self.site.environment()),
            *PARTITIONS,
            max_poll_records=max_poll_records,
            max_partition_fetch_bytes=batch_bytes,
            fetch_max_bytes=10_000,
            prefetch=prefetch,
        )
        self.observer = self.site.open().consumer()
        # The offset below which everything was returned, or passed over by a seek.
        self.cursor = dict.fromkeys(PARTITIONS, 0)
        self.positions = dict.fromkeys(PARTITIONS, 0)

    def teardown(self) -> None:
        if hasattr(self, "consumer"):
            self.consumer.close()

    # -- producing --------------------------------------------------------------------------

    @rule(partition=partitions, number=numbers)
    def append_plainly(self, partition: TopicPartition, number: int) -> None:
        self.take(self.send(self.plain, partition, number))

    @rule(name=producers, partition=partitions, number=numbers)
    def append_in_a_transaction(self, name: str, partition: TopicPartition, number: int) -> None:
        if name not in self.open:
            self.producers[name].begin_transaction()
            self.open[name] = []
        self.open[name] += self.send(self.producers[name], partition, number)

    @rule(name=producers, commit=st.booleans())
    def decide(self, name: str, commit: bool) -> None:
        sent = self.open.pop(name, None)
        if sent is not None and commit:
            self.producers[name].commit_transaction()
            self.take(sent)
        elif sent is not None:
            self.producers[name].abort_transaction()

    def send(self, producer: Producer, partition: TopicPartition, number: int) -> list[RecordMetadata]:
        sent = [producer.send("raw", value=b"v", partition=partition.partition) for _ in range(number)]
        producer.flush()
        return sent

    def take(self, sent: list[RecordMetadata]) -> None:
        for metadata in sent:
            self.committed[TopicPartition("raw", metadata.partition)].add(metadata.offset)

    # -- consuming --------------------------------------------------------------------------

    @rule(max_records=st.none() | st.integers(1, 5))
    def poll(self, max_records: int | None) -> None:
        polled = self.consumer.poll(max_records=max_records)

        assert sum(map(len, polled.values())) <= (max_records or self.consumer.config.max_poll_records)
        for partition, records in polled.items():
            offsets = [record.offset for record in records]
            assert offsets == self.expected(partition)[: len(offsets)]
            assert partition not in self.consumer.paused()
            self.cursor[partition] = offsets[-1] + 1
        if not polled:
            for partition in set(PARTITIONS) - self.consumer.paused():
                assert self.expected(partition) == []
                assert self.consumer.position(partition) >= self.stable(partition)

    @rule(partition=partitions, offset=st.integers(0, 12))
    def seek(self, partition: TopicPartition, offset: int) -> None:
        offset = min(offset, self.stable(partition))
        self.consumer.seek(partition, offset)
        self.cursor[partition] = self.positions[partition] = offset

    @rule(partition=partitions)
    def pause(self, partition: TopicPartition) -> None:
        self.consumer.pause(partition)

    @rule()
    def resume(self) -> None:
        self.consumer.resume(*PARTITIONS)

    @rule(handed_out=st.integers(0, 2))
    def iterate(self, handed_out: int) -> None:
        ready = sum(len(self.expected(partition)) for partition in set(PARTITIONS) - self.consumer.paused())
        for _ in range(min(ready, handed_out)):
            record = next(self.consumer)
            partition = TopicPartition(record.topic, record.partition)
            assert record.offset == self.expected(partition)[0]
            self.cursor[partition] = record.offset + 1

    @rule()
    def let_time_pass(self) -> None:
        self.site.advance_ms(500)

    @rule()
    def decide_all_and_read_to_the_end(self) -> None:
        for name in list(self.open):
            self.decide(name, True)
        self.consumer.resume(*PARTITIONS)
        while any(self.expected(partition) for partition in PARTITIONS):
            before = dict(self.cursor)
            self.poll(None)
            assert before != self.cursor
        self.poll(None)
        assert {p: self.consumer.position(p) for p in PARTITIONS} == self.consumer.end_offsets(PARTITIONS)

    # -- what is true -----------------------------------------------------------------------

    def stable(self, partition: TopicPartition) -> int:
        return self.observer.last_stable_offset(partition)

    def expected(self, partition: TopicPartition) -> list[int]:
        stable = self.stable(partition)
        return sorted(o for o in self.committed[partition] if self.cursor[partition] <= o < stable)

    @invariant()
    def positions_only_rise_but_for_a_seek(self) -> None:
        if not hasattr(self, "consumer"):
            return
        for partition in PARTITIONS:
            position = self.consumer.position(partition)
            assert position >= self.positions[partition]
            assert position >= self.cursor[partition]
            assert not any(self.cursor[partition] <= o < position for o in self.committed[partition])
            self.positions[partition] = position


ConsumerMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
TestConsumer = ConsumerMachine.TestCase
