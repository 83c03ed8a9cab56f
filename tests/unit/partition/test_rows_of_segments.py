"""Rows of S: written and read back; damaged or newer ones are refused, live and from a checkpoint (PROTOCOL.md §5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.world import World, plant
from tests.unit.partition.history import DIGEST, RETENTION_MS, TOPIC_ID, History, refusal, topic_settings
from txntable.errors import DamagedDataError, InvalidRequestError, TxnTableError, UnsupportedFormatError
from txntable.log.actions import Action, Add, Remove
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import Batch, ProducerEpoch, batch_add, batch_of
from txntable.partition.markers import Control, Marker, marker_add, marker_of
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.producer_state import BatchMetadata, ProducerEntry
from txntable.partition.projection import commit_position, project
from txntable.partition.state_entry import StateEntry, state_add, state_entry_of
from txntable.topics.topic_creation import decide_deletion
from txntable.topics.topic_log import TopicLog

ANN = ProducerEpoch(7, 3)
BATCH = Batch("p00000/x.parquet", 0, 10, 14, 5, ANN, True, 20, 1, 2, 50, DIGEST, partition_count=3, uploaded_at_ms=4)
PLAIN = replace(BATCH, producer=None, transactional=False, first_sequence=None, partition_count=None)
MERGED = replace(PLAIN, uploaded_at_ms=None, decided=(3, 9))
MARKER = Marker("markers/m", 7, 3, Control.COMMIT, 9, 77, 2, {0: 30, 2: 5})
STATE = StateEntry(1, 40, {7: ProducerEntry(3, (BatchMetadata(0, 4, 10, 14, "ab"),), 50, 2, 14), 9: ProducerEntry(0)})


def add_of(row: Batch | Marker | StateEntry) -> Add:
    if isinstance(row, Batch):
        return batch_add(row, 100, "{}")
    return marker_add(TOPIC_ID, row, 6) if isinstance(row, Marker) else state_add(row, 6)


def with_tag(row: Batch | StateEntry, **changes: Any) -> Add:
    """The row with fields of its tag changed; ``None`` leaves one out."""
    add = add_of(row)
    tag = {**json.loads(add.tag or ""), **changes}
    return replace(add, tag=json.dumps({name: value for name, value in tag.items() if value is not None}))


def with_value(row: Batch | Marker | StateEntry, name: str, value: str | None) -> Add:
    add = add_of(row)
    return replace(add, partition_values={**add.partition_values, name: value})


def without(row: Batch | Marker | StateEntry, name: str) -> Add:
    add = add_of(row)
    return replace(add, partition_values={one: value for one, value in add.partition_values.items() if one != name})


def with_marker(**changes: Any) -> Add:
    stored = json.loads(add_of(MARKER).partition_values["_marker"] or "")
    return with_value(MARKER, "_marker", json.dumps({**stored, **changes}))


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    return history


# -- as written ---------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [BATCH, PLAIN, MERGED])
def test_batch_is_read_as_written(batch: Batch) -> None:
    assert batch_of(add_of(batch)) == batch


def test_marker_is_read_as_written() -> None:
    add = add_of(MARKER)

    assert marker_of(add.path, add.partition_values) == replace(MARKER, path=add.path)


def test_state_entry_is_read_as_written() -> None:
    add = add_of(STATE)

    assert state_entry_of(add.path, add.partition_values, add.tag) == STATE


# -- refused ------------------------------------------------------------------------------------

_DAMAGED = [
    replace(add_of(BATCH), tag=None),
    replace(add_of(BATCH), tag="{"),
    replace(add_of(BATCH), tag="[]"),
    with_tag(BATCH, v=None),
    with_tag(BATCH, records=None),
    with_tag(BATCH, decided=[3]),
    with_value(BATCH, "_base_offset", None),
    with_value(BATCH, "_producer_epoch", "x"),
    with_value(BATCH, "_control", "PERHAPS"),
    with_value(MARKER, "_marker", None),
    with_value(MARKER, "_marker", "7"),
    with_value(MARKER, "_producer_epoch", "3"),
    with_marker(offsets=[1]),
    with_marker(offsets={"x": 1}),
    with_tag(STATE, producers=[{"id": 7}]),
    with_tag(STATE, producers=[7]),
    with_tag(STATE, through=None),
    with_value(STATE, "_partition", None),
    *(with_value(row, "_commit", None) for row in (BATCH, PLAIN, MARKER, STATE)),
    *(without(row, "_marker") for row in (BATCH, PLAIN, STATE)),
    without(MARKER, "_partition"),
    without(PLAIN, "_control"),
]
_NEWER = [
    with_tag(BATCH, v=2),
    with_tag(BATCH, encrypted=True),
    with_marker(v=2),
    with_marker(reason="x"),
    with_tag(STATE, v=2),
    with_tag(STATE, groups=[]),
]
_REFUSED = [*((add, DamagedDataError) for add in _DAMAGED), *((add, UnsupportedFormatError) for add in _NEWER)]


def write(history: History, add: Add) -> None:
    history.commit(lambda table: [add])


@pytest.mark.parametrize(("add", "error"), _REFUSED)
def test_row_that_can_not_be_read_is_refused_by_who_follows_the_log(
    history: History, add: Add, error: type[TxnTableError]
) -> None:
    plant(history.topic.segments, add)

    with pytest.raises(error):
        history.topic.segments.refresh()


@pytest.mark.parametrize(("add", "error"), _REFUSED)
def test_row_that_can_not_be_read_is_not_written(history: History, add: Add, error: type[TxnTableError]) -> None:
    with pytest.raises(InvalidRequestError, match="nothing was written") as refused:
        write(history, add)

    assert isinstance(refused.value.__cause__, error)
    assert history.topic.segments.refresh().version == 0
    write(history, add_of(BATCH))


@pytest.mark.parametrize(("add", "error"), _REFUSED)
def test_row_that_can_not_be_read_is_refused_by_who_opens_a_checkpoint(
    history: History, add: Add, error: type[TxnTableError]
) -> None:
    table = table_with(history, add)

    with pytest.raises(error):
        PartitionLogs("t").restore(table)


def table_with(history: History, *adds: Add) -> TableState:
    """The state of S with rows in it that nobody has folded."""
    table = TableState()
    table.metadata = history.topic.segments.table.metadata
    for add in adds:
        table.files.put(add)
    return table


# -- rows that this version does not write, and removals ----------------------------------------


def test_batch_without_a_sequence_leaves_no_producer_state_live_or_restored(history: History) -> None:
    unnumbered = add_of(replace(BATCH, transactional=False, first_sequence=None))

    write(history, unnumbered)

    restored = PartitionLogs("t")
    restored.restore(table_with(history, unnumbered))
    assert history.topic.segments.fold.producers == restored.producers == {}


def test_merged_batch_stands_at_its_highest_decision_and_holds_nothing_back(history: History) -> None:
    write(history, add_of(MERGED))

    logs = history.topic.segments.fold
    assert (commit_position(logs, MERGED), logs.open) == (9, {})


def remove(history: History, path: str) -> None:
    def decide(table: TableState) -> list[Action]:
        add = table.files.get(path)
        assert add is not None
        return [Remove(path, 9, False, add.partition_values, add.size)]

    history.commit(decide)


@pytest.mark.parametrize("row", [MARKER, STATE, MERGED], ids=["marker", "state", "merged"])
def test_removal_of_a_row_is_the_same_live_and_from_a_checkpoint(
    history: History, row: Marker | StateEntry | Batch
) -> None:
    segments = history.topic.segments
    write(history, add_of(row))
    remove(history, add_of(row).path)

    assert (segments.fold.markers, segments.fold.open) == ({}, {})
    assert not segments.table.files.paths()


def test_removal_of_what_is_not_live_tombstones_its_name_and_changes_nothing_else(history: History) -> None:
    history.append(ANN, [(0, 2)], transactional=True)
    before = dict(history.topic.segments.fold.open)

    history.commit(lambda table: [Remove("p00000/gone.parquet", 9, False)])

    assert history.topic.segments.fold.open == before
    assert "p00000/gone.parquet" in history.topic.segments.table.tombstones


def test_removal_of_decided_data_leaves_another_open_transaction_alone(history: History) -> None:
    history.append(ANN, [(0, 2)], transactional=True)
    history.decide(ANN, Control.COMMIT)
    history.append(ProducerEpoch(8, 0), [(0, 1)], transactional=True)
    decided = next(a.path for a in history.topic.segments.table.files if a.partition_values["_producer_id"] == "7")

    remove(history, decided)

    assert list(history.topic.segments.fold.open) == [(8, 0)]


def test_projection_of_a_topic_that_is_not_there_writes_nothing() -> None:
    assert project(PartitionLogs("t"), TableState(), TableState(), 5) == []


def test_projection_removes_what_is_no_longer_visible_and_touches_nothing_else(history: History) -> None:
    history.append(None, [(0, 1), (1, 1)], transactional=False)
    history.publish()
    path = next(a.path for a in history.topic.segments.table.files if a.partition_values["_partition"] == "0")
    remove(history, path)
    published: Callable[[], set[str]] = history.topic.public.table.files.paths
    kept = published() - {f"_segments/{path}"}

    history.publish()

    assert published() == kept


@pytest.mark.parametrize("limit", ["_JOURNAL_PATHS", "_JOURNAL_COMMITS"])
def test_journal_forgets_the_oldest_commits_when_it_holds_too_much(
    history: History, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Then everything is compared, and the projection is the same."""
    monkeypatch.setattr(f"txntable.partition.partition_log.{limit}", 2)
    history.append(None, [(2, 1)], transactional=False)
    history.publish()
    for _ in range(3):
        history.append(None, [(0, 1), (1, 1)], transactional=False)
    assert history.topic.segments.fold.touched_since(1) is None

    history.publish()

    assert len(history.topic.public.table.files.paths()) == 7


def test_tombstoned_name_is_refused_to_an_append(history: History) -> None:
    segments, staged = history.topic.segments, history.staged(0, 1)
    history.commit(lambda table: [Remove(staged.path, 9, False)])
    request = AppendRequest(TOPIC_ID, None, False, (SequencedSegment(staged, None),))

    assert refusal(lambda: decide_append(segments.fold, segments.table, request, 5)) == "TRANSACTION_ABORTABLE"


def test_topic_that_was_deleted_takes_no_append_and_created_again_knows_nothing_of_the_old_one(
    history: History,
) -> None:
    segments = history.topic.segments
    history.append(None, [(0, 1)], transactional=False)
    history.append(ANN, [(0, 2), (1, 1)], transactional=True)
    history.decide(ProducerEpoch(8, 0), Control.COMMIT)

    history.commit(lambda table: decide_deletion(segments.fold, table, 9, RETENTION_MS))
    refused = refusal(lambda: history.append(None, [(0, 1)], transactional=False))
    history.create(topic_settings(topic_id="b" * 32))

    logs = segments.fold
    assert refused == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (logs.producers, logs.open, logs.markers) == ({}, {}, {})
    assert logs.settings is not None
    assert logs.settings.topic_id == "b" * 32
