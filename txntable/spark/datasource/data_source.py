"""``format("txntable")``: a topic read and written where Delta is not at hand, and from SQL.

Owns Spark's side of reading: columns and tasks.  It needs no Delta in the session and no registration
(``pyspark_txntable``).  :meth:`txntable.Warehouse.read` reads faster: natively, and only the columns that are
used; here the options ``columns`` and ``filters`` say what is wanted.  Predicates are not pushed: Spark 4.1 and 4.2
keep a reader that has taken some with the DataFrame, and would ask it in the DataFrame's next query, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.schema import from_delta_schema, to_delta_schema
from txntable.segments.segment_columns import PlannedSegment
from txntable.spark.datasource.data_sink import is_of_view, topic_writer
from txntable.spark.datasource.pinned_read import PinnedRead, pin
from txntable.spark.datasource.plain_errors import without_traceback
from txntable.spark.datasource.read_options import read_options
from txntable.spark.datasource.stream_sink import stream_committer, stream_writer
from txntable.spark.datasource.write_options import check_not_reading, write_options


class TxnTableSource(DataSource):
    """The data source; Spark makes it.

    A write is exactly once where it has a name: with the options ``transactionalId`` and ``batchId`` a job that runs
    twice writes once; with ``transactionalId`` a stream that begins again under a new checkpoint is refused.  Without
    them *everything that is written again is there twice*: a batch write is one append each time it runs, and a stream
    is known by its checkpoint alone, so under a new one what it reads again is written again.

    Parameters
    ----------
    options : Mapping[str, str]
        See :mod:`txntable.spark.datasource.read_options`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._pinned: PinnedRead | None = None
        # Spark makes a source anew to write a micro-batch; the one that has travelled is there to commit.
        self._travelled = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_travelled": True}

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "txntable"

    @without_traceback
    def schema(self) -> StructType:
        """Pin the read and return its columns, as Spark has them."""
        self._pinned = pin(read_options(self.options))
        return StructType.fromJson(json.loads(to_delta_schema(self._pinned.schema())))

    @without_traceback
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what plans the tasks and runs them."""
        pinned = pin(read_options(self.options)) if self._pinned is None else self._pinned
        _check_schema(schema, pinned)
        return DataSourceTopicReader(pinned)

    @without_traceback
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what uploads a DataFrame and commits it; see :mod:`txntable.spark.datasource.data_sink`."""
        options = write_options(self.options)
        if not is_of_view(schema):
            check_not_reading(self.options)
        if overwrite:
            raise InvalidRequestError(
                "a topic is only appended to; write with mode('append') or INSERT INTO, and to begin anew delete the"
                " topic and create it again",
                topic=options.topic,
            )
        return topic_writer(options, schema)

    @without_traceback
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        """Return what uploads a micro-batch, or commits it; see :mod:`txntable.spark.datasource.stream_sink`."""
        options = write_options(self.options)
        check_not_reading(self.options)
        if overwrite:
            raise InvalidRequestError(
                "a topic is only appended to; write the stream with outputMode('append')", topic=options.topic
            )
        return stream_committer(options) if self._travelled else stream_writer(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return what refuses: the public Delta table is the stream.

        Spark covers an error that is raised here with one of its own, but not one that the reader raises.
        """
        return _RefusedStream(self.options)


class _RefusedStream(DataSourceStreamReader):
    """Says what to read in its place, whatever Spark asks first."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    @without_traceback
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Refuse."""
        raise InvalidRequestError(
            "a topic is streamed from its public Delta table; call Warehouse.read_stream(spark, topic), or"
            " readStream.format('delta') on the topic's folder",
            topic=read_options(self._options).topic,
        )

    @without_traceback
    def latestOffset(self, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Refuse."""
        return self.initialOffset()

    @without_traceback
    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Refuse."""
        self.initialOffset()
        return iter(())


def _check_schema(schema: StructType, pinned: PinnedRead) -> None:
    found, expected = from_delta_schema(schema.json()), pinned.schema()
    if [(field.name, field.type) for field in found] != [(field.name, field.type) for field in expected]:
        raise SchemaMismatchError(
            "the columns are the topic's; leave schema() out, and choose some with option('columns', …)",
            topic=pinned.settings.name,
            found=",".join(found.names),
            expected=",".join(expected.names),
        )


class TopicTask(InputPartition):
    """What one task reads."""

    def __init__(self, segments: Sequence[PlannedSegment]) -> None:
        super().__init__(None)
        self.segments = tuple(segments)


class DataSourceTopicReader(DataSourceReader):
    """Plans the tasks of a read on the driver and runs them on executors.

    Parameters
    ----------
    pinned : PinnedRead
        What is read.
    """

    def __init__(self, pinned: PinnedRead) -> None:
        self._pinned = pinned

    @without_traceback
    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks; none where no record can pass."""
        return [TopicTask(segments) for segments in self._pinned.tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task; Spark asks for an empty one where there is none."""
        return self._pinned.read(partition.segments if isinstance(partition, TopicTask) else ())
