"""One view of one Delta log: follow its tail, commit at exactly the next slot (PROTOCOL.md §4).

Decide, write, apply: ``decide(state) -> actions`` is pure, :meth:`DeltaLog.commit` puts the
actions at ``state.next_version`` if that slot is empty, and only then folds them.  A taken slot
is read, folded, and decided again, so that every decision is made on the complete history below
its slot.

Invariants
----------
* Nothing is written but by put-if-absent of the next slot (log rules 1, 2).
* A view older than the guard is never probed nor written through, and no answer is believed
  that came after the view had grown older than it (log rule 3).
* A failure to write a checkpoint never fails a commit (log rule 7).

Must not know what the table holds: a :class:`Fold` is kept beside the state.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from txntable.environment import Environment, Instant
from txntable.errors import DamagedDataError, StoreUnavailableError, TxnTableError
from txntable.layout import checkpoint_path, commit_path, last_checkpoint_path
from txntable.log.actions import Action, Commit, CommitInfo, decode_commit
from txntable.log.checkpoint import LogTail, encode_checkpoint, encode_hint, is_due, is_worthwhile
from txntable.log.cold_start import load_newest
from txntable.log.damage import reading
from txntable.log.entry_encoding import seal
from txntable.log.fairness import Fairness
from txntable.log.outcome import NO_ANSWER, Attempt, Committed, Conflicted, Outcome, Unchanged, Unknown
from txntable.log.table_state import TableState, check_one_action_per_path, is_same_commit
from txntable.storage.object_store import ObjectStore, PutOutcome, StoredObject
from txntable.storage.store_clock import StoreClock

logger = logging.getLogger(__name__)

_LARGEST_WINDOW = 16
_PUT_ATTEMPTS = 6
_FIRST_BACKOFF_MS = 50.0
_LARGEST_BACKOFF_MS = 3_000.0
_moments = itertools.count()


class Fold(Protocol):
    """What a table's log means, kept beside its state by the same fold."""

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded (from a checkpoint, or empty)."""
        ...

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state *before* it."""
        ...


F = TypeVar("F", bound=Fold)
Decide = Callable[[TableState], Sequence[Action] | None]


@dataclass(frozen=True, slots=True)
class LogContext:
    """What every log of a warehouse shares.

    Attributes
    ----------
    store : ObjectStore
        The door.
    environment : Environment
        Ages, waiting, commit ids.
    clock : StoreClock
        The store's time, for in-commit timestamps.
    guard_ms : int
        Age beyond which a view is not trusted (log rule 3).
    engine : str
        Name and version, for ``commitInfo``.
    """

    store: ObjectStore
    environment: Environment
    clock: StoreClock
    guard_ms: int = 300_000
    engine: str = "txntable"


