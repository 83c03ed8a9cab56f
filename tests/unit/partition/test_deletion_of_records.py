"""What a deletion of records takes from a partition, and the segment that it cuts (PROTOCOL.md §5.9)."""

from __future__ import annotations

import pytest

from tests.unit.partition.history import published
from tests.unit.partition.retained import Retained, plain_segments, retained
from txntable.partition import log_start as log_start_module
from txntable.partition.batch import ProducerEpoch
from txntable.partition.log_start import LogStartDecision, cut_segments
from txntable.partition.markers import Control

ANN = ProducerEpoch(7, 0)


@pytest.mark.parametrize(
    ("offset", "start", "bases"),
    [
        (0, 0, [0, 10, 20]),
        (1, 1, [0, 10, 20]),
        (9, 9, [0, 10, 20]),
        (10, 10, [10, 20]),
        (15, 15, [10, 20]),
        (30, 30, []),
    ],
)
def test_deletion_takes_whole_segments_and_the_log_starts_where_it_was_told_to(
    offset: int, start: int, bases: list[int]
) -> None:
    history = retained()
    plain_segments(history, 3)

    decision = history.delete({0: offset})

    assert (history.start(), history.bases()) == (start, bases)
    assert decision.log_starts == ({0: start} if start else {})


def test_deletion_at_or_below_the_log_start_changes_nothing() -> None:
    history = retained()
    plain_segments(history, 3)
    history.delete({0: 15})

    for offset in (15, 14, 0):
        assert history.delete({0: offset, 1: 0}) == LogStartDecision()
    assert history.start() == 15


def test_deletion_goes_beyond_the_stable_offset_and_through_open_transactions() -> None:
    history = retained()
    history.append(ANN, [(0, 10)], transactional=True)
    history.append(None, [(0, 5)], transactional=False)
    history.append(ANN, [(0, 10)], transactional=True)

    history.delete({0: 20})

    assert (history.start(), history.lso()) == (20, 20)
    assert history.bases() == [10, 15], "what is not published waits, and what is cut stays"
    history.decide(ANN, Control.COMMIT)
    history.publish()
    assert history.lso() == history.end() == 26
    assert published(history.topic) == history.visible()


def test_deletion_of_bounded_size_hides_all_and_leaves_the_rest_to_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_start_module, "LARGEST_COMMIT_SEGMENTS", 2)
    history = retained()
    plain_segments(history, 4)

    history.delete({0: 40})

    assert (history.start(), history.bases()) == (40, [20, 30])
    history.retain()
    assert (history.start(), history.bases()) == (40, [])


# -- what the log start cuts --------------------------------------------------------------------


def cut(history: Retained, partition: int = 0) -> tuple[int, int, int] | None:
    """Base offset of the segment that is cut, and which of its offsets count."""
    found = cut_segments(*history.state, [partition])
    return (found[0].base_offset, found[0].start, found[0].end) if found else None


def test_visible_segment_that_the_log_start_cuts_is_found() -> None:
    history = retained()
    plain_segments(history, 3)
    found = [cut(history)]

    for offset in (10, 15, 30):
        history.delete({0: offset})
        found.append(cut(history))

    assert found == [None, None, (10, 15, 30), None]
    assert cut(history, 1) is None


@pytest.mark.parametrize("control", [Control.COMMIT, Control.ABORT])
def test_segment_that_is_cut_waits_for_its_decision_and_its_publication(control: Control) -> None:
    history = retained()
    history.append(ANN, [(0, 10)], transactional=True)
    history.delete({0: 5})
    found = [cut(history)]

    history.decide(ANN, control)
    found.append(cut(history))
    history.publish()
    found.append(cut(history))

    assert found == [None, None, (0, 5, 11) if control is Control.COMMIT else None]
