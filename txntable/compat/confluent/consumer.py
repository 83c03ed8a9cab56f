"""confluent-kafka's Consumer over :class:`txntable.Consumer`.

Owns what an assignment inside of a rebalance callback means: the positions of what the group has given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from txntable.compat.confluent.arguments import check_callables, int_of, list_of, of_type, seconds_or_none
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, listed_topics
from txntable.compat.confluent.connection import connection
from txntable.compat.confluent.elsewhere import ELSEWHERE
from txntable.compat.confluent.kafka_error import KafkaError, KafkaException, kafka_errors
from txntable.compat.confluent.message import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Message,
    TopicPartition,
    offsets_of,
    own_partition,
    own_partitions,
    with_offset,
)
from txntable.consumer.consumer_config import consumer_config, no_dataframes
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import IllegalStateError, InvalidConfigError, InvalidRequestError
from txntable.format import records
from txntable.format.kafka_call_names import OF_PRODUCERS
from txntable.runtime.other_names import answering

OnPartitions: TypeAlias = "Callable[[Consumer, list[TopicPartition]], object]"
_FOREVER_MS = 2**62
_MOST_MESSAGES = 1_000_000
# librdkafka's other words for where to start.
_RESETS = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest", "error": "none"}


@answering({**ELSEWHERE, **OF_PRODUCERS})
class Consumer:
    """Reads messages; see :mod:`txntable.compat.confluent` for what differs.

    Parameters
    ----------
    config : Mapping, optional
        confluent-kafka's settings, ``group.id`` among them; keywords are taken too.

    Raises
    ------
    KafkaException
        A setting is unknown or has no counterpart, or there is no such warehouse.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        with kafka_errors():
            given = connection(config, named)
            settings = given.settings
            if settings.get("group.id") is None:
                given.wrong.append(InvalidConfigError("a consumer of confluent-kafka has a group; give group.id"))
            reset = settings.get("auto.offset.reset")
            if isinstance(reset, str):
                settings["auto.offset.reset"] = _RESETS.get(reset, reset)
            warehouse = given.opened(lambda settings: consumer_config(settings, {}, no_dataframes))
            self._admin = warehouse.admin()
            self._consumer = warehouse.consumer(settings)
        self._is_told = False

    # -- which partitions -------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Subscribe to topics, or to one regular expression that begins with ``^``; callbacks as in confluent-kafka."""
        topics = list_of(str, topics, "topics")
        check_callables([("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)])
        with kafka_errors():
            calls = [self._told(each) for each in (on_assign, on_revoke, on_lost)]
            pattern = topics[0] if len(topics) == 1 and topics[0].startswith("^") else None
            self._consumer.subscribe(
                [] if pattern is not None else topics,
                pattern=pattern,
                on_assign=calls[0],
                on_revoke=calls[1],
                on_lost=calls[2],
            )

    def _told(self, call: OnPartitions | None) -> Callable[[Any, list[records.TopicPartition]], object] | None:
        if call is None:
            return None

        def told(_: object, partitions: list[records.TopicPartition]) -> None:
            self._is_told = True
            try:
                call(self, [with_offset(each, OFFSET_INVALID) for each in partitions])
            finally:
                self._is_told = False

        return told

    def unsubscribe(self) -> None:
        """See :meth:`txntable.Consumer.unsubscribe`."""
        with kafka_errors():
            self._consumer.unsubscribe()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions from their offsets; in ``on_assign``: move to their offsets.

        Without an offset, a partition begins at the group's committed one.
        """
        chosen = own_partitions(partitions)
        with kafka_errors():
            if not self._is_told:
                self._consumer.assign(chosen)
            elif not set(chosen) <= self._consumer.assignment():
                raise IllegalStateError("the group gives the partitions; assign none but these in the callback")
            for each in partitions:
                if each.offset >= 0 or each.offset in (OFFSET_BEGINNING, OFFSET_END):
                    self._seek(each)

    def unassign(self) -> None:
        """Read nothing; in ``on_revoke``: do nothing, since the group takes the partitions."""
        if not self._is_told:
            with kafka_errors():
                self._consumer.assign([])

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        return [with_offset(each, OFFSET_INVALID) for each in sorted(self._consumer.assignment())]

    def memberid(self) -> str:
        """Return the id of the member of the group; empty before it has joined."""
        return self.consumer_group_metadata().member_id

    # -- reading ----------------------------------------------------------------------------

    def poll(self, timeout: float | None = None) -> Message | None:
        """Return the next message; ``None``: there was none within the timeout, in seconds (default: no limit)."""
        found = self.consume(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float | None = None) -> list[Message]:
        """Return the next messages, once there are so many; after the timeout, in seconds, what there is.

        Without a timeout it waits for all of them.  After a rebalance, or before an error, it returns what there is.
        """
        seconds, most = seconds_or_none(timeout), int_of(num_messages, "num_messages")
        if not 0 <= most <= _MOST_MESSAGES:
            raise ValueError(f"num_messages must be from 0 to {_MOST_MESSAGES}")
        if most == 0:
            return []
        with kafka_errors():
            polled = self._consumer.poll(
                timeout_ms=_FOREVER_MS if seconds is None else seconds * 1_000,
                max_records=most,
                min_records=most,
            )
        return [Message(record) for found in polled.values() for record in found]

    # -- positions --------------------------------------------------------------------------

    def seek(self, partition: TopicPartition) -> None:
        """Read a partition from its offset on."""
        with kafka_errors():
            self._seek(partition)

    def _seek(self, partition: TopicPartition) -> None:
        own = own_partition(partition)
        if partition.offset == OFFSET_BEGINNING:
            self._consumer.seek_to_beginning(own)
        elif partition.offset == OFFSET_END:
            self._consumer.seek_to_end(own)
        elif partition.offset < 0:
            self._consumer.seek_to_committed(own)
        else:
            self._consumer.seek(own, partition.offset)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return all topics, or one; one that there is not has an error.  The timeout is taken and not heeded."""
        return listed_topics(self._admin, topic, timeout)

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with the offsets of the next messages; ``OFFSET_INVALID``: none was read yet."""
        with kafka_errors():
            known = self._consumer.positions()
        return [with_offset(own, known.get(own, OFFSET_INVALID)) for own in own_partitions(partitions)]

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """See :meth:`txntable.Consumer.pause`."""
        with kafka_errors():
            self._consumer.pause(own_partitions(partitions))

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """See :meth:`txntable.Consumer.resume`."""
        with kafka_errors():
            self._consumer.resume(own_partitions(partitions))

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """See :meth:`txntable.Consumer.get_watermark_offsets`; `cached` is taken and not heeded."""
        seconds_or_none(timeout)
        with kafka_errors():
            return self._consumer.get_watermark_offsets(own_partition(partition))

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float | None = None
    ) -> list[TopicPartition]:
        """Return the first offsets at or after the times that stand as the partitions' offsets; else ``OFFSET_END``."""
        seconds_or_none(timeout)
        times = {own: each.offset for own, each in zip(own_partitions(partitions), partitions, strict=True)}
        with kafka_errors():
            found = self._consumer.offsets_for_times(times)
        return [with_offset(own, OFFSET_END if first is None else first.offset) for own, first in found.items()]

    # -- the group --------------------------------------------------------------------------

    def commit(
        self,
        message: Message | None = None,
        offsets: Sequence[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit a message's offset + 1, offsets, or the positions; with ``asynchronous=False`` return them.

        Raises
        ------
        KafkaException
            ``_NO_OFFSET``: none of `offsets` has one, with ``asynchronous=False``.
        """
        with kafka_errors():
            wanted = self._wanted(message, offsets)
            given = None if wanted is None else offsets_of(wanted)
            self._consumer.commit(given)
            if asynchronous:
                return None
            committed = self._consumer.positions() if wanted is None else {}
        if wanted is None:
            return [with_offset(*each) for each in committed.items()]
        if wanted and not given:
            number = KafkaError._NO_OFFSET  # noqa: SLF001  confluent-kafka's name for it
            raise KafkaException(KafkaError(number, "no partition has an offset to commit"))
        return [each for each in wanted if each.offset >= 0]

    def _wanted(
        self, message: Message | None, offsets: Sequence[TopicPartition] | None
    ) -> Sequence[TopicPartition] | None:
        if message is None:
            return offsets
        if offsets is not None:
            raise ValueError("give either a message or offsets")
        place, offset = of_type(Message, message, "message").partition(), message.offset()
        if place is None or offset is None:
            raise InvalidRequestError("only a message that was read has an offset to commit")
        return [TopicPartition(message.topic(), place, offset + 1)]

    def committed(self, partitions: Sequence[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """Return the partitions with the group's committed offsets; ``OFFSET_INVALID``: nothing is committed."""
        seconds = seconds_or_none(timeout)
        with kafka_errors():
            found = self._consumer.committed(
                own_partitions(partitions), timeout_ms=None if seconds is None else seconds * 1_000
            )
        return [
            with_offset(own, OFFSET_INVALID if each is None else each.offset, None if each is None else each.metadata)
            for own, each in found.items()
        ]

    def consumer_group_metadata(self) -> GroupMetadata:
        """See :meth:`txntable.Consumer.group_metadata`."""
        with kafka_errors():
            return self._consumer.group_metadata()

    def close(self) -> None:
        """See :meth:`txntable.Consumer.close`."""
        with kafka_errors():
            self._consumer.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
