"""One round of the coordinator job: its tasks, and what they did (PROTOCOL.md §6.6).

Owns the rule that what fails does not stop the rest: it is logged, counted, and left to the next
round.  Only a lost lease ends the round; it is looked at before each piece of work, on the view that
the job has anyway.  Must not know when what is due.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from txntable.coordinator.store_time import has_passed
from txntable.errors import TransactionCoordinatorFencedError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.groups.group_client import GroupClient
from txntable.log.cleanup import SMALLEST_RETENTION_MS, clean_up
from txntable.log.delta_log import DeltaLog
from txntable.offsets.offset_log import OffsetLog
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_expiration import expire_part, parts_of, plan_expiry
from txntable.transactions.transaction_log import TransactionLog
from txntable.upkeep.offset_expiration import (
    Swept,
    expire_offsets_part,
    forget_topic_part,
    ids_gone,
    plan_offset_expiry,
    topics_of,
)

logger = logging.getLogger(__name__)


class Task(Enum):
    """What the coordinator job does, in this order."""

    COMPLETE = "time out and complete transactions"
    PUBLISH = "publish topics"
    EXPEL = "expel silent members of groups"
    EXPIRE_IDS = "expire transactional ids and batch names"
    EXPIRE_PRODUCERS = "expire producer ids"
    EXPIRE_OFFSETS = "expire offsets and empty groups"
    CLEAN_LOGS = "clean up logs"


@dataclass(frozen=True, slots=True)
class CoordinatorReport:
    """What one round did.

    Attributes
    ----------
    coordinator_epoch : int
        Of the lease that it was done under.
    aborted : int
        Transactions whose timeout had passed.
    completed : int
        Transactions that others had decided.
    published_topics : int
        Topics whose public table was behind.
    expired_transactional_ids, expired_batch_names : int
        Rows of the transaction log that went.
    expired_producers : int
        Producers that a partition forgot; one counts in each partition.
    expelled_members : int
        Members of groups whose sessions had expired.
    expired_offsets, expired_groups : int
        Rows of the offset log that went, with the offsets of topics that are gone.
    cleaned_log_files : int
        Log entries and checkpoints that were deleted.
    failures : int
        What failed and was left to the next round; the log says why.
    """

    coordinator_epoch: int
    aborted: int = 0
    completed: int = 0
    published_topics: int = 0
    expired_transactional_ids: int = 0
    expired_batch_names: int = 0
    expired_producers: int = 0
    expelled_members: int = 0
    expired_offsets: int = 0
    expired_groups: int = 0
    cleaned_log_files: int = 0
    failures: int = 0

    @property
    def did_something(self) -> bool:
        """Whether anything was done, or failed."""
        return self != CoordinatorReport(self.coordinator_epoch)


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """What a round does not complete, or completes without a topic.

    Attributes
    ----------
    decision_age_ms : int
        Younger decisions, in milliseconds, are left to their producers.
    given_up : tuple of str
        Names of topics that have lost their partition logs for good.
    """

    decision_age_ms: int
    given_up: tuple[str, ...]


class CoordinatorRound:
    """The work of one round.

    Parameters
    ----------
    transactions : TransactionLog
        T, through the interface that the lease keeps open, just read.
    offsets : OffsetLog
        O.
    topic_log : callable
        Topic name -> its logs.
    settings : WarehouseSettings
        How long what is kept.
    completion : CompletionPlan
        What is left to others, or not owed any more.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        offsets: OffsetLog,
        topic_log: Callable[[str], TopicLog],
        settings: WarehouseSettings,
        completion: CompletionPlan,
    ) -> None:
        self._transactions, self._offsets, self._topic_log = transactions, offsets, topic_log
        self._settings = settings
        self._context = transactions.context
        self._completer = Completer(transactions, topic_log, offsets, completion.given_up)
        self._decision_age_ms = completion.decision_age_ms
        self._counts = Counter[str]()
        self._try_again = False

    def run(self, task: Task) -> bool:
        """Do one task.

        Returns
        -------
        bool
            ``False``: something failed that may succeed in the next round.

        Raises
        ------
        TransactionCoordinatorFencedError
            Another job has the lease: stop.
        """
        work = {
            Task.COMPLETE: self._complete,
            Task.PUBLISH: self._publish,
            Task.EXPEL: self._expel,
            Task.EXPIRE_IDS: self._expire_ids,
            Task.EXPIRE_PRODUCERS: self._expire_producers,
            Task.EXPIRE_OFFSETS: self._expire_offsets,
            Task.CLEAN_LOGS: self._clean_logs,
        }
        self._try_again = False
        with self._left_to_the_next_round(task.value):
            work[task]()
        return not self._try_again

    def report(self, coordinator_epoch: int) -> CoordinatorReport:
        """Return what was done so far."""
        return CoordinatorReport(coordinator_epoch, **self._counts)

    @contextmanager
    def _left_to_the_next_round(self, what: str) -> Iterator[None]:
        # Not on what a piece of work that failed while it read the log has left: that may show an older lease.
        with self._transactions.log.lock:
            self._transactions.log.ensure_fresh()
            self._transactions.check_lease()
        try:
            yield
        except TransactionCoordinatorFencedError:
            raise
        except (TxnTableError, OSError) as error:
            logger.warning("failed, and is left to the next round: %s: %s", what, error)
            self._counts["failures"] += 1
            self._try_again |= not isinstance(error, TxnTableError) or error.retriable

    def _complete(self) -> None:
        log = self._transactions.log
        with log.lock:
            under_way = list(log.fold.under_way.values())
        for row in under_way:
            with self._left_to_the_next_round(f"time out transactional_id={row.transactional_id}"):
                if self._completer.time_out(row):
                    self._counts["aborted"] += 1
                    # Nobody else feels responsible for it; it counts as aborted, what is completed along as completed.
                    self._counts["completed"] += max(0, self._completer.complete(row.transactional_id) - 1)
        now_ms = self._context.clock.now_ms()
        with log.lock:
            times = log.fold.decided_at_ms
            # In-commit times may be ahead of the clock: on a busy log each is later than the one before.
            # Far ahead they stay once a clock was: what was decided then, and since, is completed at once.
            ages = [(row, now_ms - times[row.transactional_id]) for row in log.fold.decided()]
            patience_ms = self._decision_age_ms
            decided = [row for row, age in ages if max(0, age) >= patience_ms or has_passed(age, patience_ms)]
        with self._left_to_the_next_round("look at what others have completed"):
            self._completer.look_at(decided)
        for row in decided:
            with self._left_to_the_next_round(f"complete transactional_id={row.transactional_id}"):
                self._completer.bring_row(row)
        with self._left_to_the_next_round("write what is complete"):
            self._counts["completed"] += self._completer.record({row.transactional_id for row in decided})

    def _publish(self) -> None:
        for name in self._topics():
            with self._left_to_the_next_round(f"publish topic={name}"):
                try:
                    self._counts["published_topics"] += self._topic_log(name).catch_up()
                except UnknownTopicOrPartitionError:
                    # A folder without a topic: its creation was killed, or it is somebody's junk.
                    continue

    def _expel(self) -> None:
        client = GroupClient(self._offsets, self._completer)
        self._offsets.refresh()
        for group in self._offsets.names():
            with self._left_to_the_next_round(f"expel silent members group={group}"):
                self._counts["expelled_members"] += len(client.expel(group))

    def _expire_ids(self) -> None:
        spec, paths = plan_expiry(self._transactions, self._settings)
        for part in parts_of(paths):
            with self._left_to_the_next_round("expire transactional ids and batch names"):
                ids, names = expire_part(self._transactions, part, spec)
                self._counts["expired_transactional_ids"] += ids
                self._counts["expired_batch_names"] += names

    def _expire_producers(self) -> None:
        for name in self._topics():
            with self._left_to_the_next_round(f"expire producer ids topic={name}"):
                expired = self._topic_log(name).expire_producers(self._settings.producer_id_expiration_ms)
                self._counts["expired_producers"] += expired

    def _expire_offsets(self) -> None:
        for name, ids in topics_of(self._offsets).items():
            gone: list[str] = []
            with self._left_to_the_next_round(f"look whether offsets are of a topic that is gone topic={name}"):
                gone = ids_gone(self._topic_log(name), ids)
            for topic_id in gone:
                self._sweep(f"forget offsets topic={name}", partial(forget_topic_part, self._offsets, name, topic_id))
        spec = plan_offset_expiry(self._offsets, self._settings.offsets_retention_ms)
        self._sweep("expire offsets", partial(expire_offsets_part, self._offsets, spec))

    def _sweep(self, what: str, part: Callable[[], Swept]) -> None:
        swept = None
        while swept is None or swept.something:
            swept = Swept()
            with self._left_to_the_next_round(what):
                swept = part()
                self._counts["expired_offsets"] += swept.offsets
                self._counts["expired_groups"] += swept.groups

    def _clean_logs(self) -> None:
        public_ms = self._settings.vacuum_retention_ms
        # Nobody travels through S: it is kept for as long as a transaction may need it.
        segments_ms = max(SMALLEST_RETENTION_MS, 2 * self._settings.transaction_max_timeout_ms)
        logs: list[tuple[DeltaLog[Any], int]] = [(self._transactions.log, public_ms), (self._offsets.log, public_ms)]
        for topic in map(self._topic_log, self._topics()):
            logs += [(topic.public, public_ms), (topic.segments, segments_ms)]
        for log, retention_ms in logs:
            with self._left_to_the_next_round(f"clean up log={log.root}"):
                cleaned = clean_up(self._context, log.root, retention_ms)
                self._counts["cleaned_log_files"] += len(cleaned.paths)
                log.write_worthwhile_checkpoint(cleaned.tail)

    def _topics(self) -> list[str]:
        return topic_names(self._context.store.folders(TOPICS_FOLDER))
