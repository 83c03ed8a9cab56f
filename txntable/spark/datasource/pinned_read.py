"""What a read by ``format("txntable")`` shows, fixed when its columns are asked for, and the tasks that read it.

Owns the order *pin, then plan*: Spark asks for the columns and for the tasks in different processes, maybe long
after one another; both speak of the same records.  Needs no Spark; travels to executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.topic import TopicSettings
from txntable.partition.topic_view import TopicView
from txntable.segments.record_filter import RecordFilter
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_pruning import pruned
from txntable.segments.segment_reader import SegmentReader, record_schema
from txntable.spark.datasource.read_filters import read_filters
from txntable.spark.datasource.read_options import ReadOptions
from txntable.spark.scan.offset_bounds import OffsetBounds, offset_bounds
from txntable.spark.writing.store_cache import opened
from txntable.storage.object_store import StoreSpec
from txntable.topics.topic_question import topics_asked_for
from txntable.warehouse.warehouse import Warehouse, open_warehouse

# What opening a segment costs, in bytes that could be read meanwhile: many small ones are many tasks too.
_OPENING_BYTES = 1024 * 1024
# So many tasks at least, for the cores that there may be, unless each would read less than this.
_TASKS = 32
_LEAST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PinnedRead:
    """One read.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's.
    settings : TopicSettings
        The topic.
    level : IsolationLevel
        What is seen.
    position : int or None
        Of a snapshot.
    root : str
        Of the table that the segments' paths are relative to.
    ranges : Mapping[int, OffsetBounds]
        The wanted offsets of every partition.
    columns : tuple of str or None
        Which columns; ``None``: all.
    bytes_per_task : int
        How much one task reads.
    filter : RecordFilter or None
        Which records are read; ``None``: all.
    """

    store: StoreSpec
    settings: TopicSettings
    level: IsolationLevel
    position: int | None
    root: str
    ranges: Mapping[int, OffsetBounds]
    columns: tuple[str, ...] | None
    bytes_per_task: int
    filter: RecordFilter | None = None

    def schema(self) -> pa.Schema:
        """Return the columns of what :meth:`read` yields; everything nullable.

        Raises
        ------
        SchemaMismatchError
            There is no such column: the message names those that there are.
        """
        return self._reader().schema

    def tasks(self) -> list[list[PlannedSegment]]:
        """Return the segments to read, those of each task in offset order.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic was deleted, or made again, since the read was pinned.
        """
        view = _view(open_warehouse(self.store), self)
        if view.settings.topic_id != self.settings.topic_id:
            raise UnknownTopicOrPartitionError("the topic was created again; load it again", topic=self.settings.name)
        planned = view.columns.inside({each: (one.start, one.end) for each, one in self.ranges.items()})
        if self.filter is not None:
            planned = pruned(planned, self.filter, record_schema(self.settings))
        segments = (
            segment
            for partition, bounds in self.ranges.items()
            if bounds.start < bounds.end
            for segment in planned.between(partition, bounds.start, bounds.end)
        )
        found = list(segments)
        return balanced(found, min(self.bytes_per_task, max(_LEAST_BYTES, sum(map(_weight, found)) // _TASKS)))

    def read(self, segments: Iterable[PlannedSegment]) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task.

        Raises
        ------
        DamagedDataError
            A segment is gone or cannot be read; the message names it.
        """
        return self._reader().read_all(segments)

    def _reader(self) -> SegmentReader:
        return SegmentReader(opened(self.store), self.root, self.settings, self.columns).where(self.filter)


def pin(options: ReadOptions) -> PinnedRead:
    """Fix what a read shows.

    Raises
    ------
    TxnTableError
        Whatever :meth:`txntable.Warehouse.read` raises.
    """
    store = options.store
    warehouse = open_warehouse(store)
    if options.level is IsolationLevel.SNAPSHOT:
        view = warehouse.snapshot_of(options.topic, options.as_of).view(options.topic)
    else:
        reader = warehouse.topic_reader(options.topic)
        with topics_asked_for(warehouse.context):
            reader.catch_up()
        view = reader.view(options.level)
    ranges = offset_bounds(view, options.starting, options.ending)
    where = None if options.filters is None else read_filters(options.filters, record_schema(view.settings))
    return PinnedRead(
        *(store, view.settings, options.level, view.position, view.root, ranges),
        *(options.columns, options.bytes_per_task, where),
    )


def _view(warehouse: Warehouse, pinned: PinnedRead) -> TopicView:
    if pinned.level is IsolationLevel.SNAPSHOT:
        return warehouse.snapshot_of(pinned.settings.name, pinned.position).view(pinned.settings.name)
    reader = warehouse.topic_reader(pinned.settings.name)
    # What was pinned is published already.
    reader.follow()
    return reader.view(pinned.level)


def balanced(segments: Iterable[PlannedSegment], bytes_per_task: int) -> list[list[PlannedSegment]]:
    """Return the segments in runs of about that many bytes, in their order.

    Parameters
    ----------
    segments : iterable of PlannedSegment
        In the order in which they are to be read.
    bytes_per_task : int
        At most, where one segment is not larger by itself; opening a segment counts too.
    """
    tasks: list[list[PlannedSegment]] = []
    room = 0
    for segment in segments:
        weight = _weight(segment)
        if not tasks or weight > room:
            tasks.append([])
            room = bytes_per_task
        tasks[-1].append(segment)
        room -= weight
    return tasks


def _weight(segment: PlannedSegment) -> int:
    return segment.size + _OPENING_BYTES
