"""A Delta table's state as a fold over its log (PROTOCOL.md §4): the same live and at start-up.

Owns which files are live, the named numbers, the tombstones, schema and protocol.  Live files
are kept as the Arrow columns of the checkpoint (`base`) under a dict of what came since
(`tail`): folding 100,000 files costs no Python object for each.  Must not know what the files
mean, nor do any I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain

import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import DamagedDataError
from txntable.log.actions import TAG, Action, Add, Commit, CommitInfo, Metadata, Protocol, Remove, Txn, stored_add
from txntable.log.overlay import Overlay
from txntable.log.retention import deleted_files_retention_ms

_STRING_MAP = pa.map_(pa.string(), pa.string())
ADD_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _STRING_MAP),
    ]
)
ADD_SCHEMA = pa.schema(list(ADD_TYPE))
# One for all: making it takes longer than folding an entry.
# Not `empty_table()`: that loads pandas where it is installed.
NO_FILES = pa.Table.from_batches([], ADD_SCHEMA)
# Of a checkpoint, that are Python objects at a time.
_ROWS_AT_ONCE = 4096
_FEW_TOMBSTONES = 1_000
# Kept as Python objects until they are worth a new copy of the columns: of each 64 rows copied, one is new.
_SHORT_TAIL = 1_000
_ROWS_FOR_EACH = 64


class LiveFiles:
    """The live files of a table by path.

    Parameters
    ----------
    base : pyarrow.Table, optional
        Columns of :data:`ADD_SCHEMA`, from a checkpoint that is started from.
    """

    def __init__(self, base: pa.Table | None = None) -> None:
        self.base = NO_FILES if base is None else base.combine_chunks()
        # So many rows of the base, from the first on, have been read as a start reads them (PROTOCOL.md §4.2 rule 12).
        self._proved = self.base.num_rows
        self._tail: MutableMapping[str, Add | None] = {}
        self._rows: dict[str, int] | None = None
        self._count = self.base.num_rows

    def overlay(self) -> LiveFiles:
        """Return the same files, whose changes these do not see; costs the same however many there are."""
        over = LiveFiles(self.base)
        over._tail, over._rows, over._count = Overlay(self._tail), self._indexed(), self._count
        return over

    def _indexed(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {path: row for row, path in enumerate(self.base["path"].to_pylist())}
        return self._rows

    def _row(self, path: str) -> int | None:
        return self._indexed().get(path)

    def __len__(self) -> int:
        return int(self._count)

    def __contains__(self, path: str) -> bool:
        if path in self._tail:
            return self._tail[path] is not None
        return self._row(path) is not None

    def get(self, path: str) -> Add | None:
        """Return the live file at `path`, or ``None``."""
        if path in self._tail:
            return self._tail[path]
        row = self._row(path)
        return None if row is None else _add_of(self.base, row)

    def put(self, add: Add) -> None:
        """Make a file live, or replace what was said of it."""
        if add.path not in self:
            self._count += 1
        self._tail[add.path] = add

    def remove(self, path: str) -> None:
        """Make a file live no more, if it is."""
        if path not in self:
            return
        self._count -= 1
        if self._row(path) is None:
            del self._tail[path]
        else:
            self._tail[path] = None

    def __iter__(self) -> Iterator[Add]:
        """Yield every live file (a Python object each: not for the steady state)."""
        for batch in self.untouched_base().to_batches(_ROWS_AT_ONCE):
            yield from map(stored_add, batch.to_pylist())
        yield from self.tail()

    def tail(self) -> Iterator[Add]:
        """Yield the live files that came since the checkpoint."""
        return (add for add in self._tail.values() if add is not None)

    def changed_paths(self) -> pa.StringArray:
        """Return the paths that were added, replaced or removed since the checkpoint."""
        return pa.array(list(self._tail), pa.string())

    def tail_table(self) -> pa.Table:
        """Return the live files that came since the checkpoint as columns of :data:`ADD_SCHEMA`."""
        return _columns_of(list(self.tail()))

    @property
    def has_long_tail(self) -> bool:
        """Whether it is time to absorb the tail: so seldom that it costs a constant share of having folded it."""
        return bool(len(self._tail) > max(_SHORT_TAIL, self.base.num_rows // _ROWS_FOR_EACH))

    def absorb_tail(self) -> None:
        """Make everything that came since the checkpoint part of the columns, as a new checkpoint would."""
        if not self._tail:
            return
        rows, first = self._indexed(), self.base.num_rows
        replaced = [rows[path] for path in self._tail if path in rows]
        self.base = self.to_table().combine_chunks()
        self._proved -= sum(row < self._proved for row in replaced)
        if replaced:
            self._rows = None
        else:
            rows.update(zip(self._tail, range(first, self.base.num_rows), strict=True))
        self._tail = {}

    @property
    def proved(self) -> pa.Table:
        """The rows that were read as a start reads them: the first of all, once the tail is absorbed."""
        return self.base.slice(0, self._proved)

    def know_proved(self) -> None:
        """Take note that all rows of the columns were read so."""
        self._proved = self.base.num_rows

    def untouched_base(self) -> pa.Table:
        """Return the rows of the checkpoint that nothing replaced or removed since."""
        if not self._tail or not self.base.num_rows:
            return self.base
        gone = pc.is_in(self.base["path"], value_set=self.changed_paths())
        return self.base.filter(pc.invert(gone))

    def paths(self) -> set[str]:
        """Return the paths of all live files."""
        return set(self.untouched_base()["path"].to_pylist()) | {add.path for add in self.tail()}

    def to_table(self) -> pa.Table:
        """Return all live files as columns of :data:`ADD_SCHEMA`."""
        if not self._tail:
            return self.base
        return pa.concat_tables([self.untouched_base(), self.tail_table()])


def _add_of(table: pa.Table, row: int) -> Add:
    return stored_add(table.slice(row, 1).to_pylist()[0])


def _columns_of(adds: Sequence[Add]) -> pa.Table:
    """Return files as columns of :data:`ADD_SCHEMA`: column by column, an eighth of the time that rows take."""
    tags: list[Mapping[str, str | None]] = [{} if add.tag is None else {TAG: add.tag} for add in adds]
    columns = [
        pa.array([add.path for add in adds], pa.string()),
        _maps([add.partition_values for add in adds]),
        pa.array([add.size for add in adds], pa.int64()),
        pa.array([add.modification_time for add in adds], pa.int64()),
        pa.array([False] * len(adds), pa.bool_()),
        pa.array([add.stats for add in adds], pa.string()),
        _maps(tags, pa.array([not tag for tag in tags], pa.bool_())),
    ]
    return pa.Table.from_arrays(columns, schema=ADD_SCHEMA)


def _maps(values: Sequence[Mapping[str, str | None]], nulls: pa.BooleanArray | None = None) -> pa.MapArray:
    ends = list(accumulate(map(len, values), initial=0))
    keys = pa.array(list(chain.from_iterable(values)), pa.string())
    items = pa.array(list(chain.from_iterable(one.values() for one in values)), pa.string())
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, items, mask=nulls)


@dataclass(slots=True)
class TableState:
    """The state of a table at one version; ``version`` is ``None`` before version 0.

    Attributes
    ----------
    version : int or None
        Of the last entry folded, or stepped over.
    commit_id : str or None
        Of the last commit that counts.
    timestamp_ms : int
        The latest in-commit timestamp.
    log : str or None
        The incarnation of the log.
    slot_id : str or None
        The commit id of the entry at the version, which is another than `commit_id` where that is void.
    void : tuple of Commit
        What was stepped over since the last commit that counts.
    chain : str or None
        The digest of its entry, which the next one names.  As each entry holds the digest of the one below,
        version and chain tell whether two readers have folded the same log, byte by byte.
    protocol, metadata
        As last written.
    files : LiveFiles
        The live files.
    numbers : dict of str to int
        The table's ``txn`` actions.
    tombstones : dict of str to Remove
        Removed and not live again: a checkpoint carries them for time travel and vacuum.
    """

    version: int | None = None
    commit_id: str | None = None
    timestamp_ms: int = 0
    log: str | None = None
    slot_id: str | None = None
    void: tuple[Commit, ...] = ()
    chain: str | None = None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: LiveFiles = field(default_factory=LiveFiles)
    numbers: MutableMapping[str, int] = field(default_factory=dict)
    tombstones: MutableMapping[str, Remove] = field(default_factory=dict)
    _remembered: int = field(default=0, repr=False, compare=False)

    @property
    def next_version(self) -> int:
        """The slot that the next commit takes."""
        return 0 if self.version is None else self.version + 1

    def overlay(self) -> TableState:
        """Return the same state, whose changes this one does not see; costs the same however large it is."""
        return replace(
            self,
            files=self.files.overlay(),
            numbers=Overlay(self.numbers),
            tombstones=Overlay(self.tombstones),
        )

    def number(self, name: str, default: int = 0) -> int:
        """Return the named number, or `default` when it was never written."""
        return self.numbers.get(name, default)

    def forget_tombstones(self, since_ms: int) -> None:
        """Forget what was removed before a time (ms since 1970), as whoever starts from the next checkpoint has."""
        self.tombstones = {path: gone for path, gone in self.tombstones.items() if gone.deletion_ms >= since_ms}
        self._remembered = len(self.tombstones)

    @property
    def has_many_tombstones(self) -> bool:
        """Whether it is time to forget some: so seldom that it costs a constant share of having come by them."""
        return len(self.tombstones) > 2 * self._remembered + _FEW_TOMBSTONES

    @property
    def deleted_files_retention_ms(self) -> int:
        """How long removed files are remembered, in ms; raises as the function of that name."""
        return deleted_files_retention_ms({} if self.metadata is None else self.metadata.configuration)

    def tombstones_since_ms(self, guard_ms: int) -> int:
        """Return the time before which removed files are forgotten."""
        # A commit takes its time before its put, which may be answered a guard later.
        return self.timestamp_ms - self.deleted_files_retention_ms - guard_ms

    def follows(self, info: CommitInfo) -> bool:
        """Return whether an entry at the next version was written on this state, byte by byte, in this log."""
        is_chained = info.chain == self.chain
        return info.previous == self.commit_id and is_chained and info.log in {self.log, info.commit_id}

    def check_follows(self, commit: Commit) -> None:
        """Refuse a commit that is not the next one of this log, byte by byte.

        Raises
        ------
        DamagedDataError
            An entry was replaced or lost: this one, or one below it.
        """
        info = commit.info
        if commit.version != self.next_version or info.previous != self.commit_id:
            raise DamagedDataError(
                "the log does not continue the version before; an entry was replaced or lost: restore it first, from a "
                "backup or an older version; only where the whole warehouse was restored to an older state, run "
                "txntable warehouse fence-all",
                version=commit.version,
                expected=self.next_version,
                previous=info.previous,
                commit_id=self.commit_id,
            )
        if not self.follows(info):
            raise DamagedDataError(
                "the entry below is not the one that this one was written on; restore the log from a backup",
                version=commit.version,
                chain=info.chain,
                entry_below=self.chain,
            )

    def apply(self, commit: Commit) -> None:
        """Fold one commit.

        Raises
        ------
        DamagedDataError
            As :meth:`check_follows`, or the first entry lacks what makes it a table.
        """
        self.check_follows(commit)
        self.take(commit.actions)
        if self.protocol is None or self.metadata is None:
            raise DamagedDataError(
                "the first entry of a log lacks its protocol or metadata; restore the log from a backup",
                version=commit.version,
            )
        self.stand_on(commit.version, commit.info)

    def take(self, actions: Iterable[Action]) -> None:
        """Fold actions alone: the state as it will be once they are committed, of the version that it is of."""
        for action in actions:
            match action:
                case Add():
                    self.files.put(action)
                    self.tombstones.pop(action.path, None)
                case Remove():
                    self.files.remove(action.path)
                    self.tombstones[action.path] = action
                case Txn():
                    self.numbers[action.app_id] = action.version
                case Metadata():
                    deleted_files_retention_ms(action.configuration)
                    self.metadata = action
                case Protocol():
                    self.protocol = action

    def stand_on(self, version: int, info: CommitInfo) -> None:
        """Be the state at a version whose entry counts and begins with `info`."""
        self.version, self.void = version, ()
        self.commit_id, self.log, self.slot_id = info.commit_id, info.log, info.commit_id
        self.timestamp_ms = max(self.timestamp_ms, info.timestamp_ms)
        self.chain = info.digest

    def step_over(self, commit: Commit) -> None:
        """Be the same state one version higher, whose entry is void."""
        self.version, self.slot_id, self.chain = commit.version, commit.info.commit_id, commit.info.digest
        self.timestamp_ms = max(self.timestamp_ms, commit.info.timestamp_ms)
        self.void = (*self.void, commit)


def is_same_commit(mine: Commit, found: Commit) -> bool:
    """Return whether the entry found at a slot is the one that was put there.

    Raises
    ------
    DamagedDataError
        It is, by its commit id, but with other bytes.
    """
    if found.info.commit_id != mine.info.commit_id:
        return False
    if found.info.digest != mine.info.digest:
        raise DamagedDataError(
            "an entry has other bytes than were written; restore it from a backup", commit_id=mine.info.commit_id
        )
    return True
