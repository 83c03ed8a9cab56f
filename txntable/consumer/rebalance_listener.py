"""Callbacks for partitions that are assigned to or revoked from a consumer: Kafka's listener.

Called inside poll, read, subscribe, unsubscribe and close, by the thread that calls these.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.format.records import TopicPartition

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer

OnPartitions = Callable[["Consumer", list[TopicPartition]], object]
"""What is called with the consumer and the partitions that change hands."""


class ConsumerRebalanceListener:
    """Override the callbacks of interest and pass it to :meth:`txntable.Consumer.subscribe`.

    Callbacks name only the partitions that change hands, not those that a consumer keeps.  An exception propagates
    through the call in progress; the next poll reports partitions to be revoked again.
    """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that are about to be revoked: the last chance to commit their offsets."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that have been assigned; a seek here takes effect."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that another member already owns; default: :meth:`on_partitions_revoked`, as in Kafka."""
        self.on_partitions_revoked(partitions)


@dataclass(frozen=True, slots=True)
class Callables:
    """Callbacks that are given one by one, as confluent-kafka's consumers take them.

    Attributes
    ----------
    on_assign, on_revoke, on_lost : callable, optional
        (consumer, list of partitions); without `on_lost`, `on_revoke` is told of lost partitions too.

    Raises
    ------
    InvalidRequestError
        One of them cannot be called.
    """

    on_assign: OnPartitions | None = None
    on_revoke: OnPartitions | None = None
    on_lost: OnPartitions | None = None

    def __post_init__(self) -> None:
        for call in (self.on_assign, self.on_revoke, self.on_lost):
            if call is not None and not callable(call):
                raise InvalidRequestError(
                    "on_assign, on_revoke and on_lost are called with the consumer and a list of partitions; give a"
                    " callable",
                    found=shown(call),
                )

    def listener(self, consumer: Consumer, other: ConsumerRebalanceListener | None) -> ConsumerRebalanceListener | None:
        """Return the listener that calls them; without any, `other`.

        Raises
        ------
        InvalidRequestError
            There are both.
        """
        if self == Callables():
            return other
        if other is not None:
            raise InvalidRequestError("give either a listener or callables, not both", listener=shown(other))
        return _Calling(consumer, self)


class _Calling(ConsumerRebalanceListener):
    def __init__(self, consumer: Consumer, calls: Callables) -> None:
        # The consumer holds its listener: one that is dropped is to end, and its session with it.
        self._consumer, self._calls = weakref.ref(consumer), calls

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._call(self._calls.on_revoke, partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._call(self._calls.on_assign, partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._call(self._calls.on_lost or self._calls.on_revoke, partitions)

    def _call(self, call: OnPartitions | None, partitions: Collection[TopicPartition]) -> None:
        consumer = self._consumer()
        if call is not None and consumer is not None:
            call(consumer, sorted(partitions))
