"""What the last living members of groups do, and what the copies must be then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tests.checker.operations import Poll
from tests.simulation.copying import COPIERS, IN, OUT, READERS, copies_of, member_of
from tests.simulation.journal import Journal
from tests.simulation.pipelines import STATE, counts_in
from tests.simulation.recorded import RecordedProducer, value_of
from tests.simulation.recorded_consumer import RecordedConsumer
from tests.simulation.turns import ManySite
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


def finish_copies(warehouse: Warehouse, site: ManySite, journal: Journal) -> None:
    """One member of each group takes over what all have left; then everything is there once, in order."""
    witness = journal.witness("finisher")
    producer = RecordedProducer(warehouse.producer("finisher", transaction_timeout_ms=60_000), warehouse, witness)
    producer.init()
    copier, reader = (
        RecordedConsumer(member_of(warehouse, group, enable_auto_commit=False), witness) for group in (COPIERS, READERS)
    )
    for consumer in (copier, reader):
        _take_over(site, warehouse, consumer)
    producer.begin()
    while polled := copier.poll(txn=producer.txn):
        producer.send(copies_of(polled, witness))
    copier.send_offsets(producer)
    producer.commit()
    while reader.poll():
        pass
    reader.commit()
    sources, copies = by_key(rows_of(warehouse, IN)), by_key(rows_of(warehouse, OUT))
    copied = {key: [value.partition(" of ")[2] for value in values] for key, values in copies.items()}
    wrong = {key for key in copied.keys() | sources.keys() if copied.get(key) != sources.get(key)}
    assert not wrong, f"copies are lost, doubled or out of order, of keys {sorted(wrong)}"
    everything = {value for values in sources.values() for value in values}
    assert everything <= given_to(journal, READERS), "a reader at least once has been given everything"
    _check_committed(warehouse)


def _take_over(site: ManySite, warehouse: Warehouse, consumer: RecordedConsumer) -> None:
    every = {TopicPartition(IN, p) for p in range(warehouse.topic_log(IN).settings().partitions)}
    consumer.subscribe([IN])
    for _ in range(20):
        consumer.poll(1)
        if consumer.consumer.assignment() == every:
            break
        site.advance_ms(16_000)
    assert consumer.consumer.assignment() == every, "what dead members had is free after their sessions"
    consumer.rewind()


def _check_committed(warehouse: Warehouse) -> None:
    """No group stands beyond the end: what it has not passed are markers."""
    warehouse.offsets.refresh()
    with warehouse.consumer() as consumer:
        every = [TopicPartition(IN, p) for p in range(warehouse.topic_log(IN).settings().partitions)]
        ends = consumer.end_offsets(every)
    for group in (COPIERS, READERS):
        rows = warehouse.offsets.offsets(group)
        committed = {TopicPartition(*each): row.committed for each, row in rows.items()}
        beyond = [each for each, one in committed.items() if one is None or one.offset > ends[each]]
        assert not beyond, f"{group} has committed an offset beyond the end, or none: {beyond}"


def check_state(warehouse: Warehouse, site: ManySite, journal: Journal) -> None:
    """What the pipeline counted by key is what it wrote, by key."""
    written = Counter(row["key"].decode() for row in rows_of(warehouse, OUT))
    assert counts_in(rows_of(warehouse, STATE)) == written, "the pipeline's counts are not of what it wrote"


def rows_of(warehouse: Warehouse, topic: str) -> list[dict[str, Any]]:
    """All committed records of a topic."""
    return warehouse.read_arrow(topic).read_all().to_pylist()


def by_key(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The values of each key, in the order of their offsets."""
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["_partition"], row["_offset"])):
        found[row["key"].decode()].append(value_of(row))
    return dict(found)


def given_to(journal: Journal, group: str) -> set[str]:
    """The values that members of a group have polled."""
    polls = [operation.call for operation in journal.operations() if isinstance(operation.call, Poll)]
    return {one.value for poll in polls if f"/{group}" in poll.consumer for one in poll.records}
