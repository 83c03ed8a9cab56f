"""Finding out what was not done for a warehouse: for an alarm, when no job runs any more and nobody comes by.

The rules are those of PROTOCOL.md §6.6.

Owns what is looked at, and that it is cheap: every log from its newest checkpoint, a LIST of each log's folder, a HEAD
here and there; never a LIST of segments, nor older entries unless they are asked for.  Reads only.  The time is this
machine's: asking for the store's is a write.
What cannot be read is a finding, and the rest is looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from txntable.admin.topic_upkeep import behind_since_ms, compaction_debts, vacuum_debt
from txntable.admin.transaction_admin import TransactionAdmin, open_now
from txntable.admin.unreadable import topic_place, unreadable
from txntable.admin.upkeep import Duty, Finding, UpkeepLimits
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import DamagedDataError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, TRANSACTION_LOG_ROOT, commit_path, topic_names
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import decode_commit_info
from txntable.log.chain import verify_chain
from txntable.log.checkpoint import interval
from txntable.log.cleanup import SMALLEST_RETENTION_MS, LogFile, log_files, plan_cleanup, readable_entries
from txntable.log.delta_log import DeltaLog
from txntable.log.entry_time import written_by_ms
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.named_topics import named_topics, require_unnamed

_DAY_MS = 86_400_000


class UpkeepCheck:
    """One look at a warehouse.

    Parameters
    ----------
    completer : Completer
        Knows T and O.
    topic_log : callable
        Topic name -> its logs.
    settings : WarehouseSettings
        How long what is kept.
    limits : UpkeepLimits
        From when on something is late.

    Attributes
    ----------
    log_files : dict of str to list of LogFile
        What the folders of the logs held that were looked at, by their roots.
    """

    def __init__(
        self,
        completer: Completer,
        topic_log: Callable[[str], TopicLog],
        settings: WarehouseSettings,
        limits: UpkeepLimits,
    ) -> None:
        self._transactions, self._offsets = completer.transactions, completer.offsets
        self._topic_log, self._settings, self._limits = topic_log, settings, limits
        self._context = self._transactions.context
        self._admin = TransactionAdmin(completer, topic_log)
        self.log_files: dict[str, list[LogFile]] = {}
        self._now_ms = self._context.environment.instant().wall_ms

    def run(self) -> list[Finding]:
        """Return what is late: of the warehouse, then of each topic.

        Raises
        ------
        StoreUnavailableError, StorePermissionError
            The topics cannot be listed.
        """
        public_ms = self._settings.vacuum_retention_ms
        found = self._unless_unreadable(TRANSACTION_LOG_ROOT, self._of_transactions)
        for log in (self._transactions.log, self._offsets.log):
            found += self._unless_unreadable(log.root, lambda log=log: self._of_log(log, public_ms))  # type: ignore[misc]
        for name in sorted(
            {*topic_names(self._context.store.folders(TOPICS_FOLDER)), *named_topics(self._transactions, self._offsets)}
        ):
            found += self._unless_unreadable(topic_place(name), lambda name=name: self._of_topic(name))  # type: ignore[misc]
        if not any(one.duty is Duty.READ and one.where == self._offsets.log.root for one in found):
            told = {one.where for one in found if one.duty is Duty.READ}
            found += self._unless_unreadable(self._offsets.log.root, lambda: self._of_groups(told))
        return found

    def _unless_unreadable(self, where: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
        found: list[Finding] = []
        try:
            # A folder of a deleted topic, or of a creation that was killed.
            with suppress(UnknownTopicOrPartitionError):
                found.extend(look())
        except TxnTableError as error:
            found.append(unreadable(where, error))
        return found

    def _late(self, duty: Duty, where: str, found: int, limit: int, note: str = "") -> Iterator[Finding]:
        if found > limit:
            yield Finding(duty, where, found, limit, "ms", note)

    # -- the transaction log ----------------------------------------------------------------

    def _of_transactions(self) -> Iterator[Finding]:
        log = self._transactions.log
        self._transactions.refresh()
        with log.lock:
            rows, decided_at_ms = list(log.fold.under_way.values()), dict(log.fold.decided_at_ms)
        for row in sorted(rows, key=lambda row: row.transactional_id):
            yield from self._of_transaction(row, decided_at_ms.get(row.transactional_id))
        yield from self._of_lease()

    def _of_transaction(self, row: TransactionMetadata, decided_at_ms: int | None) -> Iterator[Finding]:
        where, limits = f"transactional id {row.transactional_id}", self._limits
        if decided_at_ms is not None:
            yield from self._late(Duty.COMPLETE, where, self._now_ms - decided_at_ms, limits.decision_age_ms)
            return
        age_ms = self._age_ms(row.started_position)
        if row.state is TransactionState.PREPARED:
            yield from self._late(Duty.END_PREPARED, where, age_ms, limits.prepared_age_ms)
        else:
            yield from self._late(Duty.TIME_OUT, where, age_ms - row.timeout_ms, limits.timeout_grace_ms)

    def _age_ms(self, position: int | None) -> int:
        """Return how long ago an entry of T was written at least."""
        if position is None:
            return self._settings.vacuum_retention_ms
        return self._now_ms - written_by_ms(self._context.store, TRANSACTION_LOG_ROOT, position)

    def _of_lease(self) -> Iterator[Finding]:
        lease, metadata = self._transactions.lease(), self._transactions.log.table.metadata
        where = "the coordinator's lease"
        if lease is not None and self._limits.coordinator_age_ms:
            age_ms = self._age_ms(lease.position)
            yield from self._late(
                Duty.COORDINATE, where, age_ms, self._limits.coordinator_age_ms, "since its last claim"
            )
        elif lease is None and metadata is not None:
            limit_ms = self._limits.coordinator_age_ms or _DAY_MS
            age_ms = self._now_ms - metadata.created_ms
            yield from self._late(
                Duty.COORDINATE, where, age_ms, limit_ms, "never claimed since the warehouse was made"
            )

    # -- any log ----------------------------------------------------------------------------

    def _of_log(self, log: DeltaLog[Any], retention_ms: int) -> Iterator[Finding]:
        files = self.log_files[log.root] = log_files(self._context.store, log.root)
        newest_ms = max([log.ensure_fresh().timestamp_ms, *(file.meta.last_modified_ms for file in files)])
        yield from self._late(Duty.CORRECT_CLOCK, log.root, newest_ms - self._now_ms, self._limits.clock_ahead_ms)
        self._check_end(log, files)
        spec = plan_cleanup(files, self._now_ms - self._limits.cleanup_grace_ms, retention_ms)
        if spec.paths:
            yield Finding(Duty.CLEAN_UP, log.root, len(spec.paths), 0, "files")
        limit = max(self._limits.tail_entries, 3 * interval(len(log.ensure_fresh().files)))
        if self._limits.tail_entries and spec.tail.entries > limit:
            yield Finding(Duty.WRITE_CHECKPOINT, log.root, spec.tail.entries, limit, "entries")
        if self._limits.chain_entries:
            yield from self._unless_unreadable(log.root, lambda: self._of_chain(log.root, files))

    def _check_end(self, log: DeltaLog[Any], files: Sequence[LogFile]) -> None:
        """Raise when entries stand above the one at which readers take the log to end: one was lost in between."""
        table = log.ensure_fresh()
        path = commit_path(log.root, table.next_version)
        above = [file for file in files if not file.is_checkpoint and file.version > table.next_version]
        # It may have come while the folder was listed, and those above may be another log's, from before a restore.
        if not above or self._context.store.head(path) is not None:
            return
        lowest = min(above, key=lambda file: file.version).meta.path
        found = self._context.store.get(lowest)
        if found is not None and decode_commit_info(found.data, lowest).log == table.log:
            raise DamagedDataError(
                "the log has a gap: an entry is gone, and readers stop below it; stop every writer, and restore it",
                path=path,
                above=lowest,
            )

    def _of_chain(self, root: str, files: Sequence[LogFile]) -> Iterator[Finding]:
        """Read entries for their chain; yields nothing, and raises when one is not what the next one says."""
        verify_chain(self._context.store, root, readable_entries(files)[-self._limits.chain_entries :])
        yield from ()

    # -- a topic ----------------------------------------------------------------------------

    def _of_topic(self, name: str) -> Iterator[Finding]:
        topic, where = self._topic_log(name), topic_place(name)
        if topic.segments.refresh().version is None:
            topic.require_unborn()
            require_unnamed(topic, self._transactions, self._offsets)
            return
        topic.public.refresh()
        if (since_ms := behind_since_ms(topic)) is not None:
            age_ms = self._now_ms - since_ms
            yield from self._late(Duty.PUBLISH, where, age_ms, self._limits.publication_age_ms)
        public_ms = self._settings.vacuum_retention_ms
        segments_ms = max(SMALLEST_RETENTION_MS, 2 * self._settings.transaction_max_timeout_ms)
        for log, retention_ms in ((topic.segments, segments_ms), (topic.public, public_ms)):
            yield from self._of_log(log, retention_ms)
        topic.require_whole()
        topic.require_decided()
        removed = vacuum_debt(topic, self._now_ms - self._limits.vacuum_grace_ms)
        if removed:
            yield Finding(Duty.VACUUM, where, removed, 0, "files", "at most; a dry run of vacuum counts them")
        yield from self._hanging(topic)
        old_ms = self._now_ms - self._limits.compaction_age_ms - self._settings.snapshot_retention_ms
        yield from compaction_debts(topic, old_ms, self._limits.small_segments)

    def _hanging(self, topic: TopicLog) -> Iterator[Finding]:
        limit_ms = self._settings.transaction_max_timeout_ms + self._limits.timeout_grace_ms
        settings, candidates = open_now(topic)
        old = [one for one in candidates if self._now_ms - one.since_ms > limit_ms]
        if not old:
            return
        self._transactions.refresh()
        hanging = [one for one in old if self._admin.status(settings.topic_id, one)[0].hangs]
        # T was read after S: what has ended in between shows its marker by now.
        still = set(open_now(topic)[1]) if hanging else set()
        for one in hanging:
            if one in still:
                who = (
                    f"producer_id={one.producer_id} producer_epoch={one.producer_epoch} start_offset={one.start_offset}"
                )
                age_ms = self._now_ms - one.since_ms
                where = f"partition {topic.name}-{one.partition}"
                yield Finding(Duty.END_HANGING, where, age_ms, limit_ms, "ms", who)

    # -- groups -----------------------------------------------------------------------------

    def _of_groups(self, told: Collection[str]) -> Iterator[Finding]:
        self._offsets.refresh()
        self._offsets.require_whole()
        for group in self._offsets.names():
            for (name, partition), row in sorted(self._offsets.offsets(group).items()):
                if topic_place(name) in told:
                    continue
                segments, committed = self._topic_log(name).segments, row.committed
                settings = segments.fold.settings
                if settings is None or committed is None or committed.topic_id not in ("", settings.topic_id):
                    continue
                where = f"group {group}, partition {name}-{partition}"
                highest = high_watermark(segments.table, settings.topic_id, partition)
                if committed.offset > highest:
                    # The partition logs were read before.
                    highest = high_watermark(segments.refresh(), settings.topic_id, partition)
                if committed.offset > highest:
                    yield Finding(Duty.STAND_WITHIN, where, committed.offset, highest, "offset")
                lag = last_stable_offset(segments.fold, segments.table, settings.topic_id, partition) - committed.offset
                if self._limits.lag_records and lag > self._limits.lag_records:
                    yield Finding(Duty.CONSUME, where, lag, self._limits.lag_records, "offsets")
