"""Which entries and checkpoints of a log tell of erased records, and from where on it can be read without them.

Owns the rule (PROTOCOL.md §5.10): statistics tell of a file's records.  So an entry tells of erased ones where it adds
a file that held some; or one that is gone, unless its statistics say that it held none.  Invariant: a log loses only
what stands below a checkpoint that tells nothing, and that only when every view from before is too old to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from txntable.compaction.object_records import count_in
from txntable.compaction.sought_records import SoughtRecords
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.format.layout import segment_path, segments_root
from txntable.log.actions import Add, decode_commit
from txntable.log.checkpoint import decode_checkpoint, entry_of
from txntable.log.cleanup import LogFile, below, log_files
from txntable.log.cold_start import is_start
from txntable.log.delta_log import DeltaLog
from txntable.log.keyed_table import KIND
from txntable.log.table_state import TableState
from txntable.partition.projection import SEGMENTS_PREFIX
from txntable.storage.object_store import ObjectStore
from txntable.transactions.transaction_rows import ID_KIND, id_row_of

_WINDOW = 64

Tells = Callable[[Add], bool]
"""Whether a row of a log tells of erased records."""


class KnownFiles:
    """Which of a topic's files hold sought records; one that came since they were looked at is read when it is met.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    topic : str
        The topic's name.
    sought : SoughtRecords
        What is erased.
    schema : pyarrow.Schema
        Of the topic.
    there : dict
        By path relative to S's root, of the files that were read: whether one holds sought records.
    """

    def __init__(
        self, store: ObjectStore, topic: str, sought: SoughtRecords, schema: pa.Schema, there: dict[str, bool]
    ) -> None:
        self._store, self._root, self._sought, self._schema = store, segments_root(topic), sought, schema
        self._there = there
        self._gone: set[str] = set()

    def tells(self, path: str, stats: str | None) -> bool:
        """Return whether what a log says of a file tells of sought records."""
        if path in self._there:
            return self._there[path]
        if not self._sought.may_be_in(stats, self._schema):
            return False
        if path not in self._gone:
            self._read(path)
        return self._there.get(path, True)

    def _read(self, path: str) -> None:
        meta = self._store.head(f"{self._root}/{path}")
        if meta is None:
            self._gone.add(path)
            return
        try:
            self._there[path] = count_in(self._store, meta, self._sought) > 0
        except DamagedDataError:
            # It cannot be said: as if it were gone.
            self._gone.add(path)


def tells_in_topic(files: KnownFiles) -> Tells:
    """Return the rule for the rows of S and of P."""

    def tells(add: Add) -> bool:
        # Markers and state entries have no statistics of records.
        is_data = add.partition_values.get("_control") is None
        return is_data and files.tells(add.path.removeprefix(SEGMENTS_PREFIX), add.stats)

    return tells


def tells_in_transactions(files: Mapping[str, KnownFiles]) -> Tells:
    """Return the rule for the rows of T: a decision that carries segments has their statistics.

    Parameters
    ----------
    files : Mapping[str, KnownFiles]
        By the name of each topic that is erased from.
    """

    def tells(add: Add) -> bool:
        if add.partition_values.get(KIND) != ID_KIND or '"manifest"' not in (add.partition_values.get("_row") or ""):
            return False
        row = id_row_of(add)
        for topic_id, segments in row.manifest.items():
            known = files.get(row.topics[topic_id].name)
            if known is None or row.decision is None:
                continue
            owner = (row.producer_id, row.decision.epoch)
            for one in segments:
                if known.tells(segment_path(topic_id, one.partition, owner, one.name), one.stats):
                    return True
        return False

    return tells


def rows_in(store: ObjectStore, files: Collection[LogFile]) -> Iterator[tuple[LogFile, Iterator[Add], bytes]]:
    """Yield each entry and checkpoint that is there, with the rows that it adds, and an entry's `commitInfo`.

    Raises
    ------
    DamagedDataError
        One cannot be read; nothing can be said of it.
    """
    ordered = sorted(files, key=lambda file: file.version)
    for first in range(0, len(ordered), _WINDOW):
        part = ordered[first : first + _WINDOW]
        for file, found in zip(part, store.get_many([one.meta.path for one in part]), strict=True):
            if found is not None:
                info = b"" if file.is_checkpoint else found.data.partition(b"\n")[0]
                yield file, _adds(file, found.data), info


def _checkpoint(version: int, data: bytes, path: str) -> TableState:
    try:
        return decode_checkpoint(version, data, path)
    except UnsupportedFormatError as error:
        if entry_of(data, path) is not None:
            raise
        raise DamagedDataError(
            "other software wrote this checkpoint, which may tell of erased records and cannot be read; delete it, and"
            " _last_checkpoint beside it if it names this version, and erase again",
            path=path,
        ) from error


def _adds(file: LogFile, data: bytes) -> Iterator[Add]:
    path = file.meta.path
    if file.is_checkpoint:
        return iter(_checkpoint(file.version, data, path).files)
    commit = decode_commit(file.version, data, path)
    # Repairs say rows of the state again, with their statistics (PROTOCOL.md §4.6).
    return (action for action in (*commit.repairs, *commit.actions) if isinstance(action, Add))


@dataclass(frozen=True, slots=True)
class History:
    """What of a log tells of erased records.

    Attributes
    ----------
    root : str
        The table's.
    telling : int
        How many entries and checkpoints do.
    last : int or None
        The highest version of one; ``None``: none does.
    start : int or None
        The lowest checkpoint above that reading can begin with, and that tells nothing.
    """

    root: str
    telling: int = 0
    last: int | None = None
    start: int | None = None


def history_of(store: ObjectStore, root: str, tells: Tells) -> History:
    """Read a log, and say what of it tells of erased records."""
    files = log_files(store, root)
    telling = [file.version for file, adds, _ in rows_in(store, files) if any(map(tells, adds))]
    if not telling:
        return History(root)
    last = max(telling)
    entries = {file.version for file in files if not file.is_checkpoint}
    starts = sorted(file.version for file in files if file.is_checkpoint and last < file.version)
    start = next((one for one in starts if one in entries and is_start(store, root, one)), None)
    return History(root, len(telling), last, start)


def begin_above(log: DeltaLog[Any], found: History, tells: Tells) -> History:
    """Write the checkpoint that the log is to begin with, where it has none yet; nothing else is written.

    Returns
    -------
    History
        Its `start` is ``None`` where the newest state still tells of erased records, or follows a void entry.

    Raises
    ------
    StoreUnavailableError, CommitStateUnknownError
        Call again.
    """
    if found.last is None or found.start is not None:
        return found
    log.refresh()
    if log.table.next_version - 1 <= found.last or any(map(tells, log.table.files)):
        return found
    log.write_checkpoint()
    return history_of(log.context.store, log.root, tells)


def written_ms(store: ObjectStore, found: History) -> int:
    """Return the store's time at which the entry that a log is to begin with came, ms since 1970."""
    times = [f.meta.last_modified_ms for f in log_files(store, found.root) if f.version == found.start]
    return max(times, default=0)


def forget(log: DeltaLog[Any], found: History) -> int:
    """Delete what stands below the start; return how many objects that was.  Killed anywhere it leaves a whole log.

    Raises
    ------
    WarehouseReplacedError
        Another log stands there since the start was found; nothing of it was deleted.
    StoreUnavailableError
        Call again.
    """
    store = log.context.store
    if found.start is None:
        return 0
    # Minutes have passed: the warehouse may have been wiped or restored, and these slots be another log's.
    log.refresh()
    if not is_start(store, found.root, found.start):
        return 0
    going = below(log_files(store, found.root), found.start)
    for path in going:
        # One by one: the order is what makes a log that is half deleted a whole one.
        store.delete([path])
    return len(going)
