"""What tests of groups' admins share: members without a consumer, and offsets in every state."""

from __future__ import annotations

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.coordinator.group import GroupTopic
from txntable.coordinator.group_request import JoinRequest, MemberAssignment
from txntable.coordinator.group_shard import join
from txntable.format.records import TopicPartition
from txntable.groups.heartbeats import beat
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

IN, IN_1 = TopicPartition("in", 0), TopicPartition("in", 1)
SESSION_MS = 45_000


def site_with_topics() -> Site:
    site = Site()
    admin = site.create().admin()
    for name in ("in", "out"):
        admin.create_topic(name, partitions=2, schema=TWO_COLUMNS)
    return site


def joined(
    warehouse: Warehouse, member_id: str = "m", group: str = "g", instance_id: str | None = None, topic: str = "in"
) -> MemberAssignment:
    """A member that has just joined, and sent its first heartbeat."""
    settings = warehouse.topic_log(topic).settings()
    found = {topic: GroupTopic(settings.topic_id, settings.partitions)}
    now_ms = warehouse.context.clock.now_ms()
    beat(warehouse.store, group, member_id)
    return warehouse.offsets.request(
        "JOIN",
        group,
        lambda row, _, position: join(
            row,
            JoinRequest(
                group,
                member_id,
                frozenset(found),
                found,
                now_ms,
                position,
                SESSION_MS,
                instance_id=instance_id,
                client_id=f"client-{member_id}",
                host="here",
            ),
        ),
    )


def started(warehouse: Warehouse, transactional_id: str = "etl") -> Producer:
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    return producer


def sent(warehouse: Warehouse, offset: int, transactional_id: str = "etl", group: str = "g") -> Producer:
    """A producer whose open transaction has an offset of in-0."""
    producer = started(warehouse, transactional_id)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: offset}, group)
    return producer


def committed_offset(site: Site, partition: TopicPartition = IN, group: str = "g") -> int | None:
    found = site.open().admin().list_consumer_group_offsets(group, [partition])[partition]
    return None if found is None else found.offset
