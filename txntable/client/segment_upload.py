"""Uploading one partition's rows as one segment (the Python client's way; Spark has its own).

Owns nothing but the naming: the file's content is :mod:`txntable.segment`'s.
"""

from __future__ import annotations

import pyarrow as pa

from txntable.layout import segment_path
from txntable.log.delta_log import LogContext
from txntable.partition.batch import ProducerEpoch
from txntable.segment import SegmentWriter, StagedSegment
from txntable.topic import TopicSettings


class SegmentUpload:
    """Writes segments of one topic for one producer.

    Parameters
    ----------
    context : LogContext
        Store, ids, the store's time.
    root : str
        S's root.
    settings : TopicSettings
        Of the topic.
    producer : ProducerEpoch or None
        Goes into the names.
    """

    def __init__(self, context: LogContext, root: str, settings: TopicSettings, producer: ProducerEpoch | None) -> None:
        self._context, self._root, self._settings = context, root, settings
        self._owner = None if producer is None else (producer.producer_id, producer.epoch)

    def write(self, partition: int, rows: pa.Table, *, keyed: bool) -> StagedSegment:
        """Upload `rows` (the topic's columns and ``_timestamp``) as one segment.

        Raises
        ------
        StoreUnavailableError
            Nothing is registered; an orphan may be left.
        """
        path = segment_path(self._settings.topic_id, partition, self._owner, self._context.environment.new_id())
        raise NotImplementedError(path, keyed)
