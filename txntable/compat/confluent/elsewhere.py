"""Names of confluent-kafka's that are not here, and what is called instead.

Owns the words of the errors about them.  Must not know of warehouses.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.format.kafka_call_names import ASSIGNED, NO_BROKERS, PROCESSED, PURGED

_ADMIN = "call Warehouse.admin(), which has it, or says what it is called there"
_BYTES = "give bytes, and take them from messages; or use a topic with columns by Warehouse.producer()"

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("describe_configs", "alter_configs", "incremental_alter_configs", "describe_topics", "delete_records"),
            *("list_offsets", "list_groups", "list_consumer_groups", "describe_consumer_groups"),
            *("delete_consumer_groups", "list_consumer_group_offsets", "alter_consumer_group_offsets"),
        ),
        _ADMIN,
    ),
    **dict.fromkeys(
        (
            *("describe_cluster", "elect_leaders", "create_acls", "describe_acls", "delete_acls", "cluster_id"),
            *("describe_user_scram_credentials", "alter_user_scram_credentials", "set_sasl_credentials"),
        ),
        NO_BROKERS,
    ),
    "store_offsets": PROCESSED,
    **dict.fromkeys(
        ("incremental_assign", "incremental_unassign"),
        ASSIGNED,
    ),
    "purge": PURGED,
    "produce_batch": "call produce for each, or Warehouse.producer().send with rows=",
}
"""Method -> what to do."""

MODULE: Mapping[str, str] = {
    **dict.fromkeys(("version", "libversion"), "importlib.metadata.version('txntable') says it"),
    **dict.fromkeys(
        (
            *("SerializingProducer", "DeserializingConsumer", "DeserializingShareConsumer", "serialization"),
            *("serializing_producer", "deserializing_consumer", "schema_registry", "avro"),
        ),
        _BYTES,
    ),
    "ShareConsumer": "take a Consumer: groups share partitions, not records",
    "TIMESTAMP_LOG_APPEND_TIME": "leave it out: a message's timestamp is always TIMESTAMP_CREATE_TIME",
    **dict.fromkeys(
        (
            *("ConfigResource", "ConfigEntry", "ResourceType", "AlterConfigOpType", "OffsetSpec", "TopicCollection"),
            *("ConsumerGroupTopicPartitions", "ConsumerGroupState", "ConsumerGroupType", "IsolationLevel"),
        ),
        "Warehouse.admin() takes names and numbers in its place",
    ),
    **dict.fromkeys(("AclBinding", "AclBindingFilter", "ElectionType", "Node", "ThrottleEvent", "Uuid"), NO_BROKERS),
}
"""Name in the modules -> what to do."""
