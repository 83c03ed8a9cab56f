"""Changing a warehouse's settings, and what that means for what is running (PROTOCOL.md §3.1).

T's metadata is the truth; O has a copy, and each topic's tables their retention, which follow in this order: whoever
is killed in between makes the same call again.  Owns no bounds: those are :mod:`txntable.format.warehouse_settings`'s,
and what settings of topics allow :mod:`txntable.format.topic_policy`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from txntable.errors import DamagedDataError, InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.topic_policy import check_policy
from txntable.format.warehouse_settings import WarehouseSettings, altered_settings, settings_from, settings_properties
from txntable.log.actions import Action, Metadata
from txntable.log.table_state import TableState
from txntable.segments.topic_metadata import guard_properties
from txntable.topics.topic_evolution import decide_new_retention
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.decided_end import require_whole

_EXPIRY = "takes effect at the coordinator job's next expiry: if shorter, "
MEANINGS: Mapping[str, str] = {
    "vacuum_retention_ms": "takes effect at the next vacuum and the next cleanup of logs, in every topic: if shorter,"
    " snapshots, time travel and streams that are further behind fail",
    "transaction_max_timeout_ms": "open transactions keep their timeouts; it applies to producers created from now on",
    "transactional_id_expiration_ms": _EXPIRY + "idle producers are told that their id is unknown",
    "producer_id_expiration_ms": _EXPIRY + "a late retry of an idle producer may be appended twice",
    "batch_retention_ms": _EXPIRY + "older batch names can be committed again, and older tokens are unknown",
    "offsets_retention_ms": _EXPIRY + "idle groups start again by auto_offset_reset",
    "snapshot_retention_ms": "takes effect at the next compaction: if shorter, snapshots as of younger decisions can no"
    " longer be read from the current version",
}
"""Setting -> what a change of it means for running clients and jobs."""


class WarehouseAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about the warehouse itself.

    Parameters
    ----------
    completer : Completer
        Knows T and O.
    topic_log : callable
        A topic's name -> its logs.
    settings : WarehouseSettings
        As they were when the client was made.

    Attributes
    ----------
    settings : WarehouseSettings
        What the client goes by: as given, until it alters them.
    """

    def __init__(self, completer: Completer, topic_log: Callable[[str], TopicLog], settings: WarehouseSettings) -> None:
        self._transactions, self._offsets = completer.transactions, completer.offsets
        self._topic_log, self.settings = topic_log, settings

    def alter(self, changes: Mapping[str, int | None], *, validate_only: bool = False) -> WarehouseSettings:
        """Change settings of the warehouse, all at once; the same call again finishes what was interrupted."""
        if not isinstance(changes, Mapping):
            raise InvalidRequestError("changes must be a mapping of settings to values", changes=repr(changes))
        self._transactions.refresh()
        wanted = altered_settings(_settings(self._transactions.log.table), changes)
        topics = self._live_topics()
        for topic in topics:
            check_policy(topic.settings(), wanted)
        if validate_only:
            return wanted
        self._offsets.refresh()
        require_whole(self._transactions, self._offsets, self._topic_log)
        self._offsets.require_whole()
        self._transactions.commit(
            "ALTER SETTINGS", lambda table: _decide(table, lambda old: altered_settings(old, changes))
        )
        now = self.settings = _settings(self._transactions.log.table)
        self._offsets.commit("ALTER SETTINGS", lambda table: _decide(table, lambda _: now))
        for topic in topics:
            self._keep_removed(topic, now.vacuum_retention_ms)
        return now

    def _live_topics(self) -> list[TopicLog]:
        """Return the topics that there are; folders of deleted ones, and junk, are passed over."""
        found = []
        for name in topic_names(self._transactions.context.store.folders(TOPICS_FOLDER)):
            topic = self._topic_log(name)
            with suppress(UnknownTopicOrPartitionError):
                topic.settings()
                found.append(topic)
        return found

    def _keep_removed(self, topic: TopicLog, retention_ms: int) -> None:
        def decide(table: TableState) -> Sequence[Action]:
            return decide_new_retention(topic.segments.fold, table, retention_ms)

        # Unknown: deleted meanwhile.
        with suppress(UnknownTopicOrPartitionError):
            topic.commit_segments("ALTER SETTINGS", decide)
            topic.catch_up()


def _settings(table: TableState) -> WarehouseSettings:
    return settings_from(_metadata(table).configuration)


def _metadata(table: TableState) -> Metadata:
    if table.metadata is None:
        raise DamagedDataError("the warehouse has lost a log; restore it")
    return table.metadata


def _decide(table: TableState, alter: Callable[[WarehouseSettings], WarehouseSettings]) -> Sequence[Action]:
    old = _metadata(table)
    wanted = alter(settings_from(old.configuration))
    changed = {**guard_properties(wanted.vacuum_retention_ms), **settings_properties(wanted)}
    metadata = replace(old, configuration={**old.configuration, **changed})
    return [] if metadata == old else [metadata]


def meanings(old: WarehouseSettings, new: WarehouseSettings) -> list[str]:
    """Return what the differences of two settings mean for what is running, a line each."""
    before, after = asdict(old), asdict(new)
    return [f"{name}: {MEANINGS[name]}" for name in before if before[name] != after[name]]
