"""What an admin is told of transactions: Kafka's filters, descriptions and errors (behaviours 32, 33 and 121)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import decide_only, lose_id, opened, replace_row, row_of
from tests.unit.producer.producing import row, started, store_of
from txntable.admin.admin import Admin
from txntable.admin.transaction_listing import ProducerState
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.errors import (
    InvalidRegularExpressionError,
    InvalidRequestError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.format.records import TopicPartition

MINUTE_MS = 60_000
U = TopicPartition("u", 0)


@pytest.fixture
def zoo(site: Site) -> Admin:
    """An id in every state that can be met, made in the order of time."""
    warehouse = site.open()
    started(warehouse, "a.empty")
    opened(warehouse, "b.ongoing")
    site.advance_ms(10_000)
    opened(warehouse, "b.ongoing-late")
    prepared = row_of(warehouse, "b.ongoing").prepare_token("secret", "run", warehouse.transactions.refresh() + 1)
    replace_row(warehouse, replace(prepared, transactional_id="c.prepared", producer_id=90))
    for transactional_id in ("d.committed", "d.aborted"):
        producer = opened(warehouse, transactional_id)
        producer.commit_transaction() if transactional_id == "d.committed" else producer.abort_transaction()
    decide_only(warehouse, opened(warehouse, "e.decided"))
    return site.open().admin()


# -- list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, "a.empty b.ongoing b.ongoing-late c.prepared d.aborted d.committed e.decided"),
        ({"states": []}, "a.empty b.ongoing b.ongoing-late c.prepared d.aborted d.committed e.decided"),
        ({"states": ["ONGOING"]}, "b.ongoing b.ongoing-late"),
        ({"states": ["Ongoing", "CompleteCommit"]}, "b.ongoing b.ongoing-late d.committed"),
        ({"states": {S.PREPARED, S.PREPARE_COMMIT}}, "c.prepared e.decided"),
        ({"states": ["PREPARE_ABORT"]}, ""),
        ({"producer_ids": [90]}, "c.prepared"),
        ({"producer_ids": [0, 90]}, "a.empty c.prepared"),
        ({"producer_ids": [12_345]}, ""),
        ({"duration_ms": 0}, "b.ongoing b.ongoing-late c.prepared e.decided"),
        ({"duration_ms": 9_000}, "b.ongoing c.prepared"),
        ({"duration_ms": 10**12}, ""),
        ({"pattern": "d.*"}, "d.aborted d.committed"),
        ({"pattern": "d"}, ""),
        ({"pattern": "d.abort"}, ""),
        ({"pattern": ""}, "a.empty b.ongoing b.ongoing-late c.prepared d.aborted d.committed e.decided"),
        ({"pattern": ".*ongoing", "states": ["ONGOING"], "duration_ms": 9_000, "producer_ids": [1]}, "b.ongoing"),
    ],
)
def test_list_transactions_holds_every_filter_that_is_given(
    site: Site, zoo: Admin, filters: dict[str, Any], ids: str
) -> None:
    site.advance_ms(1)

    assert [found.transactional_id for found in zoo.list_transactions(**filters)] == ids.split()


def test_list_transactions_counts_a_start_that_was_cleaned_away_as_longer_than_anything(site: Site, zoo: Admin) -> None:
    warehouse = site.open()
    position = row_of(warehouse, "b.ongoing-late").started_position
    assert position is not None
    site.objects.delete(commit_path(TRANSACTION_LOG_ROOT, position))

    found = zoo.list_transactions(duration_ms=10**12)

    assert [one.transactional_id for one in found] == ["b.ongoing-late"]


@pytest.mark.parametrize(
    ("filters", "error", "names"),
    [
        ({"states": ["OPEN"]}, InvalidRequestError, "state='OPEN' known=EMPTY,ONGOING,PREPARED"),
        ({"states": ["DEAD"]}, InvalidRequestError, "DEAD"),
        ({"states": [3]}, InvalidRequestError, "state=3"),
        ({"states": "ONGOING"}, InvalidRequestError, "states must be a list"),
        ({"producer_ids": 7}, InvalidRequestError, "producer_ids must be a list"),
        ({"producer_ids": [-1]}, InvalidRequestError, "-1"),
        ({"producer_ids": ["7"]}, InvalidRequestError, "'7'"),
        ({"producer_ids": [True]}, InvalidRequestError, "True"),
        ({"duration_ms": -1}, InvalidRequestError, "duration_ms"),
        ({"duration_ms": 1.5}, InvalidRequestError, "duration_ms"),
        ({"pattern": "a("}, InvalidRegularExpressionError, r"pattern='a\('"),
        ({"pattern": b"a"}, InvalidRequestError, "pattern"),
    ],
)
def test_list_transactions_refuses_a_filter_that_is_none(
    site: Site, filters: dict[str, Any], error: type[Exception], names: str
) -> None:
    with pytest.raises(error, match=names):
        site.open().admin().list_transactions(**filters)


# -- describe -----------------------------------------------------------------------------------


def test_describe_transactions_tells_an_open_transaction_whole(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse).transaction(batch_id="first") as txn:
        txn.send("u", row=row("a"))
    before_ms = warehouse.context.clock.now_ms()
    producer = opened(warehouse, topic="t", transaction_timeout_ms=50_000)
    site.advance_ms(7_000)

    found = site.open().admin().describe_transactions(["etl"])["etl"]

    assert (found.state, found.timeout_ms, found.token) == (S.ONGOING, 50_000, None)
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert [where.topic for where in found.topic_partitions] == ["t"]
    assert found.start_time_ms is not None
    assert found.duration_ms is not None
    assert found.start_time_ms >= before_ms
    assert 7_000 <= found.duration_ms < 8_000
    assert found.decision is not None
    assert (found.decision.batch_id, found.decision.epoch) == ("first", 0)
    assert found.coordinator_epoch == 0


def test_describe_transactions_shows_a_prepared_one_with_its_token(zoo: Admin) -> None:
    found = zoo.describe_transactions(["c.prepared", "a.empty"])

    assert (found["c.prepared"].state, found["c.prepared"].token) == (S.PREPARED, "secret")
    assert found["a.empty"].started_position is None
    assert (found["a.empty"].start_time_ms, found["a.empty"].duration_ms) == (None, None)


def test_describe_transactions_knows_no_duration_when_the_start_was_cleaned_away(site: Site, zoo: Admin) -> None:
    started_position = row_of(site.open(), "b.ongoing").started_position
    assert started_position is not None
    site.objects.delete(commit_path(TRANSACTION_LOG_ROOT, started_position))

    found = zoo.describe_transactions(["b.ongoing"])["b.ongoing"]

    assert (found.start_time_ms, found.duration_ms, found.started_position) == (None, None, started_position)


def test_describe_transactions_says_not_found_of_an_unknown_id(zoo: Admin) -> None:
    with pytest.raises(TransactionalIdNotFoundError, match="transactional_id=nobody"):
        zoo.describe_transactions(["a.empty", "nobody"])


@pytest.mark.parametrize("ids", [[""], [3], "a.empty", None])
def test_describe_transactions_refuses_an_empty_id_and_what_is_no_list(zoo: Admin, ids: Any) -> None:
    with pytest.raises(InvalidRequestError):
        zoo.describe_transactions(ids)


def test_describe_transactions_shows_the_epoch_of_the_coordinator(site: Site, zoo: Admin) -> None:
    site.open().transactions.claim_lease("0" * 32)

    assert zoo.describe_transactions(["a.empty"])["a.empty"].coordinator_epoch == 1


# -- producers ----------------------------------------------------------------------------------


def test_describe_producers_tells_sequence_epoch_and_where_the_open_transaction_starts(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse).transaction() as txn:
        txn.send("u", row=row("a"))
    committed = row_of(warehouse)
    late = started(warehouse, "late")
    late.begin_transaction()
    for _ in range(2):
        late.send("u", row=row("b"))
        late.flush()

    states = site.open().admin().describe_producers([U])[U]

    marker_only, running = states
    assert isinstance(marker_only, ProducerState)
    assert (marker_only.producer_id, marker_only.producer_epoch) == (committed.producer_id, committed.producer_epoch)
    assert (marker_only.last_sequence, marker_only.coordinator_epoch) == (None, 0)
    assert marker_only.current_transaction_start_offset is None
    assert (running.producer_id, running.producer_epoch) == (late.producer_id, late.producer_epoch)
    assert (running.last_sequence, running.coordinator_epoch) == (1, None)
    assert running.current_transaction_start_offset == 2
    assert running.last_timestamp_ms > 0


def test_describe_producers_tells_an_idempotent_producer_and_nothing_of_other_partitions(site: Site) -> None:
    with site.open().producer() as producer:
        producer.send("t", row=row("a"), partition=1)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)

    found = site.open().admin().describe_producers([first, second])

    assert found[first] == []
    assert [one.producer_id for one in found[second]] == [producer.producer_id]


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        ([TopicPartition("nowhere", 0)], UnknownTopicOrPartitionError),
        ([TopicPartition("u", 1)], UnknownTopicOrPartitionError),
        ([TopicPartition("u", -1)], InvalidRequestError),
        ([TopicPartition("u", "0")], InvalidRequestError),  # type: ignore[arg-type]
        (["u-0"], InvalidRequestError),
        ("u", InvalidRequestError),
    ],
)
def test_describe_producers_refuses_what_is_no_partition(site: Site, partitions: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        site.open().admin().describe_producers(partitions)


# -- hanging transactions -----------------------------------------------------------------------


def test_find_hanging_finds_an_open_transaction_whose_id_is_gone(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse, "first").transaction() as txn:
        txn.send("u", row=row("a"))
    producer = opened(warehouse)
    lose_id(warehouse)
    site.advance_ms(20 * MINUTE_MS)

    (found,) = site.open().admin().find_hanging_transactions()

    assert found.topic_partition == U
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert (found.start_offset, found.coordinator_epoch, found.transactional_id) == (2, None, None)
    assert found.duration_ms >= 20 * MINUTE_MS
    assert found.status is OpenEpochStatus.PAST


@pytest.mark.parametrize(
    ("age_ms", "limit_ms", "found"),
    [
        (15 * MINUTE_MS - 1_000, None, 0),
        (15 * MINUTE_MS + 1_000, None, 1),
        (5_000, 10_000, 0),
        (11_000, 10_000, 1),
        (1, 0, 1),
    ],
)
def test_find_hanging_looks_only_at_what_is_open_for_longer_than_the_limit(
    site: Site, age_ms: int, limit_ms: int | None, found: int
) -> None:
    warehouse = site.open()
    opened(warehouse)
    lose_id(warehouse)
    site.advance_ms(age_ms)

    hanging = site.open().admin().find_hanging_transactions(max_transaction_timeout_ms=limit_ms)

    assert len(hanging) == found


@pytest.mark.parametrize("decided", [False, True])
def test_find_hanging_leaves_out_what_is_open_or_waits_for_completion(site: Site, decided: bool) -> None:
    warehouse = site.open()
    producer = opened(warehouse)
    if decided:
        decide_only(warehouse, producer)
    site.advance_ms(60 * MINUTE_MS)

    assert site.open().admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []


@pytest.mark.parametrize(
    ("topic", "partition", "found"),
    [(None, None, "t u"), ("t", None, "t"), ("t", 0, ""), ("t", 1, "t"), ("u", 0, "u"), ("raw", None, "")],
)
def test_find_hanging_looks_where_it_is_told(site: Site, topic: str | None, partition: int | None, found: str) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("a"))
    producer.send("t", row=row("a"), partition=1)
    producer.flush()
    lose_id(warehouse)
    site.advance_ms(1_000)

    hanging = site.open().admin().find_hanging_transactions(topic, partition, 0)

    assert [one.topic_partition.topic for one in hanging] == found.split()


def test_find_hanging_finds_a_topic_that_the_open_transaction_has_not_enrolled(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse)
    seen = row_of(warehouse)
    elsewhere = {"f" * 32: EnrolledTopic("gone", frozenset({0}))}
    replace_row(warehouse, replace(seen, topics=elsewhere, position=seen.position + 1))
    site.advance_ms(1_000)

    (found,) = site.open().admin().find_hanging_transactions("u", max_transaction_timeout_ms=0)

    assert (found.status, found.transactional_id) == (OpenEpochStatus.UNENROLLED, "etl")


def test_find_hanging_does_not_take_a_transaction_that_ends_meanwhile_for_a_hanging_one(site: Site) -> None:
    """S is read, then the transaction commits whole, then T is read: T is past it, and S was not read again yet."""
    warehouse, looking = site.open(), site.open()
    producer = opened(warehouse, transaction_timeout_ms=15 * MINUTE_MS)
    site.advance_ms(2_000)
    admin = looking.admin()
    read: list[str] = []

    def commit_between(step: Any) -> None:
        if "u/_segments" in step.path:
            read.append(step.path)
        elif "transaction_log" in step.path and read and producer.state == "IN_TRANSACTION":
            producer.commit_transaction()

    store_of(looking).on_step = commit_between

    assert admin.find_hanging_transactions(max_transaction_timeout_ms=0) == []
    assert producer.state == "READY", "the race was not played"


def test_find_hanging_passes_over_topics_that_were_deleted(site: Site) -> None:
    admin = site.open().admin()
    admin.delete_topic("u")

    assert admin.find_hanging_transactions(max_transaction_timeout_ms=0) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"partition": 0}, InvalidRequestError),
        ({"topic": "u", "partition": 1}, UnknownTopicOrPartitionError),
        ({"topic": "nowhere"}, UnknownTopicOrPartitionError),
        ({"max_transaction_timeout_ms": -1}, InvalidRequestError),
        ({"max_transaction_timeout_ms": "15"}, InvalidRequestError),
    ],
)
def test_find_hanging_refuses_what_it_can_not_search(
    site: Site, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        site.open().admin().find_hanging_transactions(**arguments)