class DeltaLog(Generic[F]):
    """A view of the log at `root`; one may be shared by threads.

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
        self.context = context
        self.root = root
        self.fold = fold
        self.table = TableState()
        self.lock = threading.RLock()
        self._store = context.store
        self._environment = context.environment
        # Just before the request whose answer showed the tail: the view's age counts from here.
        self._shown_at: Instant | None = None
        # `_asked`: before the request that showed the tail.  `_answered`: when the last answer was in.
        self._asked = self._answered = next(_moments)
        # The slot at which a put of the commit under way may still land.
        self._unsettled: int | None = None
        self._fairness = Fairness(context.environment)

    # -- reading ----------------------------------------------------------------------------

    def was_read_after(self, other: DeltaLog[Any]) -> bool:
        """Return whether this view's tail was asked for after the answer that `other` stands on was in.

        Exact within a process (a counter, no clock): verification needs it (PROTOCOL.md §6).
        """
        return self._asked > other._answered

    def refresh(self) -> TableState:
        """Bring the view to the tail of the log and return its state.

        Returns
        -------
        TableState
            ``version`` is ``None`` when there is no such table.

        Raises
        ------
        StoreUnavailableError
            Try again.
        DamagedDataError, UnsupportedFormatError
            The log can not be read; the message names the object.
        """
        with self.lock:
            if self._is_stale() or not self._follow_tail():
                self._reopen()
            return self.table

    def ensure_fresh(self) -> TableState:
        """Return the state, at most the guard old: asks the store only when it must."""
        with self.lock:
            if self._is_stale():
                self._reopen()
            return self.table

    def _is_stale(self) -> bool:
        return self._shown_at is None or self._environment.since_ms(self._shown_at) >= self.context.guard_ms

    def _follow_tail(self, window: int = 1) -> bool:
        """Fold what came since; ``False`` when the view grew too old for its answers meanwhile."""
        while True:
            slots = range(self.table.next_version, self.table.next_version + window)
            shown_at, asked = self._environment.instant(), next(_moments)
            found = self._store.get_many([commit_path(self.root, slot) for slot in slots])
            if self._is_stale():
                return False
            self._show(shown_at)
            for slot, entry in zip(slots, found, strict=True):
                if entry is None:
                    if any(found[slot - slots.start + 1 :]):
                        self._require_late(slot)
                        break
                    self._asked = asked
                    return True
                self._apply(self._decode(slot, entry))
                self._fairness.saw_another()
            window = min(window * 2, _LARGEST_WINDOW)

    def _require_late(self, slot: int) -> None:
        """Return when the entry that was missing below another one has come since: the two were asked for at once."""
        path = commit_path(self.root, slot)
        if self._store.get(path) is None:
            raise DamagedDataError("the log has a gap: an entry is gone; restore it from a backup", path=path)

    def _show(self, shown_at: Instant) -> None:
        self._fairness.saw_round_trip(shown_at)
        self._shown_at, self._answered = shown_at, next(_moments)

    def _decode(self, version: int, entry: StoredObject) -> Commit:
        return decode_commit(version, entry.data, commit_path(self.root, version))

    def _apply(self, commit: Commit) -> None:
        # What can not be folded is looked at by a view that is opened anew: it may have been read wrong.
        shown_at, self._shown_at = self._shown_at, None
        with reading(commit_path(self.root, commit.version)):
            self.table.check_follows(commit)
            self.fold.apply(commit, self.table)
            self.table.apply(commit)
        self._shown_at = shown_at
        # Whoever follows a log for years must not remember more than who opens it.
        if self.table.has_many_tombstones:
            self.table.forget_tombstones(self.table.tombstones_since_ms(self.context.guard_ms))

    def _reopen(self) -> None:
        """Forget the view and load the newest checkpoint with its tail."""
        proved = False
        try:
            proved = any(self._load() for _ in range(3))
        finally:
            if not proved:
                # Whatever was read until the error is not known to end at the tail: it is no view.
                self._shown_at = None
        if not proved:
            raise StoreUnavailableError("the log changes faster than it can be read; try again", log=self.root)
        self._fairness.forget_others()

    def _load(self) -> bool:
        opened_at = self._environment.instant()
        loaded = load_newest(self._store, self.root)
        self.table = loaded.table
        with reading(checkpoint_path(self.root, loaded.table.next_version - 1)):
            self.fold.restore(self.table)
        self._shown_at = opened_at
        try:
            for entry in loaded.beginning:
                self._apply(self._decode(self.table.next_version, entry))
            followed = self._follow_tail(window=1 + len(loaded.beginning))
        except DamagedDataError:
            # Unless a cleanup took the beginning away meanwhile: then it is read again.
            if loaded.still_there():
                raise
            return False
        return followed and loaded.still_there()

    # -- writing ----------------------------------------------------------------------------

    def commit(self, operation: str, decide: Decide) -> Outcome:
        """Decide on the newest state, write, apply; again for as long as others take the slot.

        Parameters
        ----------
        operation : str
            For people (``DESCRIBE HISTORY``).
        decide : callable
            Pure: state -> the actions, or ``None`` when nothing needs to be written.  What it
            raises reaches the caller, once it is sure that the state was the newest.

        Returns
        -------
        Committed, Unchanged or Unknown
            ``Unknown`` only when the store can not be reached; call again to find out.
        """
        with self.lock:
            self._fairness.wait_turn()
            self._unsettled = None
            try:
                while True:
                    self.ensure_fresh()
                    actions = self._decide(decide)
                    if not actions:
                        return Unchanged(self.table.version)
                    outcome = self._attempt(operation, tuple(actions))
                    if not isinstance(outcome, Conflicted):
                        break
            except NO_ANSWER:
                # An error is a definite no to the caller: with a put under way it would be a lie.
                if self._unsettled is None:
                    raise
                return Unknown(self._unsettled)
            if isinstance(outcome, Committed):
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

    def _attempt(self, operation: str, actions: tuple[Action, ...]) -> Attempt:
        check_one_action_per_path(actions)
        version = self.table.next_version
        timestamp_ms = max(self.context.clock.now_ms(), self.table.timestamp_ms + 1)
        info = CommitInfo(self._environment.new_id(), self.table.commit_id, timestamp_ms, operation, self.table.chain)
        commit, data = seal(Commit(version, info, actions), self.context.engine)
        # Before the first attempt: any of them may be the one that landed, and others may have gone on since.
        asked = next(_moments)
        for attempt in range(_PUT_ATTEMPTS):
            if self._is_stale() and (found := self._locate(commit) if attempt else Conflicted(version)) is not None:
                return found
            if (outcome := self._put(commit, data, asked)) is not None:
                return outcome
            # Neither applied nor refused, as far as can be told: the same bytes, the same slot (log rule 1).
            backoff = min(_FIRST_BACKOFF_MS * 2**attempt, _LARGEST_BACKOFF_MS)
            self._environment.sleep_ms(backoff * self._environment.uniform(0.5, 1.5))
        return Unknown(version)

    def _put(self, commit: Commit, data: bytes, asked: int) -> Attempt | None:
        path = commit_path(self.root, commit.version)
        put_at = self._environment.instant()
        try:
            created = self._store.put_if_absent(path, data) is PutOutcome.CREATED
            entry = None if created else self._store.get(path)
        except StoreUnavailableError:
            self._unsettled = commit.version
            created, entry = False, self._get_or_none(path)
        if not created and entry is None:
            # Refused, and nothing is there: one of ours may be under way.
            self._unsettled = commit.version
            return None
        if self._is_stale():
            self._unsettled = commit.version
            return self._locate(commit)
        if entry is not None:
            with reading(path):
                is_mine = is_same_commit(commit, winner := self._decode(commit.version, entry))
            if not is_mine:
                self._unsettled = None
                self._follow(winner)
                return Conflicted(commit.version)
        self._apply(commit)
        self._show(put_at)
        self._asked = asked
        return Committed(commit.version)

    def _follow(self, winner: Commit) -> None:
        """Fold the commit that has the slot, which was read already, and those above it."""
        self._apply(winner)
        # What is decided on from here on stands on this answer.
        self._answered = next(_moments)
        self._fairness.saw_another()
        self.refresh()

    def _get_or_none(self, path: str) -> StoredObject | None:
        try:
            return self._store.get(path)
        except NO_ANSWER:
            return None

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
            follower = self._store.get(commit_path(self.root, commit.version + 1))
            if follower is None:
                return Unknown(commit.version)
            mine = self._decode(commit.version + 1, follower).info.previous == commit.info.commit_id
        else:
            mine = self.table.commit_id == commit.info.commit_id
        self._unsettled = None
        return Committed(commit.version) if mine else Conflicted(commit.version)

    def _checkpoint_when_due(self) -> None:
        if is_due(self.table.version or 0, len(self.table.files)):
            try:
                self.write_checkpoint()
            except (TxnTableError, OSError):
                logger.warning("checkpoint was not written; the next one is", exc_info=True)

    def write_checkpoint(self) -> int:
        """Write the checkpoint of the view's version, then the hint; return the version.

        Raises
        ------
        StoreUnavailableError
            Nothing is harmed; a later version writes one.
        """
        with self.lock:
            version = self.ensure_fresh().version
            if version is None:
                raise DamagedDataError("there is no table to write a checkpoint of", log=self.root)
            self.table.forget_tombstones(self.table.tombstones_since_ms(self.context.guard_ms))
            self._store.put_if_absent(checkpoint_path(self.root, version), encode_checkpoint(self.table))
            self._store.put(last_checkpoint_path(self.root), encode_hint(version, len(self.table.files)))
            return version

    def write_worthwhile_checkpoint(self, tail: LogTail) -> None:
        """Write the view's checkpoint if the next to open the log gains more than it costs; raises as the other."""
        with self.lock:
            if is_worthwhile(tail, self.ensure_fresh(), self.table.tombstones_since_ms(self.context.guard_ms)):
                self.write_checkpoint()
