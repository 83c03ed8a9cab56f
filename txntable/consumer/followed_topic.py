"""One topic as a consumer follows it: the view that it reads, and how that is renewed.

Owns what following costs: for `read_committed` a request to the public table (the transaction log is asked for once
for all topics, before), for `read_uncommitted` one to the partition logs; and that it is the same topic for
ever: one that was deleted, and perhaps made again, is an error.  Now and then everything that was appended is
published, too: a plain writer may have died before it did.
"""

from __future__ import annotations

from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.partition.offsets import next_offset
from txntable.partition.topic_view import Bounds, TopicView
from txntable.runtime.environment import Environment, Instant
from txntable.segments.segment_reader import SegmentReader
from txntable.snapshot.topic_reader import TopicReader

CATCH_UP_MS = 30_000
CURRENT_TOPIC_ID = "current_topic_id"
"""The fact of an error that says that the topic was created again: the new one's id."""


class FollowedTopic:
    """A topic, from the first look at it on.

    Parameters
    ----------
    reader : TopicReader
        What the readers of the topic share.
    level : IsolationLevel
        What is seen.
    environment : Environment
        Says how long ago the topic was brought up.

    Attributes
    ----------
    reader : TopicReader
        As given.
    view : TopicView
        The newest one.
    segments : SegmentReader
        What reads its segments.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    StoreUnavailableError, CommitStateUnknownError
        Call again.
    """

    def __init__(self, reader: TopicReader, level: IsolationLevel, environment: Environment) -> None:
        self.reader = reader
        self._level = level
        self._environment = environment
        reader.catch_up()
        self._caught_up_at: Instant = environment.instant()
        self.view: TopicView = reader.view(level)
        self.segments: SegmentReader = reader.reader_of(self.view)

    @property
    def topic_id(self) -> str:
        """The id that the topic had at the first look."""
        return self.view.settings.topic_id

    def bounds(self, partition: int) -> Bounds:
        """Return the bounds of a partition in the view.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic has no such partition.
        """
        return self.view.bounds_of(partition)

    def follow(self) -> None:
        """Renew the view; the transaction log was just read.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic was deleted, or deleted and made again.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        if self._environment.since_ms(self._caught_up_at) >= CATCH_UP_MS:
            self.catch_up()
            return
        if self._level is IsolationLevel.READ_UNCOMMITTED:
            self.reader.topic.settings()
        else:
            self.reader.follow_public()
        self.look()

    def catch_up(self) -> None:
        """Publish what is appended as far as these credentials allow, and renew the view; raises as :meth:`follow`."""
        self.reader.catch_up()
        self._caught_up_at = self._environment.instant()
        self.look()

    def look(self) -> None:
        """Take the newest view of what is known; raises as :meth:`follow`."""
        view = self.reader.view(self._level)
        if view is self.view:
            return
        if view.settings.topic_id != self.topic_id:
            raise UnknownTopicOrPartitionError(
                "the topic was deleted and created again; assign or subscribe again to read the new one",
                topic=view.settings.name,
                topic_id=self.topic_id,
                **{CURRENT_TOPIC_ID: view.settings.topic_id},
            )
        self.view, self.segments = view, self.reader.reader_of(view)

    def holds(self, partition: int, offset: int) -> bool:
        """Return whether everything below an offset was appended, by the partition logs as they are now.

        A public table that these credentials cannot bring up may be behind them; raises as :meth:`follow`.
        """
        self.catch_up()
        segments = self.reader.topic.segments
        with segments.lock:
            return offset <= next_offset(segments.ensure_fresh().numbers, self.topic_id, partition)
