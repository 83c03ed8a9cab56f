"""One view of one Delta log: opened from cold, then followed at its tail (PROTOCOL.md §4.2, §4.3).

Invariants
----------
* A view older than the guard is never probed, and no answer is believed that came after the view had grown older
  than it (log rule 3).
* What cannot be folded leaves no view behind: the next call opens the log anew.
* What came is believed when the entry that it stands on is still there (log rule 13); what other incarnations of the
  log have left is stepped over (§4.6).

Must not know what the table holds: a :class:`txntable.log.fold.Fold` is kept beside the state.  Writing is
:mod:`txntable.log.delta_log`'s.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary, ref

from txntable.errors import DamagedDataError, StoreUnavailableError, WarehouseReplacedError
from txntable.format.layout import TRANSACTION_LOG_ROOT, checkpoint_path, commit_path
from txntable.log.actions import Commit, decode_commit, decode_commit_info
from txntable.log.asking import Asking, Found, answer, answer_all
from txntable.log.cold_start import Start, load_newest
from txntable.log.damage import reading
from txntable.log.fairness import Fairness
from txntable.log.fold import Fold, take
from txntable.log.head import Head
from txntable.log.stepping_over import is_void
from txntable.log.succession import EntryStatus, entry_status
from txntable.log.table_state import TableState
from txntable.runtime.counters import Counters
from txntable.runtime.environment import Environment, Instant
from txntable.runtime.one_process import OfOneProcess
from txntable.storage.object_store import ObjectStore, StoredObject
from txntable.storage.store_clock import StoreClock

logger = logging.getLogger(__name__)

# Of a store that asks for one object after the other, too: a gap shows in a window.
_LARGEST_WINDOW = 16
_AHEAD = 12
moments = itertools.count()

GUARD_MS = 300_000
"""Age beyond which a view is not trusted (log rule 3)."""


F = TypeVar("F", bound=Fold)


@dataclass(frozen=True, slots=True)
class LogContext:
    """What every log of a warehouse shares.

    Attributes
    ----------
    store : ObjectStore
        The store.
    environment : Environment
        Ages, waiting, commit ids.
    clock : StoreClock
        The store's time, for in-commit timestamps.
    guard_ms : int
        Age beyond which a view is not trusted (log rule 3).
    engine : str
        Name and version, for ``commitInfo``.
    recovering : bool
        Whether an operator fences the logs after a restore: what does not go on from them is stepped over.
    counters : Counters
        Of the handle.
    """

    store: ObjectStore
    environment: Environment
    clock: StoreClock
    guard_ms: int = GUARD_MS
    engine: str = "txntable"
    recovering: bool = False
    shared: WeakValueDictionary[str, LogView[Any]] = field(
        default_factory=WeakValueDictionary, repr=False, compare=False
    )
    """The views that every other one of the handle has, by their roots: that of T."""
    counters: Counters = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", Counters(self.environment.ticks_ns))


class LogView(OfOneProcess, Generic[F]):
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
        self.lock = context.environment.lock()
        self._store = context.store
        self._environment = context.environment
        # Just before the request whose answer showed the tail: the view's age counts from here.
        self._shown_at: Instant | None = None
        # What it was when it was last read; the log that is opened anew has to go on from there.
        self._known: Head | None = None
        self._proved_at: Instant | None = None
        self._is_lost = self._opened = False
        # When it was opened anew, and when its head was last seen to be there (moments of the process).
        self._opened_at = self._proved_after = next(moments)
        # What is written here is decided on these, too: T, and a topic's other table.
        self._transactions = context.shared.get(TRANSACTION_LOG_ROOT)
        self._beside: ref[LogView[Any]] | None = None
        if root == TRANSACTION_LOG_ROOT:
            context.shared[root] = self
        # `_asked`: before the request that showed the tail.  `_answered`: when the last answer was in.
        self._asked = self._answered = next(moments)
        self._fairness = Fairness(context.environment)

    # -- reading ----------------------------------------------------------------------------

    def was_read_after(self, other: LogView[Any]) -> bool:
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
            The log cannot be read; the message names the object.
        WarehouseReplacedError
            It is not the log that was read before: stop, and open the warehouse anew.
        """
        with self.lock:
            self._check_lost()
            answer(self._store, self._refreshing())
            return self.table

    def look_on(self) -> bool:
        """Bring the view to the tail of the log, and return whether something was there; raises as :meth:`refresh`."""
        with self.lock:
            before = self.table.version
            return self.refresh().version != before

    def read_since(self, moment: int) -> None:
        """Bring the view to a tail that was asked for since a moment of this process, by whichever thread.

        Parameters
        ----------
        moment : int
            From :data:`moments`.

        Raises
        ------
        TxnTableError
            As :meth:`refresh`.
        """
        with self.lock:
            if self._asked <= moment or self._is_stale():
                self.refresh()

    def ensure_fresh(self) -> TableState:
        """Return the state, at most the guard old: asks the store only when it must."""
        with self.lock:
            self._check_lost()
            if self._is_stale():
                self._reopen()
            return self.table

    @property
    def opening(self) -> int:
        """Which of its openings the view stands on: another number once it was opened anew."""
        return self._opened_at

    @property
    def is_read(self) -> bool:
        """Whether the view can be trusted as it is, so that its tail is all that :meth:`refresh` reads."""
        return not self._is_stale()

    def _is_stale(self) -> bool:
        return self._shown_at is None or self._environment.since_ms(self._shown_at) >= self.context.guard_ms

    def _refreshing(self) -> Asking[None]:
        if self._is_stale() or not (yield from self._following_tail()):
            yield from self._reopening()
        self._known = Head.of(self.table)

    def _following_tail(self) -> Asking[bool]:
        """Fold what came since; ``False`` when the view grew too old for its answers meanwhile."""
        return (yield from self._following(window_sizes(self._store.parallel_reads), Head.of(self.table)))

    def _following(self, sizes: Iterator[int], unproved: Head | None, ahead: _Window | None = None) -> Asking[bool]:
        """Fold what is above, window by window; who opens a log has just read what stands below, and some above."""
        due, proves = self._is_proof_due(), unproved is not None
        if ahead is not None and (ended := self._take_all(ahead)) is not None:
            return ended
        while True:
            stood_on = Head.of(self.table)
            window = yield from self._asking(next(sizes), unproved if due else None)
            if window is None:
                return False
            unproved = None if due else unproved
            self._fairness.saw_round_trip(window.shown_at)
            if (ended := self._take_all(window)) is not None:
                return ended
            # What came is believed when what it stands on is still there: that is asked with the next slots.
            due = True
            unproved = (unproved or stood_on) if proves else None

    def _take_all(self, window: _Window) -> bool | None:
        """Fold a window; ``True``: it showed the tail, ``False``: the view is too old to say, ``None``: go on."""
        self._show(window.shown_at)
        for slot, entry in enumerate(window.found, window.first):
            if entry is None:
                above = window.found[slot - window.first + 1 :]
                if any(above) and not self._is_tail(slot, above):
                    return None
                self._asked = window.asked
                return True
            if not self._take(self._decode(slot, entry)):
                return False
            self._fairness.saw_another()
        return None

    def _asking(self, size: int, unproved: Head | None) -> Asking[_Window | None]:
        """Return what is in the next slots; ``None`` when the view is too old to believe it."""
        first = self.table.next_version
        paths = [commit_path(self.root, slot) for slot in range(first, first + size)]
        shown_at, asked = self._environment.instant(), next(moments)
        if unproved is None:
            window = _Window(first, (yield paths), shown_at, asked)
            return None if self._is_stale() else window
        found, beginning = self._store.get_above(paths, commit_path(self.root, unproved.version))
        if self._is_stale():
            return None
        self._require_own(unproved, beginning)
        return _Window(first, found, shown_at, asked)

    def _is_tail(self, slot: int, above: Found) -> bool:
        """Return whether the log ends at a slot that is missing, though there are entries above it.

        ``False``: it has come since, as they were all asked for at once.
        """
        path = commit_path(self.root, slot)
        if self._store.get(path) is not None:
            return False
        for version, entry in enumerate(above, slot + 1):
            # What another incarnation has left there is judged when the log is so long.
            if entry is not None and not self.context.recovering and self._is_of_this_log(version, entry):
                # Unless it is this view that is of another past.
                if not self._prove_head():
                    return False
                raise DamagedDataError(
                    "the log has a gap: an entry is gone; restore it first, from a backup or an older version; only "
                    "where the whole warehouse was restored to an older state, run txntable warehouse fence-all",
                    path=path,
                )
        return True

    def _is_of_this_log(self, version: int, entry: StoredObject) -> bool:
        return decode_commit_info(entry.data, commit_path(self.root, version)).log == self.table.log

    def _take(self, commit: Commit) -> bool:
        """Fold an entry, or step over it; ``False`` when the view is too old to say."""
        if entry_status(commit.info, self.table) is not EntryStatus.COUNTS:
            # Either the entry is foreign, or this view is: what it stands on tells.  A log that is being opened may
            # have been replaced between two answers: then it is read again.
            if not (self._prove_head() if self._opened else self._is_head_there()):
                return False
            if is_void(self._store, self.root, self.table, commit, recovering=self.context.recovering):
                self.table.step_over(commit)
                return True
            # It is damage, unless the log is gone since this view was at its tail: then what it stands on by now may
            # be what another process of the past has left there.
            if self._opened and not self._prove(self._known):
                return False
        if self._opened and commit.info.begins_log and self.table.log is not None and not self.context.recovering:
            # What was uploaded before the restore that this fence is of may be gone: nobody goes on over it.
            self._lose()
        self._apply(commit)
        return True

    # -- whether it is still the same log ------------------------------------------------------

    def _is_proof_due(self) -> bool:
        return self._proved_at is None or self._environment.since_ms(self._proved_at) >= self.context.guard_ms

    def _prove_head(self) -> bool:
        """Prove what the view stands on; ``False`` when it is too old to say.

        A view that is being opened may meet a cleanup: it asks for its own beginning when it is at the tail.
        """
        return self._prove(Head.of(self.table) if self._opened else None)

    def _prove(self, head: Head | None) -> bool:
        if head is None:
            return True
        beginning = head.read_beginning(self._store, self.root)
        if self._is_stale():
            return False
        self._require_own(head, beginning)
        return True

    def _is_head_there(self) -> bool:
        head = Head.of(self.table)
        return head is None or head.is_begun_by(head.read_beginning(self._store, self.root))

    def _require_own(self, head: Head, beginning: bytes | None) -> None:
        """Refuse to go on when the entry that the view stands on is gone, or another's (log rule 13)."""
        if not head.is_begun_by(beginning):
            self._lose()
        self._proved_at, self._proved_after = self._environment.instant(), next(moments)

    def stand_beside(self, other: LogView[Any]) -> None:
        """Let what is written to this log be decided on `other`, too, for as long as that is in use."""
        self._beside = ref(other)

    def prove_related(self) -> None:
        """Refuse to write what is decided on logs that are gone, to one that was opened only since (log rule 13).

        Raises
        ------
        WarehouseReplacedError
            A log that this handle has followed is another now.
        """
        for other in (self._transactions, None if self._beside is None else self._beside()):
            if other is not None:
                other.prove_since(self._opened_at)

    def prove_since(self, moment: int) -> None:
        """Make sure that the log is still there, unless that was seen since a moment of this process."""
        # Without its lock, which another thread may hold that waits for ours.
        known = self._known if self._proved_after < moment else None
        if known is None:
            return
        beginning = known.read_beginning(self._store, self.root)
        if not known.is_begun_by(beginning) and (self._is_stale() or known is not self._known or not self._opened):
            # It may have been cleaned up: only the log opened anew can tell.
            self._refresh_unless_in_use()
        else:
            self._require_own(known, beginning)

    def _refresh_unless_in_use(self) -> None:
        if not self.lock.acquire(blocking=False):
            raise StoreUnavailableError("a log that is decided on is being read; call again", log=self.root)
        try:
            self.refresh()
        finally:
            self.lock.release()

    def _require_continued(self) -> None:
        """Refuse a log opened anew that is not the one which was followed before (log rule 13)."""
        known, head = self._known, Head.of(self.table)
        if known is not None and (head is None or not head.goes_on_from(known, self._store, self.root)):
            self._lose()
        self._known, self._proved_at, self._opened = head, self._environment.instant(), True
        self._opened_at = self._proved_after = next(moments)

    def _lose(self) -> None:
        self._is_lost = True
        # Said here as well: a thread that swallows the error would stop in silence.
        logger.error("a log is not the one that this process opened; it stops log=%s", self.root)
        self._check_lost()

    def _check_lost(self) -> None:
        if self._is_lost:
            raise WarehouseReplacedError(
                "the log is not the one that this process opened: the warehouse was moved, deleted, restored or "
                "created again, or an entry was lost; nothing was acknowledged, but what was under way may count if "
                "what is lost comes back: stop, open it anew, and look what is there before you send it again",
                log=self.root,
            )

    def _show(self, shown_at: Instant) -> None:
        self._shown_at, self._answered = shown_at, next(moments)

    def _decode(self, version: int, entry: StoredObject) -> Commit:
        return decode_commit(version, entry.data, commit_path(self.root, version))

    def _apply(self, commit: Commit) -> None:
        # What cannot be folded is looked at by a view that is opened anew: it may have been read wrong.
        shown_at, self._shown_at = self._shown_at, None
        with reading(commit_path(self.root, commit.version)):
            take(commit, self.table, self.fold)
        self._shown_at = shown_at
        # Whoever follows a log for years must remember no more, and no dearer, than who opens it.
        if self.table.has_many_tombstones:
            self.table.forget_tombstones(self.table.tombstones_since_ms(self.context.guard_ms))
        if self.table.files.has_long_tail:
            self.table.files.absorb_tail()

    def _reopen(self) -> None:
        """Forget the view and load the newest checkpoint with its tail."""
        answer(self._store, self._reopening())

    def _reopening(self) -> Asking[None]:
        proved = False
        try:
            for _ in range(3):
                proved = yield from self._loading()
                if proved:
                    break
        finally:
            if not proved:
                # Whatever was read until the error is not known to end at the tail: it is no view.
                self._shown_at = None
        if not proved:
            raise StoreUnavailableError("the log changes faster than it can be read; try again", log=self.root)
        self._require_continued()
        self._fairness.forget_others()

    def _loading(self) -> Asking[bool]:
        opened_at, asked, self._opened = self._environment.instant(), next(moments), False
        sizes = window_sizes(self._store.parallel_reads, opening=True)
        loaded = yield from load_newest(self._store, self.root, next(sizes))
        if loaded is None:
            return False
        self.table = loaded.table
        with reading(checkpoint_path(self.root, loaded.table.next_version - 1)):
            self.fold.restore(self.table)
        self._shown_at = opened_at
        ahead = _Window(self.table.next_version, loaded.ahead, opened_at, asked) if loaded.ahead else None
        if ahead is None:
            # There is no log: one look says so.
            sizes = window_sizes(self._store.parallel_reads)
        try:
            followed = yield from self._following(sizes, None, ahead)
        except DamagedDataError:
            # Unless a cleanup took the beginning away meanwhile, or a restore the end: then it is read again.
            if (yield from _proving(loaded.start)) and self._is_head_there():
                raise
            return False
        return followed and (yield from _proving(loaded.start))


