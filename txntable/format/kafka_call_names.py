"""Calls of Kafka's clients, and arguments of them, that our clients have not: what is called instead.

Owns the words for who types what they know of the Java client, kafka-python or confluent-kafka.  Names are in Python's
spelling.  Must not know of warehouses.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.runtime.other_names import BY_PLACE, MISSING, answering

NO_BROKERS = "there are no brokers, and no users but the store's"
ASSIGNED = "leave it out: what the group gives a member is assigned already"
PROCESSED = "with enable_auto_commit=False, commit(offsets=…) what has been processed, or send_offsets_to_transaction"
PURGED = "abort_transaction drops what was sent; without a transaction flush writes it"
_RETRIED = "leave it out: for how long a request is made again says the store's option retry_timeout"
_RAISED = "leave it out: what goes wrong is raised, or in the answer"
_NO_BROKER = "leave it out: there are no brokers"
_DURABLE = "leave it out: a commit is durable when it returns"
_PRODUCERS = "it is a producer's: call it of one that has a transactional id"
_BY_EXCEPTION = (
    "raise an exception in the block, which aborts; without a block, call the producer's begin_transaction, and"
    " commit_transaction or abort_transaction"
)
_BY_THE_END = "leave it out: the end of the block commits"
_ALONE = ("bootstrap_connected", "set_sasl_credentials", "cluster_id", "client_instance_id")

TRANSACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("abort", "rollback"), "call abort_transaction"),
    "commit": "call commit_transaction",
    "begin": "call begin_transaction",
}
"""Short name of a producer's call -> what to do; also of confluent-kafka's."""

PRODUCER: Mapping[str, str] = {
    **TRANSACTIONS,
    **dict.fromkeys(_ALONE, NO_BROKERS),
    "produce": "call send(topic, value=, key=), or take txntable.compat.confluent's Producer",
    "produce_batch": "call send with rows=, or for each",
    "poll": "leave it out: flush, commit and a send's on_delivery= answer",
    "purge": PURGED,
    "list_topics": "call Warehouse.admin().list_topics()",
    "partitions_for_topic": "call partitions_for",
    "send_offsets": "it is of the transaction: call send_offsets_to_transaction, or txn.send_offsets(consumer)",
}
"""Attribute of a producer -> what to do."""

TRANSACTION: Mapping[str, str] = {
    **dict.fromkeys(("abort", "rollback", "abort_transaction"), _BY_EXCEPTION),
    **dict.fromkeys(("commit", "commit_transaction"), _BY_THE_END),
    "produce": "call send(topic, value=, key=)",
    "send_offsets_to_transaction": "call send_offsets(consumer), or send_offsets_to_transaction of the producer",
}
"""Attribute of an open transaction, as a block holds it -> what to do."""

OF_PRODUCERS: Mapping[str, str] = dict.fromkeys(
    (
        *("init_transactions", "begin_transaction", "send_offsets_to_transaction", "commit_transaction"),
        *("abort_transaction", "transaction", "abort"),
    ),
    _PRODUCERS,
)
"""What consumers and warehouses are asked for and a producer does -> what to do."""

CONSUMER: Mapping[str, str] = {
    **dict.fromkeys((*_ALONE, "bootstrap"), NO_BROKERS),
    "consume": "call poll(timeout_ms=, max_records=), or take txntable.compat.confluent's Consumer",
    "commit_sync": "call commit",
    "store_offsets": PROCESSED,
    **dict.fromkeys(("incremental_assign", "incremental_unassign"), ASSIGNED),
    "unassign": "call unsubscribe",
    **dict.fromkeys(("memberid", "member_id"), "call group_metadata(), which has member_id"),
    "list_topics": "call topics(), or Warehouse.admin().list_topics()",
    "partitions_for": "call partitions_for_topic",
    **OF_PRODUCERS,
    "enforce_rebalance": "close this consumer and create a new one: a group rebalances when a member comes or goes",
}
"""Attribute of a consumer -> what to do."""

_GROUPS = {
    "list_groups": "list_consumer_groups",
    "describe_groups": "describe_consumer_groups",
    "delete_groups": "delete_consumer_groups",
    "list_group_offsets": "list_consumer_group_offsets",
    "alter_group_offsets": "alter_consumer_group_offsets",
    "delete_group_offsets": "delete_consumer_group_offsets",
    "remove_group_members": "remove_members_from_consumer_group",
    "reset_group_offsets": "alter_consumer_group_offsets, or `txntable groups reset-offsets`",
    "incremental_alter_configs": "alter_configs, which changes what is named and leaves the rest",
    "reset_configs": "alter_configs with None as the value",
    "list_partition_offsets": "list_offsets",
    "describe_topic_partitions": "describe_topics",
    "create_topics": "create_topic for each, with partitions=",
    "delete_topics": "delete_topic for each",
    "list_config_resources": "describe_configs(list_topics())",
    **dict.fromkeys(("terminate_transaction", "force_terminate_transaction", "abort"), "abort_transaction"),
}

ADMIN: Mapping[str, str] = {
    **{name: f"call {here}" for name, here in _GROUPS.items()},
    **dict.fromkeys(
        (
            *(*_ALONE, "describe_cluster", "create_acls", "describe_acls", "delete_acls", "api_versions"),
            *("describe_user_scram_credentials", "alter_user_scram_credentials", "elect_leaders"),
            *("perform_leader_election", "describe_log_dirs", "alter_replica_log_dirs", "describe_features"),
            *("alter_partition_reassignments", "list_partition_reassignments", "update_features"),
            *("describe_metadata_quorum", "get_broker_version_data", "describe_replica_log_dirs"),
            *("create_delegation_token", "describe_client_quotas", "alter_client_quotas"),
        ),
        NO_BROKERS,
    ),
    "wait_for_topics": "leave it out: a topic is there when create_topic returns",
    "poll": "leave it out: an answer is there when the call returns",
    "close": "leave it out: an admin holds nothing open",
}
"""Attribute of an admin -> what to do."""

_TIMES = {"timeout_ms": _RETRIED, "timeout": _RETRIED}

PRODUCER_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "send": {
        "timestamp": "it is timestamp_ms here",
        "callback": "it is on_delivery here",
        BY_PLACE: "all but topic and value are given by name: key=, headers=, partition=, timestamp_ms=",
    },
    "close": {**dict.fromkeys(("timeout", "timeout_ms"), "call flush(timeout) before it"), "null_logger": _NO_BROKER},
    "send_offsets_to_transaction": {
        **dict.fromkeys(("group_metadata", "consumer_group_id", "group_id"), "it is group here"),
        "timeout": _RETRIED,
    },
    "metrics": {"raw": "leave it out: all metrics are numbers"},
}
"""Method of a producer -> argument -> what to do."""

CONSUMER_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("beginning_offsets", "end_offsets", "offsets_for_times"), _TIMES),
    "get_watermark_offsets": {**_TIMES, "cached": "leave it out: the ends are looked up"},
    "poll": {
        "timeout": "say the unit: timeout_ms",
        "update_offsets": "leave it out: seek goes back",
    },
    "commit": {
        **_TIMES,
        "asynchronous": _DURABLE,
        "message": "give offsets={TopicPartition(topic, partition): offset + 1}",
    },
    "committed": {
        "timeout": "say the unit: timeout_ms",
        "metadata": "leave it out: the answer has offset and metadata",
        "partition": "give the partition by its place",
    },
    "position": {**_TIMES, "partition": "give the partition by its place"},
    "subscribe": {"callback": "it is listener here", BY_PLACE: "all but topics are given by name: pattern=, listener="},
    "seek": {BY_PLACE: "give seek(TopicPartition(topic, partition), offset)"},
    "close": {
        **_TIMES,
        "autocommit": "leave it out: closing commits where the consumer's enable_auto_commit is true",
    },
    "metrics": {"raw": "leave it out: all metrics are numbers"},
}
"""Method of a consumer -> argument -> what to do."""

_CONFIG = "it is config here"
_SETTINGS_OF_ONE = "give the topic's name, and a mapping of its settings"

ADMIN_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "create_topic": {
        "num_partitions": "it is partitions here",
        "replication_factor": "leave it out: the object store keeps the copies",
        **dict.fromkeys(("topic_configs", "configs", "topic_config"), _CONFIG),
        BY_PLACE: "all but the name are given by name: partitions=, schema=, key=, config=",
    },
    "alter_configs": {
        **dict.fromkeys(
            (MISSING, BY_PLACE), f'{_SETTINGS_OF_ONE}: alter_configs("orders", {{"retention.ms": "1000"}})'
        ),
        **dict.fromkeys(("config_resources", "resources"), _SETTINGS_OF_ONE),
        **dict.fromkeys(("raise_on_unknown", "raise_errors"), _RAISED),
        "incremental": "leave it out: what is not named stays as it is",
    },
    "describe_configs": {
        **dict.fromkeys(("config_resources", "resources"), "it is topics here"),
        **dict.fromkeys(
            ("include_synonyms", "config_filter"), "leave it out: each entry says whether it is the default"
        ),
    },
    "create_partitions": {
        **dict.fromkeys(("topic_partitions", "new_partitions"), "it is new_totals here"),
        "raise_errors": _RAISED,
        BY_PLACE: 'give a mapping of topics to their new totals: create_partitions({"orders": 8})',
    },
    "delete_records": {
        "records_to_delete": "it is before here",
        "partition_leader_id": _NO_BROKER,
        BY_PLACE: 'give a mapping of partitions to offsets: delete_records({TopicPartition("orders", 0): 5})',
    },
    "describe_producers": {"broker_id": _NO_BROKER},
    "find_hanging_transactions": {"broker_ids": _NO_BROKER, "broker_id": _NO_BROKER},
    "describe_topics": {"topics": "it is names here"},
    "describe_transactions": {"transactional_ids": "it is ids here"},
    "fence_producers": {"transactional_ids": "it is ids here"},
    "describe_consumer_groups": {"group_ids": "it is ids here"},
    "delete_consumer_groups": {"group_ids": "it is ids here"},
    "list_consumer_groups": {
        **dict.fromkeys(("states_filter", "state_filter"), "it is states here"),
        "broker_ids": _NO_BROKER,
    },
    "list_transactions": {
        "broker_ids": _NO_BROKER,
        **dict.fromkeys(("producer_id_filters", "producer_id_filter"), "it is producer_ids here"),
        **dict.fromkeys(("state_filters", "state_filter"), "it is states here"),
        **dict.fromkeys(("duration_filter_ms", "duration_filter"), "it is duration_ms here"),
        "transactional_id_pattern": "it is pattern here",
    },
}
"""Method of an admin -> argument -> what to do."""

MODULE: Mapping[str, str] = {
    "KafkaProducer": "call Warehouse.producer()",
    **dict.fromkeys(("KafkaConsumer", "DeserializingConsumer"), "call Warehouse.consumer(), then subscribe"),
    "SerializingProducer": "call Warehouse.producer(); bytes, or columns, are what is sent",
    **dict.fromkeys(("Admin", "AdminClient", "KafkaAdminClient"), "call Warehouse.admin()"),
    **dict.fromkeys(("NewTopic", "NewPartitions"), "Warehouse.admin() takes names and numbers"),
    "ConsumerGroupMetadata": "Consumer.group_metadata() returns it",
    **dict.fromkeys(
        ("abort", "abort_transaction"),
        "call abort_transaction of a producer, or of Warehouse.admin() for a transaction that somebody left open",
    ),
}
"""Name in a module of Kafka's clients -> what to do."""

