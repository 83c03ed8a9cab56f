"""What a consumer tells its user of partitions that it gets and gives up: Kafka's listener.

Called inside of poll, read, subscribe, unsubscribe and close, by the thread that calls these.
"""

from __future__ import annotations

from collections.abc import Collection

from txntable.format.records import TopicPartition


class ConsumerRebalanceListener:
    """Override what is of interest; handed to :meth:`txntable.Consumer.subscribe`.

    Only what changes hands is told: what a consumer keeps is not touched.  An exception leaves through the call that
    told it; what was to be given up is told again by the next poll.
    """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Take note that these are about to be given up: the last chance to commit their offsets."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Take note that these are read from now on; a seek here takes effect."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Take note that these are another's already; by default as :meth:`on_partitions_revoked`, as in Kafka."""
        self.on_partitions_revoked(partitions)
