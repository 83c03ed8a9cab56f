"""What each layer of a warehouse stores, as the logs tell it and the names in their folders.

Owns the layers and their names.  Segments are not listed: what no log names (a crash's leftovers) is vacuum's to count.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow.compute as pc

from txntable.log.cleanup import LogFile
from txntable.log.table_state import TableState
from txntable.report.warehouse_report import StorageLayer
from txntable.topics.topic_log import TopicLog


def storage_layers(
    topics: Sequence[TopicLog], files: Mapping[str, Sequence[LogFile]], roots: Mapping[str, Iterable[str]]
) -> tuple[StorageLayer, ...]:
    """Return what is stored, layer by layer.

    Parameters
    ----------
    topics : sequence of TopicLog
        All topics, read just now.
    files : Mapping of str to sequence of LogFile
        What is in the folder of a log, by its root.
    roots : Mapping of str to iterable of str
        Name of a layer of logs -> the roots of its logs.
    """
    live = [_live(topic.public.table) for topic in topics]
    appended = [_segments(topic.segments.table) for topic in topics]
    waiting = [_open(topic) for topic in topics]
    removed = [gone for topic in topics for gone in topic.public.table.tombstones.values()]
    committed, all_, still_open = (_together(each) for each in (live, appended, waiting))
    aborted = (max(0, all_[0] - committed[0] - still_open[0]), max(0, all_[1] - committed[1] - still_open[1]))
    return (
        StorageLayer("committed segments", *committed, "what every reader of the public tables sees"),
        StorageLayer("open segments", *still_open, "of transactions that nobody has decided"),
        StorageLayer("aborted or unpublished segments", *aborted, "compaction removes what was aborted"),
        StorageLayer(
            "removed segments", len(removed), sum(gone.size for gone in removed), "kept for older versions until vacuum"
        ),
        *(StorageLayer(name, *_log(files, each), "entries and checkpoints") for name, each in roots.items()),
    )


def _together(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    objects = size = 0
    for each in parts:
        objects, size = objects + each[0], size + each[1]
    return objects, size


def _live(table: TableState) -> tuple[int, int]:
    return len(table.files), int(pc.sum(table.files.to_table()["size"]).as_py() or 0)


def _segments(table: TableState) -> tuple[int, int]:
    """Count the segments among what S names: markers and state entries share constant files."""
    rows = table.files.to_table()
    is_segment = pc.starts_with(rows["path"], pattern="p")
    sizes = rows["size"].filter(is_segment)
    return len(sizes), int(pc.sum(sizes).as_py() or 0)


def _open(topic: TopicLog) -> tuple[int, int]:
    table, logs = topic.segments.table, topic.segments.fold
    found = [table.files.get(path) for transaction in logs.open.values() for path in transaction.batches]
    sizes = [add.size for add in found if add is not None]
    return len(sizes), sum(sizes)


def _log(files: Mapping[str, Sequence[LogFile]], roots: Iterable[str]) -> tuple[int, int]:
    sizes = [file.meta.size for root in roots for file in files.get(root, ())]
    return len(sizes), sum(sizes)
