"""Reading one log from its oldest entry on, entry by entry, and each checkpoint against it (PROTOCOL.md §4).

Owns what is checked of any log: that no entry is missing, each can be read and was written on the bytes below, the
guard is as it was in version 0, named numbers never fall, and every checkpoint holds what the entries fold to.  What
the rows of a log mean is said by its :class:`LogRules`.  Reads what stands on storage and no view of a client, since
that begins at the newest checkpoint.  Must not know of more than one log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto
from typing import Generic, Protocol, TypeAlias, TypeVar

from txntable.errors import DamagedDataError, StoreUnavailableError, TxnTableError, UnsupportedFormatError
from txntable.format.layout import checkpoint_path, commit_path, last_checkpoint_path, log_folder
from txntable.log.actions import Commit, Txn, decode_commit, decode_commit_info
from txntable.log.actions import Protocol as Guard
from txntable.log.checkpoint import decode_checkpoint, decode_hint, entry_of
from txntable.log.cleanup import log_files, log_files_of, readable_entries
from txntable.log.damage import reading
from txntable.log.fold import Fold, take
from txntable.log.stepping_over import is_void
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectMeta, ObjectStore
from txntable.verification.damage import Damage, DamageKind, Progress
from txntable.verification.foreign_files import foreign_files

F = TypeVar("F", bound=Fold)
F_contra = TypeVar("F_contra", bound=Fold, contravariant=True)
Problem: TypeAlias = tuple[DamageKind, str]
"""A kind of damage of an entry, and what is wrong with it."""

_WINDOW = 64
# A log that is cleaned up while it is read is read again from its new beginning.
_MOST_BEGINNINGS = 5
_FOREIGN = "it names no entry that it is of, as each of ours does: other software wrote it"
_NOT_JUDGED = "no entry above it was judged: there is no checkpoint to go on from"
_DAMAGED = (DamagedDataError, UnsupportedFormatError)


class _Outcome(Enum):
    """What reading some entries came to."""

    READ = auto()
    ENDED = auto()
    """Where the log ends, though more was listed."""
    STOPPED = auto()
    """At an entry that is damaged, or missing."""
    CLEANED_UP = auto()


class LogRules(Protocol[F_contra]):
    """What the entries of one log must keep, beside what holds of any log."""

    def begin(self, table: TableState, fold: F_contra) -> Iterable[Problem]:
        """Take the state that the entries begin with: nothing, or a checkpoint's."""
        ...

    def observe(self, commit: Commit, table: TableState, fold: F_contra) -> Iterable[Problem]:
        """Judge an entry that is about to be folded on a state."""
        ...

    def stand(self, table: TableState, fold: F_contra) -> Iterable[Problem]:
        """Judge the state after an entry, or the one that the entries begin with."""
        ...


