"""Which consumers' offsets the open transaction has, for those that hand over the consumer itself.

Owns that a consumer is told what became of its offsets: refused, sent, and how the transaction ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from txntable.coordinator.decision import Outcome
from txntable.errors import TxnTableError
from txntable.offsets.group_commit import GroupCommit

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer


class ConsumedOffsets:
    """The offsets of consumers in the transaction of one producer."""

    def __init__(self) -> None:
        self._sent: list[tuple[Consumer, GroupCommit]] = []

    def send(self, consumer: Consumer, send: Callable[[GroupCommit], None]) -> None:
        """Send the offsets of all that a consumer has read.

        Raises
        ------
        TxnTableError
            They were refused, and the consumer knows it.
        """
        offsets = consumer.offsets_to_send()
        try:
            send(offsets)
        except TxnTableError as error:
            consumer.refused(error, offsets)
            raise
        consumer.offsets_sent(offsets)
        self._sent.append((consumer, offsets))

    def decided(self, outcome: Outcome) -> None:
        """Tell the consumers how the transaction ended: what it aborted is for the next one."""
        while self._sent:
            consumer, offsets = self._sent.pop()
            consumer.offsets_decided(offsets, committed=outcome is Outcome.COMMIT)
