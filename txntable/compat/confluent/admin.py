"""``confluent_kafka.admin`` over a warehouse: the names that there are of it, where programs import them from."""

from txntable.compat.confluent.admin_client import AdminClient, NewPartitions, NewTopic
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from txntable.compat.confluent.kafka_error import KafkaError, KafkaException

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
