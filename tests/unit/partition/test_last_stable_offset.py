"""The last stable offset while transactions begin, end and lose data (PROTOCOL.md §5.6)."""

from __future__ import annotations

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, topic_settings
from txntable.log.actions import Action, Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import ProducerEpoch
from txntable.partition.markers import Control
from txntable.partition.offsets import LOG_START, per_partition
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_log import TopicLog

ANN, BOB = ProducerEpoch(7, 0), ProducerEpoch(8, 0)


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    return history


def lso(history: History, partition: int = 0) -> int:
    segments = history.topic.segments
    return last_stable_offset(segments.fold, segments.table, TOPIC_ID, partition)


def lso_after_reopening(history: History, partition: int = 0) -> int:
    history.topic.segments.write_checkpoint()
    fresh = TopicLog(history.topic.context, "t")
    fresh.segments.refresh()
    return last_stable_offset(fresh.segments.fold, fresh.segments.table, TOPIC_ID, partition)


def first_path(history: History, partition: int, offset: int) -> str:
    return next(
        add.path
        for add in history.topic.segments.table.files
        if (add.partition_values["_partition"], add.partition_values["_base_offset"]) == (str(partition), str(offset))
    )


def retain_from(history: History, partition: int, offset: int, removed: str) -> None:
    """Raise the log start offset over a segment, as retention will."""

    def decide(table: TableState) -> list[Action]:
        add = table.files.get(removed)
        assert add is not None
        return [
            Remove(removed, 9, False, add.partition_values, add.size),
            Txn(per_partition(LOG_START, TOPIC_ID, partition), offset),
        ]

    history.commit(decide)


@pytest.mark.parametrize("control", [Control.COMMIT, Control.ABORT])
def test_end_of_the_first_transaction_moves_it_to_the_next_open_one_and_the_last_to_the_end(
    history: History, control: Control
) -> None:
    history.append(ANN, [(0, 2)], transactional=True)
    history.append(BOB, [(0, 3)], transactional=True)
    history.append(None, [(0, 1)], transactional=False)
    seen = [lso(history)]

    history.decide(ANN, control)
    seen.append(lso(history))
    history.decide(BOB, control)
    seen.append(lso(history))

    assert seen == [0, 2, 8]
    assert high_watermark(history.topic.segments.table, TOPIC_ID, 0) == 8, "six records and two markers"


def test_end_of_a_later_transaction_leaves_it_where_the_first_one_holds_it(history: History) -> None:
    history.append(None, [(0, 4)], transactional=False)
    history.append(ANN, [(0, 1)], transactional=True)
    history.append(BOB, [(0, 1)], transactional=True)

    history.decide(BOB, Control.COMMIT)

    assert lso(history) == 4


def test_transaction_holds_back_only_the_partitions_with_its_data(history: History) -> None:
    history.append(None, [(0, 1), (1, 1)], transactional=False)
    history.append(ANN, [(1, 1)], transactional=True)

    assert [lso(history, partition) for partition in range(3)] == [1, 1, 0]
    history.append(None, [(0, 5)], transactional=False)
    assert [lso(history, partition) for partition in range(3)] == [6, 1, 0]


def test_marker_without_data_holds_nothing_back_and_takes_an_offset(history: History) -> None:
    history.decide(ANN, Control.COMMIT)

    assert lso(history) == high_watermark(history.topic.segments.table, TOPIC_ID, 0) == 1


def test_never_below_the_log_start_and_the_same_for_who_opens_the_log_anew(history: History) -> None:
    """Retention took the first data of an open transaction: the rest of it holds back."""
    history.append(ANN, [(0, 2)], transactional=True)
    history.append(None, [(0, 1)], transactional=False)
    history.append(ANN, [(0, 1)], transactional=True)

    retain_from(history, 0, 2, first_path(history, 0, 0))

    assert lso(history) == lso_after_reopening(history) == 3


def test_data_that_retention_took_whole_holds_back_no_partition_any_more(history: History) -> None:
    history.append(ANN, [(0, 2), (1, 1)], transactional=True)
    history.append(None, [(0, 1)], transactional=False)

    retain_from(history, 0, 2, first_path(history, 0, 0))

    assert lso(history) == lso_after_reopening(history) == 3
    assert lso(history, 1) == 0
