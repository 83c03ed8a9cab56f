"""Partitions forget producers that are idle, and only these (PROTOCOL.md §5.5)."""

from __future__ import annotations

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, refusal, topic_settings
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.expiration import decide_expiry, idle_producers
from txntable.partition.markers import Control
from txntable.partition.partition_log import PartitionLogs
from txntable.topics.topic_creation import decide_deletion
from txntable.topics.topic_log import TopicLog

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ANN, BOB = ProducerEpoch(7, 0), ProducerEpoch(8, 0)


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    return history


def append(history: History, producer: ProducerEpoch, partition: int = 0, *, transactional: bool = False) -> None:
    history.append(producer, [(partition, 2)], transactional=transactional)


def known(history: History) -> set[tuple[int, int]]:
    return set(history.topic.segments.fold.producers)


def test_idle_producer_is_forgotten_and_a_busy_one_stays(history: History) -> None:
    append(history, ANN)
    append(history, ANN, partition=1)
    history.time_ms += DAY_MS
    append(history, BOB)

    assert history.expire(DAY_MS) == 2

    assert known(history) == {(0, 8)}


@pytest.mark.parametrize(("idle_ms", "expired"), [(DAY_MS - 1, 0), (DAY_MS, 1)])
def test_producer_is_idle_from_the_expiration_time_on(history: History, idle_ms: int, expired: int) -> None:
    append(history, ANN)
    history.time_ms += idle_ms

    assert history.expire(DAY_MS) == expired


def test_age_counts_from_the_append_and_never_from_the_records_timestamps(history: History) -> None:
    """The records of this history are of 1970."""
    history.time_ms += 10 * DAY_MS

    append(history, ANN)

    assert history.expire(DAY_MS) == 0


def test_producer_with_an_open_transaction_is_never_forgotten_where_its_data_is(history: History) -> None:
    append(history, BOB, partition=1)
    append(history, ANN, transactional=True)
    append(history, ANN, partition=1, transactional=True)
    history.time_ms += 100 * DAY_MS

    assert history.expire(DAY_MS) == 1

    assert known(history) == {(0, 7), (1, 7)}


def test_marker_keeps_a_producer_for_another_expiration_time(history: History) -> None:
    append(history, ANN, transactional=True)
    history.time_ms += DAY_MS
    history.decide(ANN, Control.ABORT)

    assert history.expire(DAY_MS) == 0
    history.time_ms += DAY_MS
    assert history.expire(DAY_MS) == 1


def test_expiry_is_one_commit_that_only_rewrites_state_entries(history: History) -> None:
    append(history, ANN)
    append(history, BOB, partition=2)
    logs = history.topic.segments
    before = logs.table.version
    numbers = dict(logs.table.numbers)
    history.time_ms += DAY_MS

    history.expire(DAY_MS)

    assert logs.table.version == (before or 0) + 1
    assert logs.table.numbers == numbers
    assert {add.path for add in logs.table.files if add.partition_values["_control"] == "STATE"} == {
        "state/p00000.parquet",
        "state/p00002.parquet",
    }


def test_nothing_is_written_when_nobody_is_idle(history: History) -> None:
    append(history, ANN)
    logs = history.topic.segments

    assert decide_expiry(logs.fold, logs.table, idle_producers(logs.fold, history.time_ms, DAY_MS), 5) == []


def test_no_topic_and_a_deleted_one_have_no_idle_producers(history: History) -> None:
    append(history, ANN)
    logs = history.topic.segments
    history.commit(lambda table: decide_deletion(logs.fold, table, 5, DAY_MS))

    assert idle_producers(logs.fold, history.time_ms + DAY_MS, DAY_MS) == set()
    assert idle_producers(PartitionLogs("t"), history.time_ms, DAY_MS) == set()
    assert decide_expiry(PartitionLogs("t"), logs.table, {(0, 7)}, 5) == []


def test_forgotten_idempotent_producer_goes_on_at_any_sequence(history: History) -> None:
    """Behaviour 115 of Kafka: the partition that forgot a producer takes it as it comes."""
    append(history, ANN)
    history.time_ms += DAY_MS
    history.expire(DAY_MS)

    append(history, ANN)

    assert history.topic.segments.fold.producers[0, 7].batches[0].first_sequence == 2


def test_forgotten_transactional_producer_starts_at_zero(history: History) -> None:
    append(history, ANN, transactional=True)
    history.decide(ANN, Control.COMMIT)
    history.time_ms += DAY_MS
    history.expire(DAY_MS)
    later = ProducerEpoch(7, 1)
    history.sequences[7, 1, 0] = 5

    refused = refusal(lambda: append(history, later, transactional=True))
    history.sequences[7, 1, 0] = 0
    append(history, later, transactional=True)

    assert refused == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert known(history) == {(0, 7)}


def test_forgotten_batch_sent_again_is_answered_by_its_path(history: History) -> None:
    """The answer of an append may be lost for longer than its producer is remembered."""
    append(history, BOB)
    logs = history.topic.segments
    request = AppendRequest(TOPIC_ID, ANN, False, (SequencedSegment(history.staged(0, 3), 0),))
    history.commit(lambda table: decide_append(logs.fold, table, request, history.time_ms).actions)
    history.time_ms += DAY_MS
    assert history.expire(DAY_MS) == 2

    again = decide_append(logs.fold, logs.table, request, history.time_ms)

    assert (again.actions, again.base_offsets) == ((), (2,))


def test_topic_log_writes_the_state_entrys_file_before_the_commit_and_projects_after_it() -> None:
    world = World()
    process = world.process()
    history = History(TopicLog(process.context, "t"))
    history.create(topic_settings())
    history.time_ms = process.context.clock.now_ms()
    append(history, ANN)
    world.advance_ms(DAY_MS)
    process.store.steps.clear()

    assert history.topic.expire_producers(DAY_MS) == 1

    writes = [step.path for step in process.store.steps if step.operation.value.startswith("put")]
    assert [path.split("t/", 1)[1] for path in writes if "system" not in path] == [
        "_segments/state/p00000.parquet",
        "_segments/_delta_log/00000000000000000002.json",
        "_delta_log/00000000000000000000.json",
    ]


def test_topic_log_asks_once_and_writes_nothing_when_nobody_is_idle() -> None:
    process = World().process()
    history = History(TopicLog(process.context, "t"))
    history.create(topic_settings())
    process.context.clock.now_ms()
    process.store.steps.clear()

    assert history.topic.expire_producers(DAY_MS) == 0

    assert [step.operation.value for step in process.store.steps] == ["get"]
