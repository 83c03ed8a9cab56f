"""Staged segments as a decision carries them, and the rows of S that they become (PROTOCOL.md §6.1, 6.4)."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.partition.history import TOPIC_ID, new_history
from txntable.coordinator.manifest import LARGEST_MANIFEST_BYTES, NOTHING_CARRIED
from txntable.format.layout import segment_path
from txntable.partition.append import SequencedSegment
from txntable.partition.batch import ProducerEpoch, batch_of
from txntable.partition.manifest import carried_add, manifest_of

ANN = ProducerEpoch(7, 0)
NAMES = {TOPIC_ID: "t"}


def staged(number: int, *, records: int = 2, first: int | None = 0, stats: str = "{}") -> SequencedSegment:
    path = segment_path(TOPIC_ID, 0, (ANN.producer_id, ANN.epoch), f"{number:032x}")
    segment = replace(new_history().staged(0, records), path=path, stats=stats)
    return SequencedSegment(segment, first)


def test_carried_segment_becomes_the_row_that_an_append_would_have_written() -> None:
    one = staged(1, records=3, first=4)
    manifest = manifest_of(ANN, NAMES, {TOPIC_ID: [one]})
    assert manifest is not None

    add = carried_add(TOPIC_ID, ANN, manifest.segments[TOPIC_ID][0], 10, 1_234)

    batch = batch_of(add)
    assert (batch.path, batch.partition, batch.base_offset, batch.last_offset) == (one.segment.path, 0, 10, 12)
    assert (batch.producer, batch.transactional, batch.first_sequence) == (ANN, True, 4)
    assert (batch.digest, batch.appended_at_ms) == (one.segment.digest, 1_234)
    assert (add.size, add.stats) == (one.segment.size, one.segment.stats)


def test_nothing_staged_is_nothing_carried() -> None:
    assert manifest_of(ANN, NAMES, {TOPIC_ID: []}) == NOTHING_CARRIED


def test_segments_that_make_too_large_a_manifest_are_not_carried() -> None:
    third = LARGEST_MANIFEST_BYTES // 3
    few = [staged(number, stats="s" * third) for number in range(2)]

    assert manifest_of(ANN, NAMES, {TOPIC_ID: few}) is not None
    assert manifest_of(ANN, NAMES, {TOPIC_ID: [*few, staged(2, stats="s" * third)]}) is None


def test_segment_under_another_name_than_the_formats_is_not_carried() -> None:
    odd = staged(1)
    odd = replace(odd, segment=replace(odd.segment, path=f"p0/{'b' * 32}.parquet"))

    assert manifest_of(ANN, NAMES, {TOPIC_ID: [odd]}) is None
