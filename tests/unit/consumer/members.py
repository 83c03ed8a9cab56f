"""What tests of groups share: consumers in processes of their own, and a listener that writes down what it is told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tests.simulation.site import Site
from txntable.consumer.consumer import Consumer
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

GROUP = "g"
BEAT_MS, SESSION_MS = 3_000, 45_000
RAW = [TopicPartition("raw", 0), TopicPartition("raw", 1)]


def member(place: Site | Warehouse, *, subscribed: bool = True, **settings: object) -> Consumer:
    """A consumer of the group, in a process of its own where a site is given; it beats in its own calls only."""
    warehouse = place.open() if isinstance(place, Site) else place
    made = {"auto_offset_reset": "earliest", "background_heartbeat": False, "prefetch": False, "group_id": GROUP}
    consumer = warehouse.consumer(**{**made, "enable_auto_commit": False, **settings})  # type: ignore[arg-type]
    if subscribed:
        consumer.subscribe(["raw"])
    return consumer


def settle(site: Site, *consumers: Consumer) -> None:
    """Let each take part in the group, without reading, until everyone has what it is to have."""
    for _ in range(4):
        site.advance_ms(BEAT_MS)
        for consumer in consumers:
            consumer._session.tend()


def numbers(consumer: Consumer) -> list[int]:
    """The partitions that a consumer reads."""
    return sorted(partition.partition for partition in consumer.assignment())


def copier(place: Site | Warehouse, transactional_id: str = "copy") -> Producer:
    warehouse = place.open() if isinstance(place, Site) else place
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    return producer


def offset_of(consumer: Consumer, partition: TopicPartition) -> int | None:
    """What the group has committed."""
    found = consumer.committed([partition])[partition]
    return None if found is None else found.offset


@dataclass
class Told(ConsumerRebalanceListener):
    """What a listener was told, in order."""

    calls: list[tuple[str, list[int]]] = field(default_factory=list)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", sorted(each.partition for each in partitions)))

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", sorted(each.partition for each in partitions)))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", sorted(each.partition for each in partitions)))
