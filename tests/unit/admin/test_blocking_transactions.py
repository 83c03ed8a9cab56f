"""What an admin is told of transactions that hold back a last stable offset (PROTOCOL.md §5.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doubles.fault_plan import Operation
from tests.simulation.site import Site
from tests.unit.admin.administering import decide_only, lose_id, opened, row_of
from tests.unit.admin.group_members import joined
from tests.unit.consumer.consuming import read_only
from tests.unit.producer.producing import row, started, store_of
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.errors import InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.offsets.offset_log import OffsetLog

U = TopicPartition("u", 0)


def test_find_blocking_finds_what_is_open_with_its_age_since_the_first_enrolment(site: Site) -> None:
    opened(site.open(), transaction_timeout_ms=60_000)
    site.advance_ms(7_000)

    (found,) = site.open().admin().find_blocking_transactions()

    assert (found.transactional_id, found.state, found.status) == ("etl", S.ONGOING, OpenEpochStatus.OPEN)
    assert found.duration_ms >= 7_000
    assert (found.timeout_ms, found.has_timed_out) == (60_000, False)
    assert [(each.topic_partition, each.start_offset) for each in found.partitions] == [(U, 0)]


def test_find_blocking_finds_nothing_once_the_transaction_has_ended(site: Site) -> None:
    producer = opened(site.open())
    producer.commit_transaction()

    assert site.open().admin().find_blocking_transactions() == []


def test_find_blocking_finds_nothing_of_a_transaction_that_has_no_data_yet(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("kept in memory"))

    assert site.open().admin().find_blocking_transactions() == []


def test_find_blocking_says_that_a_decided_transaction_waits_for_completion_only(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))

    (found,) = site.open().admin().find_blocking_transactions()

    assert (found.status, found.state, found.timeout_ms) == (OpenEpochStatus.DECIDED, S.PREPARE_COMMIT, None)


def test_find_blocking_lists_the_oldest_first_and_all_partitions_of_each(site: Site) -> None:
    warehouse = site.open()
    first = started(warehouse, "first")
    first.begin_transaction()
    first.send("u", row=row("a"))
    first.send("t", row=row("a"), partition=1)
    first.flush()
    site.advance_ms(1_000)
    opened(warehouse, "second")

    found = site.open().admin().find_blocking_transactions()

    assert [one.transactional_id for one in found] == ["first", "second"]
    assert [each.topic_partition for each in found[0].partitions] == [TopicPartition("t", 1), U]


def test_find_blocking_counts_committed_records_behind_the_first_offset_only(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse, "before").transaction() as txn:
        txn.send("u", row=row("before"))
    opened(warehouse)
    with started(warehouse, "behind").transaction() as txn:
        txn.send("u", row=row("b"))
        txn.send("u", row=row("c"))
    aborted = opened(warehouse, "aborted")
    aborted.abort_transaction()

    (found,) = site.open().admin().find_blocking_transactions()

    assert found.committed_records == 2


def test_find_blocking_does_not_take_a_transaction_that_ends_meanwhile_for_a_hanging_one(site: Site) -> None:
    """S is read, then the transaction commits whole, then T is read: T is past it, and S was not read again yet."""
    warehouse, looking = site.open(), site.open()
    producer = opened(warehouse)
    admin = looking.admin()
    read: list[str] = []

    def commit_between(step: Any) -> None:
        if "u/_segments" in step.path:
            read.append(step.path)
        elif "transaction_log" in step.path and read and producer.state == "IN_TRANSACTION":
            producer.commit_transaction()

    store_of(looking).on_step = commit_between

    assert admin.find_blocking_transactions() == []
    assert producer.state == "READY", "the race was not played"


def test_find_blocking_names_no_timeout_of_a_hanging_transaction(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse)
    position = row_of(warehouse).position
    lose_id(warehouse)

    (found,) = site.open().admin().find_blocking_transactions(["u"])

    assert position > 0
    assert (found.status, found.state, found.timeout_ms) == (OpenEpochStatus.PAST, None, None)
    assert not found.has_timed_out


def test_blocking_and_described_transactions_are_shown_to_who_may_not_write(site: Site) -> None:
    opened(site.open())
    looking, counted = read_only(site)
    admin = looking.admin()

    (found,) = admin.find_blocking_transactions()

    assert found.transactional_id == "etl"
    assert admin.describe_transactions(["etl"])["etl"].duration_ms is not None
    assert not [step for step in counted.steps if "_delta_log" in step.path and step.operation is Operation.PUT]


def test_find_blocking_passes_over_topics_that_were_deleted(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse)
    warehouse.admin().delete_topic("u")

    assert site.open().admin().find_blocking_transactions() == []


@pytest.mark.parametrize(
    ("topics", "error"),
    [("u", InvalidRequestError), (["nowhere"], UnknownTopicOrPartitionError), (7, InvalidRequestError)],
)
def test_find_blocking_refuses_what_is_no_list_of_topics(site: Site, topics: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        site.open().admin().find_blocking_transactions(topics)


@pytest.mark.parametrize("readable", [False, True], ids=["nothing to read", "records before it"])
def test_find_blocking_names_a_group_that_never_committed_where_it_has_read_nothing_for_want_of_anything(
    site: Site, readable: bool
) -> None:
    warehouse = site.open()
    if readable:
        with started(warehouse, "before").transaction() as txn:
            txn.send("u", row=row("before"))
    opened(warehouse)
    joined(warehouse, topic="u")

    (found,) = site.open().admin().find_blocking_transactions()

    assert found.groups == (() if readable else ("g",))


def test_find_blocking_names_no_group_for_its_offset_in_another_topic(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse, "before").transaction() as txn:
        txn.send("u", row=row("before"))
        txn.send("t", row=row("a"), partition=0)
        txn.send("t", row=row("b"), partition=0)
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("t", 0): 2})
    opened(warehouse)

    (found,) = site.open().admin().find_blocking_transactions(["u"])

    assert found.groups == ()


def offsets_sent(warehouse: Any, transactional_id: str = "copies", group: str = "g") -> Any:
    producer = started(warehouse, transactional_id)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({U: 0}, group)
    return producer


def test_find_blocking_finds_the_group_whose_offsets_alone_are_in_a_transaction(site: Site) -> None:
    warehouse = site.open()
    producer = offsets_sent(warehouse)

    (found,) = site.open().admin().find_blocking_transactions()

    assert (found.transactional_id, found.state, found.status) == ("copies", S.ONGOING, OpenEpochStatus.OPEN)
    assert (found.partitions, found.groups) == ((), ("g",))
    assert [(each.group, each.partitions) for each in found.pending] == [("g", (U,))]
    producer.commit_transaction()
    assert site.open().admin().find_blocking_transactions() == []


def test_find_blocking_tells_pending_offsets_of_a_transaction_with_data_once(site: Site) -> None:
    producer = opened(site.open())
    producer.send_offsets_to_transaction({U: 0}, "g")

    (found,) = site.open().admin().find_blocking_transactions()

    assert [each.topic_partition for each in found.partitions] == [U]
    assert found.groups == ("g",)


def test_find_blocking_asked_for_other_topics_tells_no_pending_offsets(site: Site) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("other")
    offsets_sent(warehouse)

    assert site.open().admin().find_blocking_transactions(["other"]) == []


def test_find_blocking_again_finds_pending_offsets_that_are_new_to_this_process(site: Site) -> None:
    admin = site.open().admin()
    assert admin.find_blocking_transactions() == []
    offsets_sent(site.open())

    assert [each.transactional_id for each in admin.find_blocking_transactions()] == ["copies"]


def test_find_blocking_takes_no_next_transaction_of_an_id_for_the_one_that_had_the_offsets(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = offsets_sent(site.open())
    real = OffsetLog.pending

    def pending(log: OffsetLog) -> Any:
        read = real(log)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("u", row=row("next"))
        producer.flush()
        return read

    monkeypatch.setattr(OffsetLog, "pending", pending)

    assert site.open().admin().find_blocking_transactions() == []
