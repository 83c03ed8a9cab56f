"""confluent-kafka's AdminClient over :class:`txntable.admin.admin.Admin`: topics and partitions.

Owns that each future is done when it is returned: with its outcome, or with a KafkaException.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from txntable.compat.confluent.arguments import int_of, list_of, of_type
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, listed_topics
from txntable.compat.confluent.connection import connection
from txntable.compat.confluent.elsewhere import ELSEWHERE
from txntable.compat.confluent.kafka_error import KafkaException, kafka_errors
from txntable.format.kafka_settings import configured
from txntable.runtime.other_names import answering


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created.

    Attributes
    ----------
    topic : str
        Its name.
    num_partitions : int
        How many.
    replication_factor : int
        Means nothing: the store replicates.
    config : Mapping of str to str
        Settings by Kafka's names.
    """

    topic: str
    num_partitions: int = 1
    replication_factor: int = 1
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_type(str, self.topic, "topic")
        int_of(self.num_partitions, "num_partitions")
        int_of(self.replication_factor, "replication_factor")
        of_type(dict, self.config, "config")


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic is to have.

    Attributes
    ----------
    topic : str
        Its name.
    new_total_count : int
        More than it has.
    """

    topic: str
    new_total_count: int

    def __post_init__(self) -> None:
        of_type(str, self.topic, "topic")
        int_of(self.new_total_count, "new_total_count")


@answering(ELSEWHERE)
class AdminClient:
    """Creates, grows, deletes and lists topics; see :mod:`txntable.compat.confluent` for what differs.

    Parameters
    ----------
    config : Mapping, optional
        ``bootstrap.servers`` and ``storage.options``; keywords are taken too.  Others must be harmless.

    Raises
    ------
    KafkaException
        There is another setting, or no such warehouse.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        with kafka_errors():
            opened = connection(config, named).opened(lambda settings: configured(settings, {}, lambda _: None))
            self._admin = opened.admin()

    def create_topics(
        self,
        new_topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        operation_timeout: float = 0,
        request_timeout: float = 0,
    ) -> dict[str, Future[None]]:
        """Create topics, or only look whether they could be; return a future for each, by name."""

        def create(new: NewTopic) -> None:
            self._admin.create_topic(
                new.topic, partitions=new.num_partitions, config=new.config, validate_only=validate_only
            )

        return {new.topic: _done(create, new) for new in list_of(NewTopic, new_topics, "new_topics")}

    def delete_topics(
        self, topics: Sequence[str], *, operation_timeout: float = 0, request_timeout: float = 0
    ) -> dict[str, Future[None]]:
        """Delete topics; return a future for each, by name."""
        return {topic: _done(self._admin.delete_topic, topic) for topic in list_of(str, topics, "topics")}

    def create_partitions(
        self,
        new_partitions: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        operation_timeout: float = 0,
        request_timeout: float = 0,
    ) -> dict[str, Future[None]]:
        """Let topics have more partitions, or only look whether they could; return a future for each, by name."""

        def grow(new: NewPartitions) -> None:
            self._admin.create_partitions({new.topic: new.new_total_count}, validate_only=validate_only)

        return {new.topic: _done(grow, new) for new in list_of(NewPartitions, new_partitions, "new_partitions")}

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return all topics, or one; one that there is not has an error."""
        return listed_topics(self._admin, topic, timeout)


def _done(call: Callable[[Any], None], what: Any) -> Future[None]:
    future: Future[None] = Future()
    try:
        with kafka_errors():
            call(what)
    except KafkaException as error:
        future.set_exception(error)
    else:
        future.set_result(None)
    return future