WAREHOUSE_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "__init__": dict.fromkeys(
        (MISSING, "url", "storage_options", "durability"), "call Warehouse.open(url), or Warehouse.create(url)"
    ),
    "create": {"config": "retentions and limits are settings=WarehouseSettings(…)"},
}
"""Method of a warehouse -> argument -> what to do."""

_DELIVERED = "offset and partition are there after flush or commit_transaction"
_CALLED_BACK = "give send(on_delivery=)"

RECORD_METADATA: Mapping[str, str] = {
    **dict.fromkeys(("get", "result", "value", "succeeded", "done", "is_done"), _DELIVERED),
    **dict.fromkeys(("failed", "exception"), "error says why, after flush or commit_transaction"),
    **dict.fromkeys(("add_callback", "add_errback", "add_both", "chain", "add_done_callback"), _CALLED_BACK),
    "topic_partition": "topic and partition are there after flush or commit_transaction",
}
"""Attribute of what send returns, which is no future -> what to do."""

_NOT_KEPT = "it is not kept with a record"

RECORD: Mapping[str, str] = {
    "timestamp_type": f"{_NOT_KEPT}: it is the topic's message.timestamp.type",
    **dict.fromkeys(("checksum", "leader_epoch", "delivery_count"), _NOT_KEPT),
    **dict.fromkeys(("serialized_key_size", "serialized_value_size", "serialized_header_size"), "take len"),
    "topic_partition": "take TopicPartition(record.topic, record.partition)",
    "error": "what goes wrong is raised by poll",
}
"""Attribute of a record that was read -> what to do."""

OFFSET_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "__init__": dict.fromkeys(("leader_epoch", BY_PLACE), "leave out the leader's epoch: there are no leaders"),
}
"""The same of offsets and their metadata."""

# Decorators of the clients, and of what they return.
answering_producer = answering(PRODUCER, PRODUCER_ARGUMENTS)
answering_consumer = answering(CONSUMER, CONSUMER_ARGUMENTS)
answering_transaction = answering(TRANSACTION)
answering_admin = answering(ADMIN, ADMIN_ARGUMENTS)
answering_record_metadata = answering(RECORD_METADATA)
answering_record = answering(RECORD)
answering_offset = answering({"leader_epoch": "there are no leaders"}, OFFSET_ARGUMENTS)
