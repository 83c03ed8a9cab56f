"""The coordinator job: aborts what timed out, completes what was decided, expires what is idle (PROTOCOL.md §6.6).

Nobody needs it to be right: anyone completes and times out what stands in the way.  It makes sure
that it happens when nobody comes by, and it is the only one that expires and cleans up.  Owns the
lease and when what is due.  Keeps no state of its own: killed anywhere, another one goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import LARGEST_NUMBER
from txntable.errors import IllegalStateError, InvalidConfigError, RetriableError, TransactionCoordinatorFencedError
from txntable.format.layout import check_topic_name
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.offsets.offset_log import OffsetLog
from txntable.runtime.environment import Instant
from txntable.runtime.one_process import OfOneProcess
from txntable.topics.topic_log import TopicLog
from txntable.transactions.decided_end import require_whole
from txntable.transactions.transaction_log import TransactionLog
from txntable.upkeep.coordinator_round import CompletionPlan, CoordinatorReport, CoordinatorRound, Task

logger = logging.getLogger(__name__)

# How long a stop may take to be noticed.
_STEP_MS = 200


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """How often the continuous coordinator job does what; intervals in milliseconds, with Kafka's defaults.

    Attributes
    ----------
    completion_interval_ms : int
        Between rounds: time-outs and completion.  The others are done by the first round after they are due.
    publication_interval_ms : int
        Projection of topics whose writer died before it; also what keeps the views of topics warm.
    member_expulsion_interval_ms : int
        Expulsion of members of groups that have not sent a heartbeat for longer than their session timeout.
    transactional_id_expiration_interval_ms : int
        Expiry of transactional ids and batch names.
    producer_id_expiration_interval_ms : int
        Expiry of producer ids in partitions.
    offset_expiration_interval_ms : int
        Expiry of offsets and of empty groups.
    log_cleanup_interval_ms : int
        Deletion of log entries that nothing needs.
    decision_age_ms : int
        Younger decisions are left to their own producers.
    given_up_topics : tuple of str
        Names of topics that have lost their partition logs, and of which no backup has them: transactions are
        completed without what they wrote there.  It is lost then.

    Raises
    ------
    InvalidConfigError
        An interval is no positive integer, the age is negative or no integer, or the topics are no tuple: set another.
    InvalidTopicError
        Kafka would not accept the name of a topic.
    """

    completion_interval_ms: int = 10_000
    publication_interval_ms: int = 60_000
    member_expulsion_interval_ms: int = 30_000
    transactional_id_expiration_interval_ms: int = 3_600_000
    producer_id_expiration_interval_ms: int = 600_000
    offset_expiration_interval_ms: int = 600_000
    log_cleanup_interval_ms: int = 3_600_000
    decision_age_ms: int = 1_000
    given_up_topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = (*self.intervals_ms().values(), self.decision_age_ms)
        fit = all(type(one) is int and 0 <= one <= LARGEST_NUMBER for one in numbers)
        if not fit or min(numbers[:-1]) < 1:
            raise InvalidConfigError(
                "intervals are integers of at least 1 ms, and an age is one of at least 0", config=shown(self)
            )
        if not isinstance(self.given_up_topics, tuple):
            raise InvalidConfigError("the topics that are given up are a tuple of names", config=shown(self))
        for name in self.given_up_topics:
            check_topic_name(name)

    def intervals_ms(self) -> dict[Task, int]:
        """Return the interval of each task, in the order in which they are done."""
        return {
            Task.COMPLETE: self.completion_interval_ms,
            Task.PUBLISH: self.publication_interval_ms,
            Task.EXPEL: self.member_expulsion_interval_ms,
            Task.EXPIRE_IDS: self.transactional_id_expiration_interval_ms,
            Task.EXPIRE_PRODUCERS: self.producer_id_expiration_interval_ms,
            Task.EXPIRE_OFFSETS: self.offset_expiration_interval_ms,
            Task.CLEAN_LOGS: self.log_cleanup_interval_ms,
        }


class TransactionCoordinator(OfOneProcess):
    """The coordinator job of a warehouse; made by :meth:`txntable.Warehouse.coordinator`.

    Parameters
    ----------
    transactions : TransactionLog
        T.
    offsets : OffsetLog
        O.
    topic_log : callable
        Topic name -> its logs.
    settings : callable
        Returns the warehouse's settings as they are.
    config : CoordinatorConfig
        Intervals.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        offsets: OffsetLog,
        topic_log: Callable[[str], TopicLog],
        settings: Callable[[], WarehouseSettings],
        config: CoordinatorConfig,
    ) -> None:
        self._environment = transactions.context.environment
        self._owner = self._environment.new_id()
        self._claims = transactions
        self._transactions = transactions.leased(self._owner)
        self._offsets, self._topic_log, self._settings, self._config = offsets, topic_log, settings, config
        self._coordinator_epoch: int | None = None
        self._runs_once = self._claims_again = False

    def claim(self) -> int:
        """Take the lease, whoever has it; return the coordinator epoch.

        Raises
        ------
        TransactionCoordinatorFencedError
            It was lost to a job of one round, and by now one that runs all the time has it: stop.
        DamagedDataError
            The transaction log has lost its newest entries: nothing was written.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        require_whole(self._claims, self._offsets, self._topic_log)
        lease = self._claims.claim_lease(self._owner, runs_once=self._runs_once, again=self._claims_again)
        self._coordinator_epoch, self._claims_again = lease.coordinator_epoch, False
        logger.info("lease claimed owner=%s coordinator_epoch=%d", self._owner, self._coordinator_epoch)
        return self._coordinator_epoch

    def run_once(self) -> CoordinatorReport:
        """Do everything that there is to do, now; made for a scheduler.

        The first call claims the lease, as a job of one round: one that runs on all the time claims it again and goes
        on.  A lease that was lost is not claimed again here.

        Returns
        -------
        CoordinatorReport
            What was done, and how much failed: call again for that.

        Raises
        ------
        TransactionCoordinatorFencedError
            Another job took the lease over: leave the work to it.
        RetriableError
            The transaction log could not be reached: call again.
        DamagedDataError, UnsupportedFormatError, StorePermissionError
            The transaction log cannot be read or written.
        """
        if self._coordinator_epoch is None:
            self._runs_once = True
        report, _ = self._round(Task, decision_age_ms=0)
        return report

    def run(self, stop: Callable[[], bool], tell: Callable[[CoordinatorReport], object]) -> None:
        """Do what is due, again and again, until told to stop; everything is due at first.

        A lease that :meth:`run_once` of another job has taken is claimed again in the next round.

        Parameters
        ----------
        stop : callable
            Asked several times a second; ``True``: return after the task under way.
        tell : callable
            Gets the report of each round.

        Raises
        ------
        IllegalStateError
            The config gives topics up, which is for one round: a topic may be lost again.
        TransactionCoordinatorFencedError
            Another job that runs all the time took the lease over.
        DamagedDataError, UnsupportedFormatError, StorePermissionError
            The transaction log cannot be read or written.
        """
        if self._config.given_up_topics:
            raise IllegalStateError("what is given up is given up in one round: call run_once()")
        self._runs_once = False
        done_at: dict[Task, Instant] = {}
        while not stop():
            started_at = self._environment.instant()
            due = [
                task
                for task, interval_ms in self._config.intervals_ms().items()
                if task not in done_at or self._environment.since_ms(done_at[task]) >= interval_ms
            ]
            try:
                unless_stopped = (task for task in due if not stop())
                report, done = self._round(unless_stopped, self._config.decision_age_ms)
            except RetriableError as error:
                logger.warning("the round failed, and the next one tries again: %s", error)
            except TransactionCoordinatorFencedError:
                lease = self._claims.lease()
                if lease is None or not lease.runs_once:
                    raise
                logger.info("a job of one round took the lease, which the next round claims again")
                self._coordinator_epoch, self._claims_again = None, True
            else:
                done_at |= dict.fromkeys(done, started_at)
                tell(report)
            while not stop() and self._environment.since_ms(started_at) < self._config.completion_interval_ms:
                self._environment.sleep_ms(min(_STEP_MS, self._config.completion_interval_ms))

    def _round(self, tasks: Iterable[Task], decision_age_ms: int) -> tuple[CoordinatorReport, list[Task]]:
        """Do the tasks; return what was done, and which tasks need not be done again at once."""
        coordinator_epoch = self.claim() if self._coordinator_epoch is None else self._coordinator_epoch
        work: CoordinatorRound | None = None
        done = []
        for task in tasks:
            # One request for each task: it shows what there is to do, whether the lease is held, and the settings.
            self._transactions.refresh()
            work = work or self._work(decision_age_ms)
            if work.run(task):
                done.append(task)
        return (work or self._work(decision_age_ms)).report(coordinator_epoch), done

    def _work(self, decision_age_ms: int) -> CoordinatorRound:
        plan = CompletionPlan(decision_age_ms, self._config.given_up_topics)
        return CoordinatorRound(self._transactions, self._offsets, self._topic_log, self._settings(), plan)
