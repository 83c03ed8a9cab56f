"""``confluent_kafka.admin`` over a warehouse: the names that there are of it, where programs import them from."""

from typing import TYPE_CHECKING

from txntable.compat.confluent.admin_client import AdminClient, NewPartitions, NewTopic
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from txntable.compat.confluent.elsewhere import MODULE
from txntable.compat.confluent.kafka_error import KafkaError, KafkaException
from txntable.runtime.other_names import told_of_module

__all__ = [
    "AdminClient",
    "ClusterMetadata",
    "KafkaError",
    "KafkaException",
    "NewPartitions",
    "NewTopic",
    "PartitionMetadata",
    "TopicMetadata",
]

if not TYPE_CHECKING:
    # To type checkers any name would be there.

    def __getattr__(name: str) -> object:
        raise told_of_module(__name__, name, MODULE)
