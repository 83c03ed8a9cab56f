"""Tombstoned names, and files that may not be registered any more."""

from __future__ import annotations

import pytest

from tests.unit.partition.history import TOPIC_ID, History, data_rows, new_history, refusal
from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.log.actions import Remove
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.removal import Removal, decide_removal
from txntable.partition.tombstoning import decide_tombstoning, was_tombstoned
from txntable.segments.segment import StagedSegment

ANN = ProducerEpoch(7, 0)


@pytest.fixture
def history() -> History:
    return new_history()


def append_of(history: History, segment: StagedSegment, producer: ProducerEpoch | None = None):
    """Decide the append of one segment; the first of its producer."""
    first = None if producer is None else 0
    request = AppendRequest(TOPIC_ID, producer, False, (SequencedSegment(segment, first),))
    logs = history.topic.segments
    return decide_append(logs.fold, logs.table, request, history.time_ms)


def remove(history: History, path: str) -> None:
    """Take a row away, as compaction does."""
    logs = history.topic.segments
    history.commit(lambda table: decide_removal(logs.fold, table, Removal({path}), history.time_ms))


def tombstone(history: History, *names: str) -> None:
    history.commit(lambda table: decide_tombstoning(table, names, history.time_ms))


def test_tombstoning_leaves_out_what_is_live_and_what_has_a_tombstone(history: History) -> None:
    history.append(ANN, [(0, 2), (1, 1)], transactional=False)
    kept, gone = sorted(add.path for add in data_rows(history.topic.segments.table))
    remove(history, gone)

    actions = decide_tombstoning(history.topic.segments.table, [kept, gone, "p00000/orphan.parquet"], 77)

    assert actions == [Remove("p00000/orphan.parquet", 77, False)]


def test_tombstoning_is_told_from_the_removal_of_a_row(history: History) -> None:
    history.append(ANN, [(0, 2)], transactional=False)
    (removed,) = data_rows(history.topic.segments.table)
    remove(history, removed.path)
    tombstone(history, "p00000/orphan.parquet")

    tombstones = history.topic.segments.table.tombstones

    assert {path: was_tombstoned(gone) for path, gone in tombstones.items()} == {
        removed.path: False,
        "p00000/orphan.parquet": True,
    }


def test_tombstoning_changes_nothing_that_is_published(history: History) -> None:
    history.append(ANN, [(0, 2)], transactional=False)
    history.publish()
    before = history.topic.public.table.files.paths()

    tombstone(history, "p00000/orphan.parquet")
    history.publish()

    public, segments = history.topic.public.table, history.topic.segments.table
    assert public.files.paths() == before
    assert public.numbers["reflects"] == segments.version


def test_append_of_a_tombstoned_name_is_refused(history: History) -> None:
    staged = history.staged(0, 1)
    tombstone(history, staged.path)

    assert refusal(lambda: append_of(history, staged)) == "TRANSACTION_ABORTABLE"


@pytest.mark.parametrize(
    ("age_ms", "refused"), [(LONGEST_UPLOAD_MS, None), (LONGEST_UPLOAD_MS + 1, "TRANSACTION_ABORTABLE")]
)
def test_append_is_refused_when_the_upload_began_longer_ago_than_half_of_what_tombstones_live(
    history: History, age_ms: int, refused: str | None
) -> None:
    staged = history.staged(0, 1)
    history.time_ms += age_ms

    assert refusal(lambda: append_of(history, staged)) == refused


def test_append_is_answered_when_it_repeats_a_batch_whose_segment_was_merged_away(history: History) -> None:
    staged = history.staged(0, 2)
    history.commit(lambda table: append_of(history, staged, ANN).actions)
    (row,) = data_rows(history.topic.segments.table)
    remove(history, row.path)
    history.time_ms += 2 * LONGEST_UPLOAD_MS

    decision = append_of(history, staged, ANN)

    assert (decision.actions, decision.base_offsets) == ((), (0,))


def test_append_is_refused_when_its_segment_was_removed_and_no_sequence_tells_the_batch(history: History) -> None:
    staged = history.staged(0, 2)
    history.commit(lambda table: append_of(history, staged).actions)
    remove(history, staged.path)

    assert refusal(lambda: append_of(history, staged)) == "TRANSACTION_ABORTABLE"
