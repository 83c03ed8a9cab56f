"""What goes with removed and settled rows, and what is written so that nothing is lost with them (PROTOCOL.md §5.5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import RETENTION_MS, TOPIC_ID, History, topic_settings
from txntable.log.actions import Action, Add, Remove
from txntable.log.table_state import TableState
from txntable.partition.batch import ProducerEpoch, batch_of
from txntable.partition.markers import Control
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.removal import Removal, decide_removal, state_entries
from txntable.partition.state_entry import Cleaning, StateEntry, state_entry_of
from txntable.topics.topic_creation import decide_deletion
from txntable.topics.topic_log import TopicLog

ANN, BOB, CID = ProducerEpoch(7, 0), ProducerEpoch(8, 0), ProducerEpoch(9, 0)
NOW_MS = 77


@pytest.fixture
def history() -> History:
    """Partition 0: Ann's two segments, committed; Bob's, aborted; two of nobody.  Partition 1: Ann's third; Cid's."""
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(topic_settings())
    history.append(ANN, [(0, 2), (1, 1)], transactional=True)
    history.append(ANN, [(0, 3)], transactional=True)
    history.append(BOB, [(0, 4)], transactional=True)
    history.decide(ANN, Control.COMMIT)
    history.decide(BOB, Control.ABORT)
    history.append(None, [(0, 1)], transactional=False)
    history.append(CID, [(1, 5)], transactional=False)
    return history


def paths_of(history: History, producer: ProducerEpoch | None, partition: int | None = None) -> list[str]:
    mine = [path for path, (who, _) in history.segments.items() if who == producer]
    return [path for path in mine if partition in (None, history.records[path][0])]


def decided(history: History, removal: Removal) -> list[Action]:
    logs = history.topic.segments
    return decide_removal(logs.fold, logs.table, removal, NOW_MS)


def removed(actions: list[Action]) -> set[str]:
    return {action.path for action in actions if isinstance(action, Remove)}


def entries(actions: list[Action]) -> dict[int, StateEntry]:
    found = [
        state_entry_of(action.path, action.partition_values, action.tag)
        for action in actions
        if isinstance(action, Add) and action.partition_values["_control"] == Control.STATE.value
    ]
    return {entry.partition: entry for entry in found}


def settled(actions: list[Action]) -> list[Add]:
    return [action for action in actions if isinstance(action, Add) and action.partition_values["_control"] is None]


def marker_of(history: History, producer: ProducerEpoch) -> str:
    return history.topic.segments.fold.markers[producer.producer_id, producer.epoch].path


# -- markers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gone", "settles", "goes"),
    [
        ("", "", ""),
        ("bob", "", "bob"),
        ("ann0 ann1", "", ""),
        ("ann0 ann1 ann2", "", "ann"),
        ("ann0", "ann1", ""),
        ("ann0", "ann1 ann2", "ann"),
        ("", "ann0 ann1 ann2", "ann"),
        ("bob ann0", "ann1 ann2", "ann bob"),
        ("nobody cid", "", ""),
        ("a name that is not live", "", ""),
    ],
)
def test_marker_goes_with_the_last_row_in_the_topic_that_waits_for_it(
    history: History, gone: str, settles: str, goes: str
) -> None:
    ann = paths_of(history, ANN)
    names = {
        "ann0": ann[0],
        "ann1": ann[1],
        "ann2": ann[2],
        "bob": paths_of(history, BOB)[0],
        "cid": paths_of(history, CID)[0],
        "nobody": paths_of(history, None)[0],
    }
    markers = {"ann": marker_of(history, ANN), "bob": marker_of(history, BOB)}

    actions = decided(
        history, Removal({names.get(name, name) for name in gone.split()}, {names[name] for name in settles.split()})
    )

    assert removed(actions) & set(markers.values()) == {markers[name] for name in goes.split()}
    assert removed(actions) - set(markers.values()) == {names[name] for name in gone.split() if name in names}


@pytest.mark.parametrize("through_checkpoint", [False, True])
def test_rows_of_the_checkpoint_wait_for_markers_as_those_that_came_since(
    history: History, through_checkpoint: bool
) -> None:
    if through_checkpoint:
        history.topic.segments.table.files.absorb_tail()
    first, second, third = paths_of(history, ANN)

    assert marker_of(history, ANN) not in removed(decided(history, Removal({first, third})))
    assert marker_of(history, ANN) in removed(decided(history, Removal({first, second, third})))


def test_removal_says_of_each_row_what_it_was_so_that_no_name_is_tombstoned(history: History) -> None:
    actions = decided(history, Removal(paths_of(history, BOB)))

    removes = [action for action in actions if isinstance(action, Remove)]
    rows = [history.topic.segments.table.files.get(action.path) for action in removes]
    assert len(removes) == 2
    for remove, row in zip(removes, rows, strict=True):
        assert row is not None
        assert remove == Remove(row.path, NOW_MS, False, row.partition_values, row.size)


def test_no_commit_holds_two_file_actions_of_one_path(history: History) -> None:
    actions = decided(history, Removal(paths_of(history, BOB), paths_of(history, ANN), {0: (Cleaning(4, 5),)}))

    paths = [action.path for action in actions if isinstance(action, Add | Remove)]
    assert len(paths) == len(set(paths))


# -- state entries ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("producer", "partition", "touched"),
    [
        # Bob's marker is his partition's; it stands in partition 0 alone.
        (BOB, 0, {0}),
        (ANN, 0, {0}),
        (ANN, 1, {1}),
        # With Ann's last row her marker goes, which stands in both.
        (ANN, None, {0, 1}),
        (CID, 1, {1}),
        (None, 0, set()),
    ],
)
def test_state_entry_is_written_of_each_partition_that_loses_rows_of_producers_or_markers(
    history: History, producer: ProducerEpoch | None, partition: int | None, touched: set[int]
) -> None:
    paths = paths_of(history, producer, partition)

    assert set(entries(decided(history, Removal(paths)))) == touched
    if producer in (ANN, CID):
        assert set(entries(decided(history, Removal((), paths)))) == touched


def test_state_entry_is_complete_through_the_next_offset(history: History) -> None:
    logs = history.topic.segments
    entry = entries(decided(history, Removal(paths_of(history, BOB))))[0]

    assert entry.through == logs.table.numbers[f"next_offset/{TOPIC_ID}/0"] == 12
    assert entry.producers == {pid: e for (p, pid), e in logs.fold.producers.items() if p == 0}
    assert set(entry.producers) == {7, 8}


def test_cleanings_are_written_where_they_change_and_kept_where_they_do_not(history: History) -> None:
    history.commit(lambda table: decided(history, Removal((), (), {0: (Cleaning(4, 5),), 2: (Cleaning(1, 2),)})))

    actions = decided(history, Removal(paths_of(history, ANN), (), {1: (Cleaning(6, 7),)}))

    assert history.topic.segments.fold.cleanings == {0: (Cleaning(4, 5),), 2: (Cleaning(1, 2),)}
    assert {partition: entry.cleaned for partition, entry in entries(actions).items()} == {
        0: (Cleaning(4, 5),),
        1: (Cleaning(6, 7),),
    }


def test_state_entries_leave_out_who_is_forgotten_in_that_partition_only(history: History) -> None:
    logs = history.topic.segments

    found = state_entries(logs.fold, logs.table, {0, 1}, forgotten={(0, 7), (1, 9)})

    assert [(entry.partition, set(entry.producers)) for entry in found] == [(0, {8}), (1, {7})]


def test_nothing_is_written_when_nothing_goes(history: History) -> None:
    assert decided(history, Removal()) == []


def test_topic_that_is_not_there_has_no_state_entries(history: History) -> None:
    assert state_entries(PartitionLogs("t"), TableState(), {0}) == []
    assert decide_removal(PartitionLogs("t"), TableState(), Removal({"p00000/x.parquet"}), 5) == []


# -- settled rows -------------------------------------------------------------------------------


def test_settled_row_is_the_same_segment_with_its_decision_and_without_its_producer(history: History) -> None:
    (path,) = paths_of(history, ANN, 1)
    row = history.topic.segments.table.files.get(path)
    assert row is not None

    (again,) = settled(decided(history, Removal((), [path])))

    before = batch_of(row)
    assert batch_of(again) == replace(
        before, producer=None, transactional=False, first_sequence=None, partition_count=None, decided=(1, 1)
    )
    assert (again.path, again.size, again.stats, again.modification_time) == (
        row.path,
        row.size,
        row.stats,
        row.modification_time,
    )
    assert not again.data_change


def test_settled_row_of_a_producer_without_transactions_stands_at_no_decision(history: History) -> None:
    (again,) = settled(decided(history, Removal((), paths_of(history, CID))))

    assert batch_of(again).decided == (0, 0)


def test_state_is_the_same_for_everyone_after_a_topic_with_removals_was_deleted(history: History) -> None:
    logs = history.topic.segments
    history.commit(lambda table: decided(history, Removal(paths_of(history, BOB), paths_of(history, ANN))))

    history.commit(lambda table: decide_deletion(logs.fold, table, 9, RETENTION_MS))

    assert not list(logs.table.files)