class LogReplay(Generic[F]):
    """One log, replayed as far as it can be read.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        The table's.
    make_fold : callable
        A new fold of the log.
    make_rules : callable
        New rules; both are made again where the log is cleaned up meanwhile.
    guard_ms : int
        How much longer than their retention tombstones are kept.

    Attributes
    ----------
    table, fold
        The state after the last entry that could be read.
    rules : LogRules
        Which have seen every entry so far.
    is_whole : bool
        Whether every entry could be read: only then is anything said that rests on what the log lacks.
    began_at : int or None
        The version of the checkpoint that the entries begin with; ``None``: they begin with version 0.
    entries, checkpoints : int
        How many were read.
    damages : list of Damage
        What was found so far.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        make_fold: Callable[[], F],
        make_rules: Callable[[], LogRules[F]],
        guard_ms: int,
    ) -> None:
        self.root = root
        self._store, self._make_fold, self._make_rules, self._guard_ms = store, make_fold, make_rules, guard_ms
        self._forget()

    def _forget(self) -> None:
        self.table, self.fold, self.rules = TableState(), self._make_fold(), self._make_rules()
        self.is_whole = True
        self.began_at: int | None = None
        self.entries = self.checkpoints = 0
        self.damages: list[Damage] = []

    @property
    def exists(self) -> bool:
        """Whether there was an entry to read."""
        return self.table.version is not None

    def advance(self, progress: Progress) -> None:
        """Read everything that has come since, the first time from the beginning.

        Parameters
        ----------
        progress : callable
            Is told how far it is.

        Raises
        ------
        StoreUnavailableError
            The store does not answer, or the log is cleaned up faster than it can be read.
        StorePermissionError
            These credentials may not read.
        """
        for _ in range(_MOST_BEGINNINGS):
            if not self.is_whole or self._advance(list(self._store.list(log_folder(self.root))), progress):
                return
            self._forget()
        raise StoreUnavailableError("the log is cleaned up faster than it can be read; try again", log=self.root)

    def _advance(self, listed: list[ObjectMeta], progress: Progress) -> bool:
        """Read what is listed; ``False``: it was cleaned up meanwhile."""
        files = list(log_files_of(self.root, listed))
        versions = readable_entries(files)
        checkpoints = {file.version for file in files if file.is_checkpoint}
        foreign = list(foreign_files(log_folder(self.root), (meta.path for meta in listed)))
        for file in foreign:
            self._find_once(file.kind, file.path, file.problem)
        if self.table.version is None and versions and not self._begin(versions, checkpoints):
            return True
        last = max(versions, default=-1)
        while self.table.next_version <= last:
            version = self.table.next_version
            outcome = self._read_window(range(version, min(version + _WINDOW, last + 1)), versions, checkpoints)
            if outcome is _Outcome.CLEANED_UP:
                return False
            if outcome is _Outcome.ENDED or (outcome is _Outcome.STOPPED and not self._go_on(checkpoints)):
                return True
            progress(f"{self.root}: entry {self.table.next_version:,} of {last + 1:,}")
        # A hint to a checkpoint of others is told of with that.
        elsewhere = {file.version for file in foreign if file.kind is DamageKind.FOREIGN_CHECKPOINT}
        self._check_hint({*checkpoints, *(version for version in elsewhere if version is not None)})
        return True

    def _read_window(self, window: range, versions: list[int], checkpoints: set[int]) -> _Outcome:
        found = self._store.get_many([commit_path(self.root, version) for version in window])
        for version, entry in zip(window, found, strict=True):
            if entry is None:
                return self._miss(version, versions)
            if not self._read(version, entry.data):
                return _Outcome.STOPPED
            if version in checkpoints:
                self._check_checkpoint(version)
        return _Outcome.READ

    def _go_on(self, checkpoints: set[int]) -> bool:
        """Begin again above a damaged entry, at a checkpoint, as a reader does who has not seen the entry.

        ``False``: there is none that can be read, and so nothing above the entry is judged.
        """
        before, stopped_at = self.fold, self.table.next_version
        self.fold = self._make_fold()
        if any(self._start_from(version) for version in sorted(checkpoints) if version >= stopped_at):
            # Where the chain breaks, the entry below is the one that was changed.
            paths = [commit_path(self.root, version) for version in (stopped_at - 1, stopped_at)]
            self.damages = [
                replace(one, read_on_from=self.began_at) if one.path in paths else one for one in self.damages
            ]
            return True
        self.fold = before
        self.damages[-1] = replace(self.damages[-1], problem=f"{self.damages[-1].problem}; {_NOT_JUDGED}")
        return False

    def _check_hint(self, checkpoints: set[int]) -> None:
        """Find a hint that leads nowhere, which other engines do not forgive."""
        path = last_checkpoint_path(self.root)
        hint = self._store.get(path)
        named = None if hint is None else decode_hint(hint.data)
        if hint is None or named is None or named in checkpoints:
            return
        # It may have been written since the log was listed.
        if self._store.get(checkpoint_path(self.root, named)) is not None:
            return
        now = self._store.get(path)
        if now is not None and now.data == hint.data:
            self._find_once(DamageKind.CHECKPOINT_MISSING, path, f"it names version {named}, whose checkpoint is gone")

    def _begin(self, versions: list[int], checkpoints: set[int]) -> bool:
        if versions[0] == 0:
            self._note_all(0, self.rules.begin(self.table, self.fold))
            return True
        for version in versions:
            if version in checkpoints and self._start_from(version):
                return True
        self._find(
            DamageKind.LOG_BEGINNING,
            commit_path(self.root, versions[0]),
            "the oldest entry has no checkpoint that it can be read from",
        )
        self.is_whole = False
        return False

    def _start_from(self, version: int) -> bool:
        path = checkpoint_path(self.root, version)
        found, entry = self._store.get_many([path, commit_path(self.root, version)])
        if found is None or entry is None:
            return False
        try:
            of_entry = entry_of(found.data, path)
            info = decode_commit_info(entry.data, commit_path(self.root, version))
            if of_entry is None:
                self._find(DamageKind.FOREIGN_CHECKPOINT, path, _FOREIGN)
            if of_entry != info.digest:
                return False
            table = decode_checkpoint(version, found.data, path)
            with reading(path):
                self.fold.restore(table)
        except _DAMAGED as error:
            self._find(DamageKind.CHECKPOINT, path, _words(error))
            self.fold = self._make_fold()
            return False
        table.stand_on(version, info)
        self.table, self.began_at = table, version
        self.entries, self.checkpoints = self.entries + 1, self.checkpoints + 1
        self._note_all(version, self.rules.begin(self.table, self.fold))
        self._note_all(version, self.rules.stand(self.table, self.fold))
        return True

    def _miss(self, version: int, versions: list[int]) -> _Outcome:
        now = readable_entries(log_files(self._store, self.root))
        if now and now[0] > version:
            return _Outcome.CLEANED_UP
        above = [one for one in versions if one > version]
        for one in above:
            entry = self._store.get(commit_path(self.root, one))
            if entry is None:
                continue
            # What another incarnation has left above the tail is no part of the log (PROTOCOL.md §4.6).
            if self._log_of(one, entry.data) in (self.table.log, None):
                self._find(DamageKind.ENTRY_MISSING, commit_path(self.root, version), f"entry {one} above it is there")
                self.is_whole = False
                return _Outcome.STOPPED
        return _Outcome.ENDED

    def _log_of(self, version: int, data: bytes) -> str | None:
        """Return the incarnation that an entry is of; ``None``: it cannot be read."""
        try:
            return decode_commit_info(data, commit_path(self.root, version)).log
        except _DAMAGED:
            return None

    def _read(self, version: int, data: bytes) -> bool:
        """Fold an entry; ``False``: it is damaged, and nothing above it can be judged."""
        path = commit_path(self.root, version)
        try:
            commit = decode_commit(version, data, path)
        except _DAMAGED as error:
            return self._stop(DamageKind.ENTRY_UNREADABLE, path, _words(error))
        self.entries += 1
        try:
            if is_void(self._store, self.root, self.table, commit):
                self.table.step_over(commit)
                return True
            self.table.check_follows(commit)
        except _DAMAGED as error:
            return self._stop(DamageKind.CHAIN, path, _words(error))
        try:
            with reading(path):
                self._note_all(version, self._of_any_log(commit))
                self._note_all(version, self.rules.observe(commit, self.table, self.fold))
                take(commit, self.table, self.fold)
        except _DAMAGED as error:
            return self._stop(DamageKind.ROW, path, _words(error))
        self._note_all(version, self.rules.stand(self.table, self.fold))
        return True

    def _stop(self, kind: DamageKind, path: str, problem: str) -> bool:
        self._find(kind, path, problem)
        self.is_whole = False
        return False

    def _of_any_log(self, commit: Commit) -> Iterator[Problem]:
        for action in commit.actions:
            if isinstance(action, Txn) and action.version < (before := self.table.number(action.app_id)):
                yield DamageKind.NUMBER, f"{action.app_id} falls from {before} to {action.version}"
            elif isinstance(action, Guard) and commit.version and action != self.table.protocol:
                yield DamageKind.GUARD, "the protocol changes after version 0"

    def _check_checkpoint(self, version: int) -> None:
        path = checkpoint_path(self.root, version)
        found = self._store.get(path)
        if found is None or self.table.void:
            return
        self.checkpoints += 1
        is_foreign = False
        try:
            is_foreign = entry_of(found.data, path) is None
            held = decode_checkpoint(version, found.data, path)
            with reading(path):
                self._make_fold().restore(held)
        except _DAMAGED as error:
            # What other software says in its own is not for us to understand: no reader of ours begins with it.
            kind = DamageKind.FOREIGN_CHECKPOINT if is_foreign else DamageKind.CHECKPOINT
            self._find(kind, path, _FOREIGN if is_foreign else _words(error))
            return
        if is_foreign:
            self._find(DamageKind.FOREIGN_CHECKPOINT, path, _FOREIGN)
        if differing := list(_differences(held, self.table, self.table.tombstones_since_ms(self._guard_ms))):
            self._find(DamageKind.CHECKPOINT, path, "; ".join(differing))

    def _note_all(self, version: int, problems: Iterable[Problem]) -> None:
        for kind, problem in problems:
            self._find(kind, commit_path(self.root, version), problem)

    def _find_once(self, kind: DamageKind, path: str, problem: str) -> None:
        if Damage(kind, path, problem) not in self.damages:
            self._find(kind, path, problem)

    def _find(self, kind: DamageKind, path: str, problem: str) -> None:
        self.damages.append(Damage(kind, path, problem))


def _differences(held: TableState, folded: TableState, since_ms: int) -> Iterator[str]:
    """Yield in what a checkpoint is not what the entries fold to, by the parts of a state."""
    if held.chain not in (None, folded.chain):
        yield "it is of another entry than that of its version"
    if held.protocol != folded.protocol or held.metadata != folded.metadata:
        yield "protocol or metadata differ from those of the entries"
    if dict(held.numbers) != dict(folded.numbers):
        names = sorted({*held.numbers.items()} ^ {*folded.numbers.items()})
        yield f"numbers differ: {names[0][0]}"
    rows = {add.path: (add.partition_values, add.size, add.modification_time, add.stats, add.tag) for add in held.files}
    for add in folded.files:
        if rows.pop(add.path, None) != (add.partition_values, add.size, add.modification_time, add.stats, add.tag):
            yield f"row differs, or is missing: {add.path}"
            return
    if rows:
        yield f"row that no entry has: {min(rows)}"
    kept = {path: gone.deletion_ms for path, gone in folded.tombstones.items() if gone.deletion_ms >= since_ms}
    if {path: gone.deletion_ms for path, gone in held.tombstones.items()} != kept:
        yield "tombstones differ"


def _words(error: TxnTableError) -> str:
    because = error.__cause__
    return error.message if because is None or isinstance(because, TxnTableError) else f"{error.message}: {because}"
