"""Topics and their partitions in a list, as confluent-kafka's clients return them from ``list_topics``.

Values of the clients, and how they are asked for; a warehouse has no brokers, so none leads a partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from txntable.admin.admin import Admin
from txntable.compat.confluent.arguments import of_type, seconds_or_none
from txntable.compat.confluent.kafka_error import KafkaError, kafka_error, kafka_errors
from txntable.errors import UnknownTopicOrPartitionError


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition in a list.

    Attributes
    ----------
    id : int
        Its number.
    leader : int
        Always -1: there are no brokers.
    replicas, isrs : list of int
        Always empty.
    error : None
        Always.
    """

    id: int
    leader: int = -1
    replicas: list[int] = field(default_factory=list)
    isrs: list[int] = field(default_factory=list)
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic in a list.

    Attributes
    ----------
    topic : str
        Its name.
    partitions : Mapping of int to PartitionMetadata
        By their numbers.
    error : KafkaError or None
        Why nothing is known of it: there is no such topic.
    """

    topic: str
    partitions: Mapping[int, PartitionMetadata]
    error: KafkaError | None = None

    def __str__(self) -> str:
        return self.topic


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The topics of a warehouse.

    Attributes
    ----------
    topics : Mapping of str to TopicMetadata
        By name.
    brokers : Mapping
        Always empty.
    """

    topics: Mapping[str, TopicMetadata]
    brokers: Mapping[int, object] = field(default_factory=dict)


def listed_topics(admin: Admin, topic: str | None, timeout: float | None) -> ClusterMetadata:
    """Return all topics, or one; one that there is not has an error, as in confluent-kafka.  The timeout is not heeded.

    Raises
    ------
    KafkaException
        The store does not answer.
    TypeError
        The topic is no text, or the timeout no number.
    """
    seconds_or_none(timeout)
    if topic is not None:
        of_type(str, topic, "topic")
    with kafka_errors():
        try:
            described = admin.describe_topics(None if topic is None else [topic])
        except UnknownTopicOrPartitionError as error:
            return ClusterMetadata({str(topic): TopicMetadata(str(topic), {}, kafka_error(error))})
    found = [one.settings for one in described]
    return ClusterMetadata(
        {
            one.name: TopicMetadata(one.name, {number: PartitionMetadata(number) for number in range(one.partitions)})
            for one in found
        }
    )