@dataclass(frozen=True, slots=True)
class _Window:
    """What is in slots that were asked for at once, from `first` on; since when, as of the log's view."""

    first: int
    found: Found
    shown_at: Instant
    asked: int


def window_sizes(parallel_reads: int, *, opening: bool = False) -> Iterator[int]:
    """Yield how many slots are asked for at once, one window after the other.

    Who follows a log seldom finds more than one entry, who opens it up to ten above a checkpoint that the job wrote,
    and a hundred above a writer's.
    """
    if parallel_reads < _LARGEST_WINDOW:
        yield from (1, 2, 4, 8)
        yield from itertools.repeat(_LARGEST_WINDOW)
    yield from (_AHEAD,) if opening else (1, 2, _LARGEST_WINDOW)
    yield from itertools.repeat(parallel_reads)


def _proving(start: Start | None) -> Asking[bool]:
    """Return whether what a reader began with is still there."""
    if start is None:
        return True
    (found,) = yield [start.path]
    return start.is_still_there(found)


def prove_now(*views: LogView[Any]) -> None:
    """Make sure that logs are still those that were read, for who is about to say that one has lost its end.

    While its end was looked for everything may have been taken away, and there may be another warehouse by now.

    Parameters
    ----------
    *views : LogView
        The log, and who witnesses against it.

    Raises
    ------
    WarehouseReplacedError
        It is another warehouse by now.
    """
    moment = next(moments)
    for view in views:
        view.prove_since(moment)


def refresh_together(*views: LogView[Any], beside: Asking[Any] | None = None) -> Any:
    """Bring views of several logs to their tails, side by side.

    Parameters
    ----------
    *views : LogView
        In the order in which a thread may take their locks.
    beside : generator, optional
        Another reading, done at the same time: what it raises comes first.

    Returns
    -------
    Any
        What that one made.

    Raises
    ------
    TxnTableError
        As :meth:`LogView.refresh`.
    """
    with ExitStack() as held:
        for view in views:
            held.enter_context(view.lock)
            view._check_lost()  # noqa: SLF001
        readings = [] if beside is None else [beside]
        made = answer_all(views[0].context.store, readings + [view._refreshing() for view in views])  # noqa: SLF001
        return made[0] if beside is not None else None
