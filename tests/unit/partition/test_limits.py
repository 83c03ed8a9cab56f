"""How much one commit and one transaction may register (PROTOCOL.md §5.2)."""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import RecordTooLargeError
from txntable.format.records import RecordMetadata
from txntable.partition.append import (
    LARGEST_TRANSACTION_BYTES,
    LARGEST_TRANSACTION_SEGMENTS,
    SequencedSegment,
    split_for_commits,
)
from txntable.segments.segment import StagedSegment


def staged(number: int, stats: str = "{}") -> StagedSegment:
    return StagedSegment(f"p00000/{number}.parquet", 0, 1, 100, stats, 1, 2, None, 3, f"sha256:{number % 2**64:064x}")


@pytest.mark.parametrize(
    ("count", "stats", "sizes"),
    [(0, 2, []), (1, 2, [1]), (10_000, 2, [10_000]), (10_001, 2, [10_000, 1]), (9, 16 * 1024 * 1024, [1] * 9)],
)
def test_segments_are_split_by_number_and_by_size_in_order(count: int, stats: int, sizes: list[int]) -> None:
    text = "x" * stats
    segments = [SequencedSegment(staged(number, text), number) for number in range(count)]

    parts = split_for_commits(segments)

    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == segments


@pytest.mark.parametrize(
    ("taken", "one_more"),
    [
        ([staged(number) for number in range(LARGEST_TRANSACTION_SEGMENTS)], staged(-1)),
        ([staged(number, "x" * (LARGEST_TRANSACTION_BYTES // 8 - 800)) for number in range(8)], staged(-1, "")),
    ],
    ids=["segments", "bytes of actions"],
)
def test_transaction_with_too_much_in_a_topic_must_be_aborted(
    taken: list[StagedSegment], one_more: StagedSegment
) -> None:
    warehouse = Site().create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    topic = warehouse.topic_log("t")
    settings = topic.settings()
    producer.stage(topic, settings, taken, RecordMetadata("t"))

    with pytest.raises(RecordTooLargeError, match=r"larger ones .*distribution_mode='hash'"):
        producer.stage(topic, settings, [one_more], RecordMetadata("t"))

    assert producer.state == "ABORTABLE_ERROR"
    producer.abort_transaction()
    assert producer.state == "READY"
