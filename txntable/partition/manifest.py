"""Segments on their way through a decision: from what was staged to rows of S (PROTOCOL.md §6.1, 6.4).

Owns both translations: a staged segment into an entry of a manifest, and that entry, once it is decided, into the
batch that an append would have registered.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from txntable.coordinator.manifest import LARGEST_MANIFEST_BYTES, Manifest, ManifestSegment, manifest_bytes
from txntable.format.layout import segment_name, segment_path
from txntable.log.actions import Add
from txntable.partition.append import SequencedSegment
from txntable.partition.batch import Batch, ProducerEpoch, batch_add


def manifest_of(
    producer: ProducerEpoch, names: Mapping[str, str], staged: Mapping[str, Sequence[SequencedSegment]]
) -> Manifest | None:
    """Return staged segments as a manifest.

    Parameters
    ----------
    producer : ProducerEpoch
        Whose transaction.
    names : Mapping of str to str
        Topic id -> the topic's name.
    staged : Mapping of str to sequence of SequencedSegment
        By topic id.

    Returns
    -------
    Manifest or None
        ``None``: too large, or a file that has another name than the format's: they are to be appended first.
    """
    if not all(_is_named(topic_id, producer, items) for topic_id, items in staged.items()):
        return None
    segments = {topic_id: [_carried(item) for item in items] for topic_id, items in staged.items() if items}
    manifest = Manifest.of(names, segments)
    return manifest if manifest_bytes(manifest.segments) <= LARGEST_MANIFEST_BYTES else None


def _is_named(topic_id: str, producer: ProducerEpoch, items: Iterable[SequencedSegment]) -> bool:
    owner = (producer.producer_id, producer.epoch)
    return all(
        one.path == segment_path(topic_id, one.partition, owner, segment_name(one.path))
        for one in (item.segment for item in items)
    )


def _carried(item: SequencedSegment) -> ManifestSegment:
    segment = item.segment
    return ManifestSegment(
        name=segment_name(segment.path),
        partition=segment.partition,
        first_sequence=item.first_sequence or 0,
        records=segment.records,
        size=segment.size,
        first_timestamp_ms=segment.first_timestamp_ms,
        max_timestamp_ms=segment.max_timestamp_ms,
        uploaded_at_ms=segment.uploaded_at_ms,
        digest=segment.digest,
        stats=segment.stats,
        partition_count=segment.partition_count,
    )


def carried_add(
    topic_id: str, producer: ProducerEpoch, segment: ManifestSegment, base_offset: int, decided_at_ms: int
) -> Add:
    """Return the row of S for a segment that a decision carries: the one that an append would have written."""
    batch = Batch(
        path=segment_path(topic_id, segment.partition, (producer.producer_id, producer.epoch), segment.name),
        partition=segment.partition,
        base_offset=base_offset,
        last_offset=base_offset + segment.records - 1,
        records=segment.records,
        producer=producer,
        transactional=True,
        first_sequence=segment.first_sequence,
        first_timestamp_ms=segment.first_timestamp_ms,
        max_timestamp_ms=segment.max_timestamp_ms,
        appended_at_ms=decided_at_ms,
        digest=segment.digest,
        partition_count=segment.partition_count,
        uploaded_at_ms=segment.uploaded_at_ms,
    )
    return batch_add(batch, segment.size, segment.stats)
