"""Open transactions of a topic, and the marker that ends one directly (PROTOCOL.md §6.5)."""

from __future__ import annotations

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, published, topic_settings
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker
from txntable.partition.markers import Control
from txntable.partition.offsets import decided_through, next_offset
from txntable.partition.open_transactions import HangingEpoch, decide_abort_marker, open_in_topic
from txntable.partition.stable_offset import last_stable_offset
from txntable.topics.topic_log import TopicLog

HANGING, OTHER = ProducerEpoch(7, 3), ProducerEpoch(8, 0)
POSITION = 50


@pytest.fixture
def history() -> History:
    """One hanging transaction in partitions 0 and 2, and one open in partition 1 that is still to be decided."""
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings(3))
    history.append(HANGING, [(0, 4), (2, 1)], transactional=True)
    history.append(OTHER, [(1, 2)], transactional=True)
    return history


def end(history: History, position: int = POSITION, owed: tuple = (), known_through: int = POSITION + 5) -> list:
    logs = history.topic.segments
    hanging = HangingEpoch(HANGING.producer_id, HANGING.epoch, position, 9, 2)
    return decide_abort_marker(logs.fold, logs.table, TOPIC_ID, hanging, (owed, known_through))


def test_open_transactions_are_told_for_each_partition_with_data(history: History) -> None:
    found = open_in_topic(history.topic.segments.fold)

    assert [(one.partition, one.producer_id, one.producer_epoch, one.start_offset, one.since_ms) for one in found] == [
        (0, 7, 3, 0, 5),
        (2, 7, 3, 0, 5),
        (1, 8, 0, 0, 5),
    ]


def test_direct_marker_goes_to_every_partition_with_data_and_lets_the_stable_offset_go_on(history: History) -> None:
    history.commit(lambda table: end(history))

    logs, table = history.topic.segments.fold, history.topic.segments.table
    marker = logs.markers[7, 3]
    assert (marker.control, marker.position, marker.raises_to, marker.coordinator_epoch) == (
        Control.ABORT,
        POSITION,
        4,
        2,
    )
    assert marker.offsets == {0: 4, 2: 1}
    assert [next_offset(table.numbers, TOPIC_ID, p) for p in range(3)] == [5, 2, 2]
    assert [last_stable_offset(logs, table, TOPIC_ID, p) for p in range(3)] == [5, 0, 2]
    assert decided_through(table.numbers, TOPIC_ID) == POSITION + 5
    history.publish()
    assert published(history.topic) == {}


def test_direct_marker_takes_along_what_the_topic_is_owed_in_decision_order(history: History) -> None:
    owed = OwedMarker(8, 0, Control.COMMIT, POSITION - 1, 8, frozenset({1}))

    history.commit(lambda table: end(history, owed=(owed,)))

    logs = history.topic.segments.fold
    assert not logs.open
    assert (logs.markers[8, 0].control, logs.markers[7, 3].control) == (Control.COMMIT, Control.ABORT)


def test_direct_marker_is_not_written_below_markers_of_later_decisions(history: History) -> None:
    history.position = POSITION
    history.decide(OTHER, Control.COMMIT)

    assert end(history, POSITION) == []
    assert end(history, POSITION + 1) == []
    assert end(history, POSITION + 2, known_through=POSITION + 2) != []


def test_direct_marker_is_not_written_when_the_transaction_has_ended(history: History) -> None:
    history.position = 10
    history.decide(HANGING, Control.COMMIT)

    assert end(history) == []
