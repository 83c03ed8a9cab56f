"""A segment as the partition logs know it: one batch of records of one producer (PROTOCOL.md §5.2).

Owns the translation between a row of S (partition values and tag) and a :class:`Batch`.  What a
data file holds is never needed for replay.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from txntable.coordinator.row_json import LARGEST_NUMBER, ROW_FORMAT, Fields, decode_row
from txntable.errors import DamagedDataError
from txntable.format.partition_values import whole_number
from txntable.log.actions import Add
from txntable.log.damage import reading
from txntable.segments.segment_digest import check_text

TAG_VERSION = ROW_FORMAT
_dumps = json.JSONEncoder(separators=(",", ":")).encode
_REQUIRED: Fields = {"records": int, "first_timestamp": int, "max_timestamp": int, "digest": str}
_OPTIONAL: Fields = {
    "transactional": bool,
    "first_sequence": int,
    "partition_count": int,
    "uploaded_at": int,
    "decided": list,
}


@dataclass(frozen=True, slots=True)
class ProducerEpoch:
    """Who appends: a (producer id, epoch) names one transaction, or one run of an idempotent producer."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One appended segment.

    Attributes
    ----------
    path : str
        Relative to S's root.
    partition : int
        From 0.
    base_offset, last_offset : int
        Inclusive; a merged segment may hold fewer records than the range.
    records : int
        Exact.
    producer : ProducerEpoch or None
        ``None``: at-least-once, or merged.
    transactional : bool
        Whether a marker decides about it.
    first_sequence : int or None
        Of its first record; the last is ``first_sequence + records - 1``.
    first_timestamp_ms, max_timestamp_ms : int
        Of the records, ms since 1970.
    appended_at_ms : int
        The store's time of the append: the row's modification time.
    digest : str
        Of the file's bytes (:mod:`txntable.segments.segment_digest`).
    partition_count : int or None
        Of the topic when the keys were mapped; ``None``: unkeyed.
    uploaded_at_ms : int or None
        The store's time at which the upload began.
    decided : tuple of int or None
        Merged segments: lowest and highest decision position in it.
    """

    path: str
    partition: int
    base_offset: int
    last_offset: int
    records: int
    producer: ProducerEpoch | None
    transactional: bool
    first_sequence: int | None
    first_timestamp_ms: int
    max_timestamp_ms: int
    appended_at_ms: int
    digest: str
    partition_count: int | None = None
    uploaded_at_ms: int | None = None
    decided: tuple[int, int] | None = None

    @property
    def last_sequence(self) -> int | None:
        """The sequence of the last record."""
        return None if self.first_sequence is None else self.first_sequence + self.records - 1


def batch_add(batch: Batch, size: int, stats: str | None) -> Add:
    """Return the row of S for a batch.

    Parameters
    ----------
    batch : Batch
        With its offsets.
    size : int
        Bytes of the file.
    stats : str or None
        Delta's statistics.
    """
    producer = batch.producer
    values: dict[str, str | None] = {
        "_partition": str(batch.partition),
        "_base_offset": str(batch.base_offset),
        "_last_offset": str(batch.last_offset),
        "_producer_id": None if producer is None else str(producer.producer_id),
        "_producer_epoch": None if producer is None else str(producer.epoch),
        "_control": None,
        "_marker": None,
    }
    return Add(batch.path, values, size, batch.appended_at_ms, True, stats, _encode_tag(batch))


def _encode_tag(batch: Batch) -> str:
    tag: dict[str, object] = {
        "v": TAG_VERSION,
        "records": batch.records,
        "first_timestamp": batch.first_timestamp_ms,
        "max_timestamp": batch.max_timestamp_ms,
        "digest": batch.digest,
    }
    if batch.transactional:
        tag["transactional"] = True
    if batch.first_sequence is not None:
        tag["first_sequence"] = batch.first_sequence
    if batch.partition_count is not None:
        tag["partition_count"] = batch.partition_count
    if batch.uploaded_at_ms is not None:
        tag["uploaded_at"] = batch.uploaded_at_ms
    if batch.decided is not None:
        tag["decided"] = list(batch.decided)
    return _dumps(tag)


def batch_of(add: Add) -> Batch:
    """Return the batch that a data row of S says.

    Raises
    ------
    DamagedDataError
        The row or its tag cannot be read; the message names the segment.
    UnsupportedFormatError
        The tag is of a newer version.
    """
    return decode_batch(add.path, add.partition_values, add.tag, add.modification_time)


def decode_batch(path: str, values: Mapping[str, str | None], tag_text: str | None, appended_at_ms: int) -> Batch:
    """Return the batch of a path, its partition values, its tag and its modification time; see :func:`batch_of`."""
    return _decode(path, tuple(values.items()), tag_text, appended_at_ms)


# A row is read when its entry is proved, when that is folded and when it is projected, one soon after the other.
@lru_cache(maxsize=1024)
def _decode(path: str, pairs: tuple[tuple[str, str | None], ...], tag_text: str | None, appended_at_ms: int) -> Batch:
    values = dict(pairs)
    tag = decode_tag(path, tag_text, _REQUIRED, _OPTIONAL)
    with reading(path):
        producer_id, epoch = values["_producer_id"], values["_producer_epoch"]
        if (producer_id is None) != (epoch is None):
            raise half_a_producer(path)
        whose = None if producer_id is None or epoch is None else (whole_number(producer_id), whole_number(epoch))
        decided = tag["decided"]
        batch = Batch(
            path=path,
            partition=whole_number(values["_partition"]),
            base_offset=whole_number(values["_base_offset"]),
            last_offset=whole_number(values["_last_offset"]),
            records=tag["records"],
            producer=None if whose is None else ProducerEpoch(*whose),
            transactional=tag["transactional"] or False,
            first_sequence=tag["first_sequence"],
            first_timestamp_ms=tag["first_timestamp"],
            max_timestamp_ms=tag["max_timestamp"],
            appended_at_ms=appended_at_ms,
            digest=check_text(tag["digest"]),
            partition_count=tag["partition_count"],
            uploaded_at_ms=tag["uploaded_at"],
            decided=None if decided is None else integers(decided, 2),
        )
        if not 0 <= batch.records - 1 <= batch.last_offset - batch.base_offset:
            raise DamagedDataError("a segment's offsets contradict its records; restore the log from a backup")
        return batch


def half_a_producer(path: str) -> DamagedDataError:
    """Return the error of a row with an id and no epoch, or the other way: nobody can tell whether it is committed."""
    return DamagedDataError("a segment names half a producer; restore the log from a backup", path=path)


def integers(values: object, count: int) -> Any:
    """Return a list of so many integers of 64 bits as a tuple.

    Raises
    ------
    ValueError
        It is something else.
    """
    if (
        not isinstance(values, list)
        or len(values) != count
        or any(type(value) is not int or abs(value) > LARGEST_NUMBER for value in values)
    ):
        raise ValueError(f"no list of {count} integers")
    return tuple(values)


def decode_tag(path: str, text: str | None, required: Fields, optional: Fields) -> dict[str, Any]:
    """Return a tag's fields when they are those that this version knows; one that may be missing is ``None`` then.

    Raises
    ------
    DamagedDataError
        No tag, no JSON, a field missing or of another type.
    UnsupportedFormatError
        A newer version or an unknown field: upgrade.
    """
    with reading(path):
        return decode_row(text or "", "tag", required, optional)
