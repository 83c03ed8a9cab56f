"""What tests of consumers share: short words for producing to ``raw``, and for what a consumer returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.storage.object_store import ObjectStore
from txntable.warehouse.warehouse import Warehouse, open_on

FIRST, SECOND = TopicPartition("raw", 0), TopicPartition("raw", 1)

Polled = Mapping[TopicPartition, Sequence[ConsumerRecord]]


def send(producer: Producer, *values: str, partition: int = 0, topic: str = "raw") -> None:
    """Append values as one segment."""
    for value in values:
        producer.send(topic, value=value.encode(), partition=partition)
    producer.flush()


def commit(producer: Producer, *values: str, partition: int = 0) -> None:
    producer.begin_transaction()
    send(producer, *values, partition=partition)
    producer.commit_transaction()


def abort(producer: Producer, *values: str, partition: int = 0) -> None:
    producer.begin_transaction()
    send(producer, *values, partition=partition)
    producer.abort_transaction()


def consumer_at(warehouse: Warehouse, *partitions: TopicPartition, **settings: object) -> Consumer:
    """A consumer that begins at the log start."""
    consumer = warehouse.consumer(**{"auto_offset_reset": "earliest", **settings})  # type: ignore[arg-type]
    consumer.assign(partitions or [FIRST])
    return consumer


def values(polled: Polled) -> list[str]:
    return [(record.value or b"").decode() for records in polled.values() for record in records]


def offsets(polled: Polled, partition: TopicPartition = FIRST) -> list[int]:
    return [record.offset for record in polled.get(partition, ())]


def poll_all(consumer: Consumer) -> list[str]:
    """The values of everything that polls return until one returns nothing."""
    return [(record.value or b"").decode() for record in poll_records(consumer)]


def poll_records(consumer: Consumer) -> list[ConsumerRecord]:
    """Everything that polls return until one returns nothing."""
    found: list[ConsumerRecord] = []
    while polled := consumer.poll():
        found += [record for records in polled.values() for record in records]
    return found


def read_only(site: Site) -> tuple[Warehouse, SteppingStore]:
    """Open the warehouse with credentials that may not write, and count the requests."""
    counted = SteppingStore(MemoryStore(site.objects))
    store: ObjectStore = ReadOnlyStore(counted)
    return open_on(store, site.environment()), counted


def paths(store: SteppingStore, since: int) -> list[str]:
    return [step.path for step in store.steps[since:]]
