"""Callbacks for partitions that are assigned to or revoked from a consumer: Kafka's listener.

Called inside poll, read, subscribe, unsubscribe and close, by the thread that calls these.
"""

from __future__ import annotations

from collections.abc import Collection

from txntable.format.records import TopicPartition


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
