"""Records of one topic waiting to be uploaded: which partition each goes to, and which batches are full.

Owns the buffer of one topic of one producer, and what is refused before anything is buffered.
Invariant: the rows of a partition leave in the order of their sends.  Bounded: a partition holds
``batch_size`` bytes and one ``send`` more, as long as what is full is taken.  Must not know of segments,
sequences or transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError, RecordTooLargeError, UnknownTopicOrPartitionError
from txntable.format.conform import TIMESTAMP_COLUMN, conform
from txntable.format.delta_types import TIMESTAMP
from txntable.format.records import RecordMetadata, SendOptions
from txntable.format.schema import all_nullable
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import config_value
from txntable.producer.partitioner import Placement, TopicPartitioner
from txntable.producer.producer_config import ProducerConfig
from txntable.producer.record_size import value_sizes
from txntable.producer.row_check import RowCheck
from txntable.producer.waiting_batch import WaitingBatch
from txntable.runtime.environment import Instant

_TIMESTAMP = pa.field(TIMESTAMP_COLUMN, TIMESTAMP)
_US_PER_MS = 1000


class RecordAccumulator:
    """The buffer of one topic.

    Parameters
    ----------
    settings : TopicSettings
        The topic as it is known now.
    config : ProducerConfig
        Sizes.
    partitioner : TopicPartitioner
        Chooses where the caller does not.
    now : callable
        Returns the present moment.

    Attributes
    ----------
    waiting_since : Instant or None
        When the oldest record that waits was sent, or earlier; ``None``: none waits.
    full : set of int
        The partitions that hold ``batch_size`` bytes.
    """

    def __init__(
        self,
        settings: TopicSettings,
        config: ProducerConfig,
        partitioner: TopicPartitioner,
        now: Callable[[], Instant],
    ) -> None:
        self.settings = settings
        self.waiting_since: Instant | None = None
        self._config = config
        self._partitioner = partitioner
        self._now = now
        self._check = RowCheck(settings)
        self._schema = pa.schema([*all_nullable(settings.schema), _TIMESTAMP])
        self._largest_record = min(
            config.max_request_size, int(str(config_value("max.message.bytes", settings.config)))
        )
        self._batches: list[WaitingBatch] = []
        self._open: dict[int, WaitingBatch] = {}
        self._bytes: dict[int, int] = {}
        self.full: set[int] = set()

    # -- taking -----------------------------------------------------------------------------

    def add_row(self, row: Mapping[str, Any], options: SendOptions) -> RecordMetadata:
        """Buffer one record.

        Raises
        ------
        SchemaMismatchError
            A column is unknown or missing, or a value is of another type.
        UnknownTopicOrPartitionError, InvalidRequestError
            The partition is none of the topic's, or the row is no mapping.
        RecordTooLargeError
            The record is larger than the producer or the topic allows.
        """
        self._check_partition(options.partition)
        checked = self._check.check(row)
        self._check_size(checked.size)
        if options.partition is None:
            partition, placement = self._partitioner.place(self.settings, checked.values, checked.size)
        else:
            partition, placement = options.partition, Placement.CHOSEN
        metadata = RecordMetadata(self.settings.name, 1, options.timestamp_ms, options.on_delivery)
        batch = self._batch(partition, placement)
        batch.add_row(checked, options.timestamp_ms * _US_PER_MS, metadata)
        self._added(partition, checked.size)
        return metadata

    def add_table(self, rows: pa.Table | pa.RecordBatch, options: SendOptions) -> RecordMetadata:
        """Buffer many records; see :meth:`add_row`."""
        self._check_partition(options.partition)
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, pa.Table):
            raise _no_table(rows)
        if TIMESTAMP_COLUMN not in rows.column_names:
            times = np.full(rows.num_rows, options.timestamp_ms * _US_PER_MS, np.int64)
            rows = rows.append_column(_TIMESTAMP, pa.array(times).view(TIMESTAMP))
        parts = [part for part in conform(rows, self.settings).combine_chunks().to_batches() if part.num_rows]
        sizes = [value_sizes(part.columns[:-1], part.num_rows) for part in parts]
        self._check_size(max((int(found.max()) for found in sizes), default=0))
        groups = [
            group for part, found in zip(parts, sizes, strict=True) for group in self._groups(part, found, options)
        ]
        first_ms = parts[0].column(-1).view(pa.int64())[0].as_py() // _US_PER_MS if groups else options.timestamp_ms
        metadata = RecordMetadata(self.settings.name, rows.num_rows, first_ms, options.on_delivery)
        for partition, placement, part, size in groups:
            self._batch(partition, placement).add_rows(part, size, metadata)
            self._added(partition, size)
        if not groups:
            metadata.announce()
        return metadata

    def _groups(
        self, rows: pa.RecordBatch, sizes: npt.NDArray[np.int64], options: SendOptions
    ) -> Iterator[tuple[int, Placement, pa.RecordBatch, int]]:
        """Yield the rows of each partition, in their order, with their bytes."""
        if options.partition is not None:
            yield options.partition, Placement.CHOSEN, rows, int(sizes.sum())
            return
        partitions, keyed = self._partitioner.place_all(self.settings, rows, sizes)
        order = np.argsort(partitions, kind="stable")
        ordered = partitions[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
        for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
            chosen = order[start:end]
            placement = Placement.KEYED if keyed[chosen].any() else self._partitioner.without_key
            # Copied, not sliced: a slice would keep all of the rows in memory until its partition is full.
            part = rows if len(starts) == 1 else rows.take(pa.array(chosen))
            yield int(ordered[start]), placement, part, int(sizes[chosen].sum())

    def _batch(self, partition: int, placement: Placement) -> WaitingBatch:
        """Return the batch of a partition that takes rows of this placement."""
        batch = self._open.get(partition)
        joined = None if batch is None else batch.placement.joined(placement)
        if batch is None or joined is None:
            batch = self._open[partition] = WaitingBatch(partition, placement, self._schema)
            self._batches.append(batch)
        else:
            batch.placement = joined
        return batch

    def _added(self, partition: int, size: int) -> None:
        if self.waiting_since is None:
            self.waiting_since = self._now()
        held = self._bytes[partition] = self._bytes.get(partition, 0) + size
        if held >= self._config.batch_size:
            self.full.add(partition)

    def _check_partition(self, partition: int | None) -> None:
        if partition is None:
            return
        if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
            raise InvalidRequestError("a partition must be an integer of at least 0", partition=shown(partition))
        if partition >= self.settings.partitions:
            raise UnknownTopicOrPartitionError(
                "the topic has no such partition",
                topic=self.settings.name,
                partition=partition,
                partitions=self.settings.partitions,
            )

    def _check_size(self, size: int) -> None:
        if size > self._largest_record:
            raise RecordTooLargeError(
                "the record is too large; make it smaller, or raise the producer's max.request.size and the "
                "topic's max.message.bytes",
                topic=self.settings.name,
                size=size,
                max_request_size=self._config.max_request_size,
                max_message_bytes=config_value("max.message.bytes", self.settings.config),
            )

    # -- giving -----------------------------------------------------------------------------

    def close_batches(self, *, only_full: bool) -> list[WaitingBatch]:
        """Return the batches to upload, of each partition in order; they wait until :meth:`forget`.

        Parameters
        ----------
        only_full : bool
            Whether those of partitions with less than ``batch_size`` bytes go on filling.
        """
        closed = [batch for batch in self._batches if not only_full or batch.partition in self.full]
        for batch in closed:
            self._open.pop(batch.partition, None)
        if not only_full:
            self._partitioner.sticky.close_batch()
        return closed

    def forget(self, batch: WaitingBatch) -> None:
        """Forget a batch that was uploaded: the first one of its partition."""
        self._batches.remove(batch)
        self._bytes[batch.partition] -= batch.size
        if self._bytes[batch.partition] < self._config.batch_size:
            self.full.discard(batch.partition)
        if not self._batches:
            self.waiting_since = None

    @property
    def waiting(self) -> tuple[WaitingBatch, ...]:
        """All batches that wait."""
        return tuple(self._batches)


def _no_table(rows: object) -> InvalidRequestError:
    library, call = type(rows).__module__.partition(".")[0], "convert them"
    if library == "pandas":
        call = "convert a DataFrame of pandas by pa.Table.from_pandas(rows, preserve_index=False)"
    elif library == "polars":
        call = "convert a DataFrame of polars by rows.to_arrow()"
    return InvalidRequestError(f"rows must be a pyarrow.Table; {call}", found=type(rows).__name__)
