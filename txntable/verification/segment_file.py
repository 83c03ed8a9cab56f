"""A segment's file against its row: bytes, pages, footer, records and statistics (PROTOCOL.md §5.2, §10).

Owns what is said of a file that is not what its row says.  Reads the whole of it, in memory that a row group bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import DamagedDataError
from txntable.format.topic import TopicSettings
from txntable.log.damage import reading
from txntable.segments.segment_check import check_file
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_digest import is_known
from txntable.segments.segment_reader import SegmentReader
from txntable.storage.object_reader import WHOLE_BYTES
from txntable.storage.object_store import ObjectStore
from txntable.verification.bounds import BoundsCheck
from txntable.verification.damage import Damage, DamageKind
from txntable.verification.log_replay import Problem
from txntable.verification.retained_segments import RetainedSegment

_TIMESTAMP, _COMMIT, _PARTITION, _OFFSET = "_timestamp", "_commit", "_partition", "_offset"


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """A file that a log names, and what it says of it.

    Attributes
    ----------
    planned : PlannedSegment
        Place, size, digest and number of records; its path is relative to S's root.
    stats : str or None
        Delta's statistics.
    timestamps : tuple of int or None
        Of the first record, and the highest, ms; ``None``: the table does not say.
    """

    planned: PlannedSegment
    stats: str | None
    timestamps: tuple[int, int] | None


def damages_of_file(store: ObjectStore, root: str, settings: TopicSettings, named: NamedSegment) -> list[Damage]:
    """Read a segment's file, and say in what it is not what its row says.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        S's.
    settings : TopicSettings
        The topic.
    named : NamedSegment
        The row.

    Raises
    ------
    StoreUnavailableError
        Try again.
    """
    path = f"{root}/{named.planned.path}"
    return [Damage(kind, path, problem) for kind, problem in _problems(store, path, root, settings, named)]


def damages_of_retained_file(store: ObjectStore, root: str, named: RetainedSegment) -> list[Damage]:
    """Read a file that only older versions name, and say whether it is not the one that their rows name.

    Its records, pages and statistics were judged while it was live: the same bytes are as good as then.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        S's.
    named : RetainedSegment
        What its row said.

    Raises
    ------
    StoreUnavailableError
        Try again.
    """
    path = f"{root}/{named.path}"
    found = _replaced(store, path, named.size, named.digest)
    return [] if found is None else [Damage(DamageKind.OLDER_SEGMENT, path, found[1])]


def _problems(
    store: ObjectStore, path: str, root: str, settings: TopicSettings, named: NamedSegment
) -> Iterator[Problem]:
    planned = named.planned
    # A small one is fetched whole by who reads its records, and its digest compared then.
    is_small = planned.size <= WHOLE_BYTES
    right = planned.size, planned.digest
    if not is_small and (replaced := _replaced(store, path, *right)) is not None:
        yield replaced
        return
    if planned.digest is None or not is_known(planned.digest):
        yield DamageKind.UNKNOWN_DIGEST, "only the size of the file was compared with its row"
    try:
        with reading(path):
            found = list(_content_problems(SegmentReader(store, root, settings), named))
    except DamagedDataError as error:
        unreadable = (DamageKind.SEGMENT_CONTENT, str(error.facts.get("reason") or error.message))
        found = [(_replaced(store, path, *right) if is_small else None) or unreadable]
    yield from found


def _replaced(store: ObjectStore, path: str, size: int, digest: str | None) -> Problem | None:
    """Return what is said of a file that is gone, or has another size or digest than its row."""
    try:
        check_file(store, path, size, digest)
    except DamagedDataError as error:
        is_gone = store.head(path) is None
        kind = DamageKind.SEGMENT_MISSING if is_gone else DamageKind.SEGMENT_REPLACED
        # Whoever has copies tells the right one by it.
        right = f"bytes={size}" + ("" if digest is None else f" digest={digest}")
        return kind, f"{error.message}; the right one has {right}"
    return None


def _content_problems(reader: SegmentReader, named: NamedSegment) -> Iterator[Problem]:
    bounds = None if named.stats is None else BoundsCheck(named.stats)
    first: int | None = None
    highest: int | None = None
    base = named.planned.base_offset
    for batch in reader.read(named.planned):
        times = batch.column(_TIMESTAMP).cast(pa.int64())
        first = times[0].as_py() if first is None else first
        latest = pc.max(times).as_py()
        highest = latest if highest is None else max(highest, latest)
        if bounds is not None:
            bounds.take(_as_in_file(batch, base))
    if bounds is not None:
        yield from bounds.problems()
    if named.timestamps is not None and first is not None and highest is not None:
        found = (first // 1_000, highest // 1_000)
        if found != named.timestamps:
            yield DamageKind.SEGMENT_ROW, f"its first and highest timestamps are {found}, not {named.timestamps}"


def _as_in_file(batch: pa.RecordBatch, base: int) -> pa.RecordBatch:
    """Return records under the names that statistics have."""
    deltas = pc.subtract(batch.column(_OFFSET), base)
    columns = {name: batch.column(name) for name in batch.schema.names if name not in (_COMMIT, _PARTITION, _OFFSET)}
    return pa.RecordBatch.from_pydict({**columns, "_offset_delta": deltas})
