"""Which version of its public table a topic's snapshot of the past reads (PROTOCOL.md §10, "The past").

Owns the choice by a position, and by a time, which also says what has no position: the newest version of that time, or
a later one where something had been decided and was published only then.  Where another topic had the name, it is of
that one.  Must not know what is read of the version.
"""

from __future__ import annotations

from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path, public_root
from txntable.log.actions import Action, Add, Commit, Txn
from txntable.log.entry_time import version_as_of
from txntable.log.time_travel import commit_at, first_version_where, load_version
from txntable.partition.offsets import DECIDED_THROUGH, MERGED_THROUGH, per_topic
from txntable.segments.topic_metadata import settings_of
from txntable.snapshot.retained import cleaned_up
from txntable.topics.topic_log import TopicLog

# A topic's creation is dated by its creator's clock of the store, which may be off by so much.
_CLOCK_ERROR_MS = 5000


class PastVersions:
    """The versions of a topic's public table, by what they show.

    Parameters
    ----------
    topic : TopicLog
        What is decided and known is published already: see :meth:`TopicReader.catch_up`.
    """

    def __init__(self, topic: TopicLog) -> None:
        self.topic = topic

    def version_at(self, position: int, moment_ms: int | None = None) -> int:
        """Return the version of the public table that a snapshot of the past reads.

        The first one that shows everything decided at or below `position`; the newest when none does: call
        :meth:`catch_up` before.  Where another topic had the name then, it is of that one.

        Parameters
        ----------
        position : int
            The snapshot's.
        moment_ms : int, optional
            The store's time that was asked for, ms since 1970.  Then it is the newest version of that time, or the last
            later one that publishes what had been decided by then: what has no position is as it was.

        Raises
        ------
        UnknownTopicOrPartitionError
            There was no such topic then.
        OffsetOutOfRangeError
            Retention has removed it.
        """
        try:
            return self._version_at(position, moment_ms)
        except OffsetOutOfRangeError as error:
            root = public_root(self.topic.name)
            raise cleaned_up(self.topic.context, root, topic=self.topic.name, position=position) from error

    def _version_at(self, position: int, moment_ms: int | None) -> int:
        topic_id, newest_then = self._topic_then(position, moment_ms)
        context, root = self.topic.context, self.topic.public.root
        head, name = self.topic.public.ensure_fresh().next_version - 1, per_topic(DECIDED_THROUGH, topic_id)
        if moment_ms is not None:
            then = version_as_of(context, root, head, moment_ms) or 0
            version = self._with_what_came_late(name, then, head, position)
            # Who may not publish reads at a lower position than the time's.
            merged = _said(commit_at(context.store, root, version), per_topic(MERGED_THROUGH, topic_id))
            if merged is None or merged <= position:
                return version

        def shows(commit: Commit) -> bool:
            said = _said(commit, name)
            # After the topic's end its number is not said any more.
            return newest_then is not None and commit.version > newest_then if said is None else said >= position

        found = first_version_where(context.store, root, head, shows)
        version = head if found is None else found
        return version if newest_then is None else self._last_live(topic_id, version, newest_then)

    def _with_what_came_late(self, name: str, then: int, head: int, position: int) -> int:
        """Return the newest version of a time, or the last later one that publishes what had been decided by then."""
        store, root = self.topic.context.store, self.topic.public.root
        version = at = then
        while (known := _said(commit_at(store, root, at), name)) is not None and known < position:

            def rises(commit: Commit, known: int = known) -> bool:
                said = _said(commit, name)
                return said is None or said > known

            later = first_version_where(store, root, head, rises)
            if later is None:
                break
            at = later
            if any(_is_published_by(action, position) for action in commit_at(store, root, at).actions):
                version = at
        return version

    def _last_live(self, topic_id: str, version: int, newest_then: int) -> int:
        """Return the last version at or below `version` that shows the topic; it was there at `newest_then`."""
        for earlier in range(version, newest_then, -1):
            table = load_version(self.topic.context.store, public_root(self.topic.name), earlier)
            if table.metadata is not None:
                settings = settings_of(self.topic.name, table.metadata)
                if settings.topic_id == topic_id and not settings.deleted:
                    return earlier
        return newest_then

    def _topic_then(self, position: int, moment_ms: int | None) -> tuple[str, int | None]:
        """Return the id of the topic that had the name at a position, or at a time.

        And, unless it still has it, a version of the public table in which it was there.
        """
        context, root = self.topic.context, public_root(self.topic.name)
        with self.topic.segments.lock, self.topic.public.lock:
            public = self.topic.public.ensure_fresh()
            if public.metadata is None:
                return self.topic.settings().topic_id, None
            now, head = settings_of(self.topic.name, public.metadata), public.next_version - 1
            created_ms = public.metadata.created_ms
        decided = context.store.head(commit_path(TRANSACTION_LOG_ROOT, position))
        if decided is None:
            raise OffsetOutOfRangeError("the entry of the position is cleaned up", position=position)
        at_ms = decided.last_modified_ms if moment_ms is None else moment_ms
        if not now.deleted and created_ms + _CLOCK_ERROR_MS < at_ms:
            return now.topic_id, None
        # Only entries of both logs are compared, by the store's own dates.
        then = version_as_of(context, root, head, at_ms)
        table = None if then is None else load_version(context.store, root, then)
        if then is None or table is None or table.metadata is None:
            raise UnknownTopicOrPartitionError("there was no such topic then", topic=self.topic.name, position=position)
        found = settings_of(self.topic.name, table.metadata)
        if found.deleted:
            raise UnknownTopicOrPartitionError(
                "the topic was deleted then; look at an earlier time or position",
                topic=self.topic.name,
                position=position,
            )
        is_of_now = found.topic_id == now.topic_id and not now.deleted
        return found.topic_id, None if is_of_now else then


def _said(commit: Commit, name: str) -> int | None:
    """Return what a commit says a number is; ``None``: nothing, the topic had ended."""
    return max((a.version for a in commit.actions if isinstance(a, Txn) and a.app_id == name), default=None)


def _is_published_by(action: Action, position: int) -> bool:
    """Return whether it makes visible what was decided at or below a position."""
    return (
        isinstance(action, Add)
        and action.data_change
        and 0 < int(action.partition_values.get("_commit") or 0) <= position
    )
