"""What a decision carries: the uploaded segments that its commit appends (PROTOCOL.md §6.1).

A decision to commit may name segments that no partition log has yet.  Whoever completes it appends exactly these, in
this order, in front of the transaction's marker.  Owns the value, its JSON and what must hold of it.  Must not know
of paths, offsets or partition logs.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT, EnrolledTopic, Topics
from txntable.coordinator.errors import DamagedDataError
from txntable.coordinator.row_json import Fields, decode_object
from txntable.coordinator.topic_name import is_topic_id

LARGEST_MANIFEST_BYTES = 128 * 1024
"""Of the JSON; larger transactions are appended before they are decided."""
LONGEST_UPLOAD_MS = 36 * 60 * 60 * 1000
"""How old an upload may be when a log comes to name it: half of the retention of a segment log."""


@dataclass(frozen=True, slots=True)
class ManifestSegment:
    """An uploaded segment that a decision appends.

    Attributes
    ----------
    name : str
        The 32 hex digits that end its path; topic, partition, producer id and epoch say the rest.
    partition : int
        From 0.
    first_sequence : int
        Of its first record.
    records : int
        At least 1.
    size : int
        Bytes of the file.
    first_timestamp_ms, max_timestamp_ms : int
        Of the records, ms since 1970.
    uploaded_at_ms : int
        The store's time at which the upload began.
    digest : str
        Of the file's bytes.
    stats : str
        Delta's statistics, JSON.
    partition_count : int or None
        Of the topic when the keys were mapped to partitions; ``None``: the records have no key.
    """

    name: str
    partition: int
    first_sequence: int
    records: int
    size: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    uploaded_at_ms: int
    digest: str
    stats: str
    partition_count: int | None = None


Segments = Mapping[str, Sequence[ManifestSegment]]
"""By topic id (32 hex digits): ascending by partition, of one partition in the order of their sequences."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a commit is asked to carry.

    Attributes
    ----------
    topics : Topics
        The partitions that the segments are of, by topic id.
    segments : Segments
        What is to be appended.
    """

    topics: Topics = field(default_factory=dict)
    segments: Segments = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.segments)

    @property
    def oldest_upload_ms(self) -> int | None:
        """The store's time at which the first of the uploads began; ``None``: nothing is carried."""
        uploads = (segment.uploaded_at_ms for segments in self.segments.values() for segment in segments)
        return min(uploads, default=None)

    @classmethod
    def of(cls, names: Mapping[str, str], segments: Mapping[str, Sequence[ManifestSegment]]) -> Manifest:
        """Return the manifest of `segments` by topic id; `names` has the topics' names."""
        ordered = {
            topic_id: tuple(sorted(found, key=lambda one: (one.partition, one.first_sequence)))
            for topic_id, found in sorted(segments.items())
        }
        topics = {
            topic_id: EnrolledTopic(names[topic_id], frozenset(one.partition for one in found))
            for topic_id, found in ordered.items()
        }
        return cls(topics, ordered)


NOTHING_CARRIED = Manifest()


def encode_segments(segments: Segments) -> dict[str, list[dict[str, object]]]:
    """Return the JSON form of a manifest's segments, in the order of the topics' ids."""
    return {topic_id: [_encode(segment) for segment in found] for topic_id, found in sorted(segments.items())}


def manifest_bytes(segments: Segments) -> int:
    """Return how many bytes of UTF-8 the JSON form has."""
    document = encode_segments(segments)
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def _encode(segment: ManifestSegment) -> dict[str, object]:
    stored: dict[str, object] = {
        "name": segment.name,
        "partition": segment.partition,
        "first_sequence": segment.first_sequence,
        "records": segment.records,
        "size": segment.size,
        "first_timestamp": segment.first_timestamp_ms,
        "max_timestamp": segment.max_timestamp_ms,
        "uploaded_at": segment.uploaded_at_ms,
        "digest": segment.digest,
        "stats": segment.stats,
    }
    if segment.partition_count is not None:
        stored["partition_count"] = segment.partition_count
    return stored


_REQUIRED: Fields = {
    "name": str,
    "partition": int,
    "first_sequence": int,
    "records": int,
    "size": int,
    "first_timestamp": int,
    "max_timestamp": int,
    "uploaded_at": int,
    "digest": str,
    "stats": str,
}
_OPTIONAL: Fields = {"partition_count": int}
_NAME = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[a-z0-9]{1,32}:[0-9a-f]{8,256}")


def decode_segments(document: Mapping[str, Any], what: str) -> dict[str, tuple[ManifestSegment, ...]]:
    """Return the segments of a stored row's manifest; `what` is what messages call the row.

    Raises
    ------
    DamagedDataError
        A field is missing, of another type or out of bounds; or segments are out of order.
    UnsupportedFormatError
        A field is unknown: use a newer version of this software.
    """
    found: dict[str, tuple[ManifestSegment, ...]] = {}
    for topic_id, stored in document.items():
        if not isinstance(stored, list) or not stored or not is_topic_id(topic_id):
            raise DamagedDataError(
                "a manifest has a topic without segments, or without an id", row=what, topic_id=reprlib.repr(topic_id)
            )
        segments = tuple(_decode(one, what) for one in stored)
        if not is_in_order(segments):
            raise DamagedDataError("the segments of a manifest are out of order", row=what, topic_id=topic_id)
        found[topic_id] = segments
    return found


def _decode(document: object, what: str) -> ManifestSegment:
    fields = decode_object(document, what, _REQUIRED, _OPTIONAL)
    count = fields["partition_count"]
    segment = ManifestSegment(
        name=fields["name"],
        partition=fields["partition"],
        first_sequence=fields["first_sequence"],
        records=fields["records"],
        size=fields["size"],
        first_timestamp_ms=fields["first_timestamp"],
        max_timestamp_ms=fields["max_timestamp"],
        uploaded_at_ms=fields["uploaded_at"],
        digest=fields["digest"],
        stats=fields["stats"],
        partition_count=count,
    )
    holds = (
        _NAME.fullmatch(segment.name)
        and _DIGEST.fullmatch(segment.digest)
        and 0 <= segment.partition < LARGEST_PARTITION_COUNT
        and segment.first_sequence >= 0
        and min(segment.records, segment.size, 1 if count is None else count) >= 1
    )
    if not holds:
        raise DamagedDataError("a segment of a manifest contradicts the format", row=what, name=segment.name)
    return segment


def is_in_order(segments: Sequence[ManifestSegment]) -> bool:
    """Return whether partitions ascend, and in each one's sequence goes on where the one before ended."""
    if [one.partition for one in segments] != sorted(one.partition for one in segments):
        return False
    if len({one.name for one in segments}) != len(segments):
        return False
    groups = (list(group) for _, group in groupby(segments, key=lambda one: one.partition))
    return all(
        late.first_sequence == one.first_sequence + one.records for group in groups for one, late in pairwise(group)
    )
