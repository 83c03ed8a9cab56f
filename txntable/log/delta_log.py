"""A log that is written to: commit at exactly the next slot of a view (PROTOCOL.md §4.2).

Decide, write, apply: ``decide(state) -> actions`` is pure, :meth:`DeltaLog.commit` puts the
actions at ``state.next_version`` if that slot is empty, and only then folds them.  A taken slot
is read, folded, and decided again, so that every decision is made on the complete history below
its slot.

Invariants
----------
* Nothing is written but by put-if-absent of the next slot (log rules 1, 2).
* A view older than the guard is not written through, and no answer is believed that came after the view had grown
  older than it (log rule 3).
* No commit is told of unless the entry that it stands on is there and is the view's own (log rule 13).
* A failure to write a checkpoint never fails a commit (log rule 7).

How a log is read is :mod:`txntable.log.log_view`'s.  Must not know what the table holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from txntable.errors import DamagedDataError, KafkaStorageError, StoreUnavailableError, TxnTableError
from txntable.format.layout import checkpoint_path, commit_path, last_checkpoint_path, log_folder
from txntable.log.actions import Action, Commit, CommitInfo, OperationDetails
from txntable.log.checkpoint import LogTail, encode_hint, is_due, is_worthwhile, release_memory
from txntable.log.cold_start import is_start
from txntable.log.damage import reading
from txntable.log.fold import proved_checkpoint, proved_entry
from txntable.log.head import Head
from txntable.log.log_view import F, LogContext, LogView, moments
from txntable.log.outcome import NO_ANSWER, Attempt, CommitOutcome, Committed, Conflicted, Unchanged, Unknown
from txntable.log.succession import repairs_of
from txntable.log.table_state import TableState, is_same_commit
from txntable.runtime.environment import Instant
from txntable.storage.object_store import PutOutcome, StoredObject
from txntable.storage.retries import Attempts, ending_within

logger = logging.getLogger(__name__)

Decide = Callable[[TableState], Sequence[Action] | None]
Describe = Callable[[TableState, Sequence[Action]], OperationDetails]


class DeltaLog(LogView[F]):
    """A view of the log at `root` that may write; one may be shared by threads, not by processes.

    Parameters
    ----------
    context : LogContext
        Store, environment, clock.
    root : str
        The table's root, relative to the store's.
    fold : Fold
        Kept in step with the state.
    """

    def __init__(self, context: LogContext, root: str, fold: F) -> None:
        super().__init__(context, root, fold)
        # The slot at which a put of the commit under way may still land.
        self._in_doubt: int | None = None
        # What the store said when it did not answer last.
        self._failure: TxnTableError | None = None

    def commit(self, operation: str, decide: Decide, describe: Describe | None = None) -> CommitOutcome:
        """Decide on the newest state, write, apply; again for as long as others take the slot.

        Parameters
        ----------
        operation : str
            For people (``DESCRIBE HISTORY``).
        decide : callable
            Pure: state -> the actions, or ``None`` when nothing needs to be written.  What it
            raises reaches the caller, once it is sure that the state was the newest.
        describe : callable, optional
            Pure: state, actions -> what the entry tells people of them.

        Returns
        -------
        Committed, Unchanged or Unknown
            ``Unknown`` only when the store cannot be reached; call again to find out.

        Raises
        ------
        InvalidRequestError
            Nobody could read what was decided: nothing was written.
        WarehouseReplacedError
            This is not the log that was read before.  Nothing is told committed, and nothing is put any more: stop.
        """

        def attempt() -> Attempt | Unchanged:
            self.ensure_fresh()
            self.prove_related()
            actions = self._decide(decide)
            if actions:
                details = OperationDetails() if describe is None else describe(self.table, actions)
                return self._attempt((operation, details), tuple(actions))
            self._store.sync_read()
            return Unchanged(self.table.version)

        return self._until_answered(operation, attempt)

    def fence(self) -> CommitOutcome:
        """Begin a new incarnation of the log: whatever processes of before still put is void (PROTOCOL.md §6.7).

        In a view that is recovering, what does not go on from the log is left behind for good, too.
        """

        def attempt() -> Attempt | Unchanged:
            version = self.refresh().version
            return (
                Unchanged(None)
                if version is None
                else self._attempt(("FENCE", OperationDetails()), (), begins_log=True)
            )

        return self._until_answered("FENCE", attempt)

    def _until_answered(self, operation: str, attempt: Callable[[], Attempt | Unchanged]) -> CommitOutcome:
        counters = self.context.counters
        with self.lock, counters.timing("log-metrics/commit-time-ns-total"):
            self._check_lost()
            self._fairness.wait_turn()
            self._in_doubt = None
            try:
                ask = partial(self._store.turn, log_folder(self.root))
                with self._fairness.turn(ask, self.look_on) as have_others_committed:
                    if have_others_committed:
                        # What is decided without it would be decided again.
                        self.refresh()
                    while isinstance(outcome := attempt(), Conflicted):
                        counters.add("log-metrics/conflict-total")
            except NO_ANSWER as error:
                # An error is a definite no to the caller: with a put under way it would be a lie.
                if self._in_doubt is None:
                    raise
                counters.add("log-metrics/unknown-total")
                logger.warning("a commit has no answer log=%s version=%d", self.root, self._in_doubt)
                return Unknown(self._in_doubt, error)
            finally:
                self._failure = None
            if isinstance(outcome, Committed):
                counters.add("log-metrics/commit-total")
                logger.debug("committed log=%s version=%d operation=%s", self.root, outcome.version, operation)
                self._fairness.succeeded()
                self._checkpoint_when_due()
            return outcome

    def _decide(self, decide: Decide) -> Sequence[Action] | None:
        """Decide; an answer without a write, and an error, must come from the newest state."""
        before = self.table.version
        try:
            actions = decide(self.table)
            if actions:
                return actions
        except TxnTableError:
            if self.refresh().version == before:
                raise
            return decide(self.table)
        return actions if self.refresh().version == before else decide(self.table)

    def _attempt(
        self, said: tuple[str, OperationDetails], actions: tuple[Action, ...], *, begins_log: bool = False
    ) -> Attempt:
        # Where a sync has failed nothing is put any more, and that is a definite no.
        self._store.sync_read()
        version = self.table.next_version
        decided, path = self._next_commit(said, actions, begins_log=begins_log), commit_path(self.root, version)
        # What is put is what was read here, from the very bytes (log rule 12).
        commit, data = proved_entry(decided, self.context.engine, (self.table, self.fold), path)
        # Before the first attempt: any of them may be the one that landed, and others may have gone on since.
        asked = next(moments)
        attempts = Attempts(self._store.retry_timeout_ms, self._environment)
        with ending_within(self._environment, self._store.retry_timeout_ms):
            while True:
                if self._is_stale():
                    found = self._locate(commit) if attempts.failed else Conflicted(version)
                    if found is not None:
                        return found
                if (outcome := self._put(commit, data, asked)) is not None:
                    return outcome
                # Neither applied nor refused, as far as can be told: the same bytes, the same slot (log rule 1).
                if not attempts.wait():
                    return Unknown(version, self._failure, attempts.tried_for_ms)
                self.context.counters.add("log-metrics/retry-total")

    def _next_commit(
        self, said: tuple[str, OperationDetails], actions: tuple[Action, ...], *, begins_log: bool
    ) -> Commit:
        operation, details = said
        table, commit_id = self.table, self._environment.new_id()
        timestamp_ms = max(self.context.clock.now_ms(), table.timestamp_ms + 1)
        log = commit_id if begins_log or table.log is None else table.log
        info = CommitInfo(commit_id, table.commit_id, timestamp_ms, operation, log, table.chain, details=details)
        return Commit(table.next_version, info, actions, repairs_of(table, actions, timestamp_ms))

    def _put(self, commit: Commit, data: bytes, asked: int) -> Attempt | None:
        path, head, below = commit_path(self.root, commit.version), Head.of(self.table), None
        put_at, free_since = self._environment.instant(), None
        try:
            created, below = self._create(path, data, head)
            entry, free_since = (None, None) if created else self._read_taken(commit.version)
        except StoreUnavailableError as error:
            self._in_doubt, self._failure = commit.version, error
            created, (entry, below) = False, self._look(path, head)
        except KafkaStorageError:
            # It may be there, and what is read back after a failed sync proves nothing (log rule 10).
            self._in_doubt = commit.version
            raise
        if not created and entry is None:
            # Refused, and nothing is there: one of ours may be under way.
            self._in_doubt = commit.version
            return None
        if self._is_stale():
            self._in_doubt = commit.version
            return self._locate(commit)
        if head is not None:
            self._require_own(head, below)
        if entry is not None:
            with reading(path):
                is_mine = is_same_commit(commit, winner := self._decode(commit.version, entry))
            if not is_mine:
                self._in_doubt = None
                self._follow(winner, asked, free_since)
                return Conflicted(commit.version)
            self._make_durable(commit)
        self._apply(commit)
        self._fairness.saw_round_trip(put_at)
        self._show(put_at)
        self._asked, self._known = asked, Head.of(self.table)
        return Committed(commit.version)

    def _create(self, path: str, data: bytes, head: Head | None) -> tuple[bool, bytes | None]:
        """Put the entry, and look at the one below it, which every view but that of a new table stands on."""
        if head is None:
            return self._store.put_if_absent(path, data) is PutOutcome.CREATED, None
        outcome, below = self._store.put_next(path, data, commit_path(self.root, head.version))
        return outcome is PutOutcome.CREATED, below

    def _read_taken(self, version: int) -> tuple[StoredObject | None, Instant | None]:
        """Return who has a slot, and since when the next one is known to be free; remote stores ask both at once."""
        path, asked_at = commit_path(self.root, version), self._environment.instant()
        if self._store.parallel_reads < 2:
            return self._store.get(path), None
        entry, above = self._store.get_many([path, commit_path(self.root, version + 1)])
        return entry, asked_at if above is None else None

    def _follow(self, winner: Commit, asked: int, free_since: Instant | None) -> None:
        """Take the entry that has the slot, which was read already, and those above it."""
        if not self._take(winner):
            self._shown_at = None
        # What is decided on from here on stands on this answer.
        self._answered = next(moments)
        self._fairness.saw_another()
        if free_since is None or self._is_stale():
            self.refresh()
        else:
            self._show(free_since)
            self._asked, self._known = asked, Head.of(self.table)

    def _look(self, path: str, head: Head | None) -> tuple[StoredObject | None, bytes | None]:
        """Return what is in the slot and the beginning of the entry below; nothing where there is no answer."""
        try:
            if head is None:
                return self._store.get(path), None
            (entry,), below = self._store.get_above([path], commit_path(self.root, head.version))
        except NO_ANSWER:
            return None, None
        return entry, below

    def _locate(self, commit: Commit) -> Attempt | None:
        """Look in a newly opened view whether the commit is in the log (log rule 3); ``None``: its slot is free.

        The slot itself proves nothing: it may have been cleaned up and created again, by us or by another.  The
        commit is in the log when it is the head, or the next one names it as its predecessor.
        """
        self._reopen()
        head = self.table.version
        if self.table.next_version == commit.version and self.table.commit_id == commit.info.previous:
            return None  # it may still land there: only the same bytes may be put
        if head is None or head < commit.version:
            return Conflicted(commit.version)
        if head > commit.version:
            own = Head(commit.version, commit.info.commit_id, commit.info.log)
            follower = own.find_follower(self._store, self.root, head)
            if follower is None:
                return Unknown(commit.version, self._failure)
            mine = follower.previous == commit.info.commit_id
        else:
            mine = self.table.commit_id == commit.info.commit_id
        if mine:
            self._make_durable(commit)
        self._in_doubt = None
        return Committed(commit.version) if mine else Conflicted(commit.version)

    def _make_durable(self, commit: Commit) -> None:
        """Let one's own entry that was read back be durable before it is told of; an error leaves it unknown."""
        self._in_doubt = commit.version
        self._store.sync_read()

    def _checkpoint_when_due(self) -> None:
        if is_due(self.table.version or 0, len(self.table.files)):
            try:
                self._write_checkpoint()
            except (TxnTableError, OSError):
                logger.warning("checkpoint was not written; the next one is", exc_info=True)

    def write_checkpoint(self) -> int:
        """Write the checkpoint of the view's version, then the hint; return the version.

        Raises
        ------
        StoreUnavailableError, InvalidRequestError
            Nothing is harmed; a later version writes one.
        """
        with self.lock:
            version = self.ensure_fresh().version
            if version is None:
                raise DamagedDataError("there is no table to write a checkpoint of", log=self.root)
            # No entry is put, so nothing else would tell that the log is another by now.
            if self._prove_head():
                self._write_checkpoint()
            return version

    def _write_checkpoint(self) -> None:
        if self.table.void:
            # Who starts at a version takes its commit id from its entry.
            return
        version = self.table.next_version - 1
        self.table.forget_tombstones(self.table.tombstones_since_ms(self.context.guard_ms))
        self.table.files.absorb_tail()
        path = checkpoint_path(self.root, version)
        data = proved_checkpoint(self.table, self.fold, path)
        if self._store.put_if_absent(path, data) is PutOutcome.EXISTS and not is_start(self._store, self.root, version):
            # Of another log, which stood here before: nothing may be replaced; the next version has another name.
            return
        self._store.put(last_checkpoint_path(self.root), encode_hint(version, len(self.table.files)))
        release_memory()

    def write_worthwhile_checkpoint(self, tail: LogTail) -> None:
        """Write the view's checkpoint if the next to open the log gains more than it costs; raises as the other."""
        with self.lock:
            if is_worthwhile(tail, self.ensure_fresh(), self.table.tombstones_since_ms(self.context.guard_ms)):
                self.write_checkpoint()
