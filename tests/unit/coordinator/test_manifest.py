"""What a decision carries: its JSON, its order, and what a row or a request with one must not be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from txntable.coordinator.batch_memory import BatchMemory
from txntable.coordinator.decision import Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import (
    DamagedDataError,
    InvalidRequestError,
    InvalidTxnStateError,
    TransactionAbortableError,
    UnsupportedFormatError,
)
from txntable.coordinator.manifest import (
    LONGEST_UPLOAD_MS,
    Manifest,
    ManifestSegment,
    decode_segments,
    encode_segments,
    manifest_bytes,
)
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest
from txntable.coordinator.transaction_shard import complete, end
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.segments.topic_metadata import SEGMENTS_RETENTION_MS

RowBuilder = Callable[..., TransactionMetadata]
TOPIC, OTHER = "a" * 32, "b" * 32
SLOT = 20
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


def segment(number: int = 1, partition: int = 0, first: int = 0, records: int = 2) -> ManifestSegment:
    """An uploaded segment."""
    return ManifestSegment(
        f"{number:032x}", partition, first, records, 900, 1, 2, 1_000, f"sha256:{number:064x}", '{"numRecords":2}', 3
    )


def manifest(*segments: ManifestSegment, topic_id: str = TOPIC) -> Manifest:
    """What a commit carries for one topic."""
    return Manifest.of({topic_id: "flights"}, {topic_id: segments or (segment(),)})


def ending(carried: Manifest, **changes: object) -> EndRequest:
    """The request of producer 7, epoch 5."""
    return replace(EndRequest(7, 5, Outcome.COMMIT, SLOT, decided_at_ms=1_000, manifest=carried), **changes)  # type: ignore[arg-type]


# -- the value ----------------------------------------------------------------------------------


def test_manifest_orders_topics_partitions_and_sequences_and_knows_what_is_enrolled() -> None:
    late, early, other = segment(2, 1, 2), segment(1, 1), segment(3)

    made = Manifest.of({OTHER: "o", TOPIC: "t"}, {OTHER: [segment(4)], TOPIC: [late, early, other]})

    assert list(made.segments) == [TOPIC, OTHER]
    assert made.segments[TOPIC] == (other, early, late)
    assert made.topics[TOPIC] == EnrolledTopic("t", frozenset({0, 1}))
    assert made.oldest_upload_ms == 1_000
    assert not Manifest()
    assert Manifest().oldest_upload_ms is None


def test_manifest_reads_back_as_it_was_and_leaves_out_a_partition_count_that_is_not_there() -> None:
    found = {TOPIC: (segment(), replace(segment(2, 1), partition_count=None))}

    stored = json.loads(json.dumps(encode_segments(found)))

    assert decode_segments(stored, "row") == found
    assert [("partition_count" in one) for one in stored[TOPIC]] == [True, False]
    assert manifest_bytes(found) == len(json.dumps(stored, separators=(",", ":")))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "A" * 32},
        {"name": "a" * 31},
        {"digest": "sha256"},
        {"partition": -1},
        {"partition": 100_000},
        {"partition": "0"},
        {"first_sequence": -1},
        {"records": 0},
        {"size": 0},
        {"partition_count": 0},
        {"stats": None},
        {"uploaded_at": 1.5},
    ],
)
def test_segment_of_a_manifest_is_refused_when_it_is_out_of_bounds(change: dict[str, object]) -> None:
    (stored,) = encode_segments({TOPIC: (segment(),)})[TOPIC]

    with pytest.raises(DamagedDataError):
        decode_segments({TOPIC: [{**stored, **change}]}, "row")


def test_segment_of_a_manifest_is_refused_as_newer_when_a_field_is_unknown() -> None:
    (stored,) = encode_segments({TOPIC: (segment(),)})[TOPIC]

    with pytest.raises(UnsupportedFormatError):
        decode_segments({TOPIC: [{**stored, "encryption": "x"}]}, "row")


@pytest.mark.parametrize(
    "segments",
    [
        [],
        [segment(1, 1), segment(2, 0)],
        [segment(1), segment(2, first=3)],
        [segment(1), segment(2)],
        [segment(1), segment(1, first=2)],
        [segment(1), segment(1, partition=1)],
    ],
    ids=["none", "partitions fall", "a hole", "the same sequence", "a name twice", "a name in two partitions"],
)
def test_manifest_is_refused_when_its_segments_are_out_of_order(segments: list[ManifestSegment]) -> None:
    with pytest.raises(DamagedDataError):
        decode_segments(encode_segments({TOPIC: segments}), "row")


@pytest.mark.parametrize("stored", [{}, "x", None])
def test_manifest_is_refused_when_a_topic_has_no_list(stored: object) -> None:
    with pytest.raises(DamagedDataError):
        decode_segments({TOPIC: stored}, "row")


def test_upload_may_be_half_as_old_as_partition_logs_keep_what_is_gone() -> None:
    assert 2 * LONGEST_UPLOAD_MS == SEGMENTS_RETENTION_MS


# -- the decision -------------------------------------------------------------------------------


@pytest.mark.parametrize("state", IDLE)
def test_commit_with_a_manifest_decides_what_enrolled_nothing_before(a_row: RowBuilder, state: S) -> None:
    row = end(a_row(state), ending(manifest())).row

    assert row is not None
    assert (row.state, row.position, row.started_position, row.producer_epoch) == (S.PREPARE_COMMIT, SLOT, SLOT, 6)
    assert row.topics == {TOPIC: EnrolledTopic("flights", frozenset({0}))}
    assert row.manifest == {TOPIC: (segment(),)}
    assert TransactionMetadata.from_json(row.to_json()) == row


def test_commit_with_a_manifest_adds_its_partitions_to_those_that_are_enrolled(a_row: RowBuilder) -> None:
    row = end(a_row(S.ONGOING), ending(manifest(segment(partition=7)))).row

    assert row is not None
    assert row.topics[TOPIC].partitions == {0, 1, 7}
    assert (row.started_position, row.groups) == (10, ("g",))


def test_complete_leaves_nothing_of_a_manifest(a_row: RowBuilder) -> None:
    decided = end(a_row(S.EMPTY), ending(manifest())).row
    assert decided is not None

    row = complete(decided, SLOT, SLOT + 1).row

    assert row is not None
    assert (row.state, row.manifest, row.topics) == (S.COMPLETE_COMMIT, {}, {})


def test_commit_with_a_manifest_and_a_batch_id_remembers_the_batch(a_row: RowBuilder) -> None:
    transition = end(a_row(S.EMPTY), ending(manifest(), batch_id="monday", memory=BatchMemory()))

    assert transition.row is not None
    assert transition.row.state is S.PREPARE_COMMIT
    assert transition.batch_row is not None
    assert transition.batch_row.position == SLOT


@pytest.mark.parametrize("state", IDLE)
def test_commit_of_nothing_is_still_refused(a_row: RowBuilder, state: S) -> None:
    with pytest.raises(InvalidTxnStateError):
        end(a_row(state), ending(Manifest()))


def test_manifest_is_refused_with_a_prepared_transaction(a_row: RowBuilder) -> None:
    with pytest.raises(InvalidTxnStateError):
        end(a_row(S.PREPARED), ending(manifest()))


@pytest.mark.parametrize("change", [{"outcome": Outcome.ABORT}, {"token": "t"}])
def test_manifest_is_refused_with_an_abort_and_beside_a_token(change: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="append them before"):
        ending(manifest(), **change)


def test_manifest_is_refused_without_the_time_that_its_age_is_told_by() -> None:
    with pytest.raises(InvalidRequestError, match="says when it is decided"):
        ending(manifest(), decided_at_ms=None)


@pytest.mark.parametrize(("age_ms", "is_taken"), [(LONGEST_UPLOAD_MS, True), (LONGEST_UPLOAD_MS + 1, False)])
def test_uploads_that_vacuum_may_take_are_refused_at_the_decision(
    a_row: RowBuilder, age_ms: int, *, is_taken: bool
) -> None:
    request = ending(manifest(segment(1), replace(segment(2, 1), uploaded_at_ms=5_000)), decided_at_ms=1_000 + age_ms)

    if is_taken:
        assert end(a_row(S.EMPTY), request).row is not None
        return
    with pytest.raises(TransactionAbortableError, match="too long ago"):
        end(a_row(S.EMPTY), request)


def test_decision_that_is_asked_again_is_answered_whatever_the_age_of_its_uploads(a_row: RowBuilder) -> None:
    decided = end(a_row(S.EMPTY), ending(manifest())).row
    assert decided is not None

    late = end(decided, ending(manifest(), decided_at_ms=10 * LONGEST_UPLOAD_MS, repeated=True))

    assert late.row is None
    assert late.answer.outcome is Outcome.COMMIT


# -- the row ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARED, S.PREPARE_ABORT, *IDLE])
def test_row_is_refused_when_it_has_a_manifest_and_is_not_to_be_committed(a_row: RowBuilder, state: S) -> None:
    with pytest.raises(DamagedDataError, match="manifest"):
        a_row(state, manifest={TOPIC: (segment(),)})


@pytest.mark.parametrize("found", [{OTHER: (segment(),)}, {TOPIC: (segment(partition=2),)}])
def test_row_is_refused_when_its_manifest_has_what_is_not_enrolled(
    a_row: RowBuilder, found: dict[str, tuple[ManifestSegment, ...]]
) -> None:
    with pytest.raises(DamagedDataError, match="enrolled partitions"):
        a_row(S.PREPARE_COMMIT, manifest=found)
