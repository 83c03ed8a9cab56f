"""Segments as values: what a log needs to know of an immutable Parquet file (PROTOCOL.md §5.2).

Owns the plan by which segments are written and the facts that registering one takes.  Does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.format.layout import segment_path
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import config_value


@dataclass(frozen=True, slots=True)
class StagedSegment:
    """An uploaded segment that no log names yet.

    Attributes
    ----------
    path : str
        Relative to S's root.
    partition : int
        From 0.
    records : int
        At least 1.
    size : int
        Bytes of the file.
    stats : str
        Delta's statistics, JSON.
    first_timestamp_ms, max_timestamp_ms : int
        Of the records, ms since 1970.
    partition_count : int or None
        Of the topic when the keys were mapped to partitions; ``None``: the records have no key.
    uploaded_at_ms : int
        The store's time at which the upload began.
    digest : str
        Of the file's bytes (:mod:`txntable.segments.segment_digest`).
    """

    path: str
    partition: int
    records: int
    size: int
    stats: str
    first_timestamp_ms: int
    max_timestamp_ms: int
    partition_count: int | None
    uploaded_at_ms: int
    digest: str


@dataclass(frozen=True, slots=True)
class MergedSegment:
    """An uploaded segment that holds records of others, with their offsets.

    Attributes
    ----------
    segment : StagedSegment
        The file.
    base_offset, last_offset : int
        Of its first and its last record.
    """

    segment: StagedSegment
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """What all segments of one write have in common.

    Attributes
    ----------
    root : str
        S's root, relative to the warehouse's.
    settings : TopicSettings
        The topic as the writer knows it.
    producer : tuple of int or None
        Producer id and epoch, for the names; ``None``: at least once.
    uploaded_at_ms : int
        The store's time; also the timestamp of records that come without one.
    compression_type : str
        Codec where the topic's is ``producer``.
    """

    root: str
    settings: TopicSettings
    producer: tuple[int, int] | None
    uploaded_at_ms: int
    compression_type: str = "zstd"

    @property
    def codec(self) -> str:
        """The codec of the columns, in Parquet's words."""
        codec = str(config_value("compression.type", self.settings.config))
        return {"producer": self.compression_type, "uncompressed": "none"}.get(codec, codec)

    def path(self, partition: int, unique: str) -> str:
        """Return a new segment's path, relative to S's root."""
        return segment_path(self.settings.topic_id, partition, self.producer, unique)


def stamps_records(settings: TopicSettings) -> bool:
    """Return whether a topic's records get the time of their upload, also those that bring one."""
    return config_value("message.timestamp.type", settings.config) == "LogAppendTime"
