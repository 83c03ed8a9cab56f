"""A transaction log that has lost its newest entries: nothing is decided in their place, and everybody is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import Site
from tests.unit.lost_ends import (
    LOST_DECISIONS,
    SENT,
    entries_of,
    lose_decisions,
    send_in_transaction,
    shown,
    site_with_records,
)
from tests.unit.producer.producing import store_of
from tests.unit.reading import (
    TOPIC,
    commit,
    leave_open,
    plain,
    transactional,
)
from tests.unit.upkeep.coordinating import HOUR_MS, decide_only, run_once
from txntable.admin.restoration import Restoration
from txntable.admin.transaction_admin import open_now
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.partition.open_transactions import HangingEpoch
from txntable.segments.topic_metadata import TOPIC_PROPERTY
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse, open_on

# Behind three records with a marker each, and one without.
OPEN_AT = 7
LOST_SETTLED = "the transaction log has lost its newest entries, whose decisions the offset log has"


@pytest.fixture
def site() -> Site:
    return site_with_records()


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_committed_by_who_starts_where_decisions_are_lost(site: Site, count: int) -> None:
    lose_decisions(site, count)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        send_in_transaction(site.open())

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left
    assert shown(site) == SENT


def lost_below_a_decision(site: Site) -> None:
    """Lose many decisions, and decide anew in the place of one, without a look."""
    producer = transactional(site.open(), "busy")
    for number in range(10):
        commit(producer, f"more{number}")
    lose_decisions(site, 10)
    warehouse = site.open()
    with mock.patch.object(TopicLog, "require_decided"):
        decide_only(warehouse, leave_open(warehouse, "eve", transactional_id="open"))


@pytest.mark.parametrize("complete", [run_once, lambda site: site.open().complete()])
def test_nothing_is_completed_by_a_process_that_has_not_read_a_topic_where_decisions_are_lost(
    site: Site, complete: Callable[[Site], object]
) -> None:
    """Bug: the topic says how far it has come only once it was read."""
    lost_below_a_decision(site)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        complete(site)

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left


@pytest.mark.parametrize("count", [3, 4])
def test_job_does_not_hide_that_decisions_are_lost_however_often_it_starts(site: Site, count: int) -> None:
    """Bug: each start claimed the lease in the place of a lost entry, until as many were there as before."""
    site.open().complete()
    lose_decisions(site, count)
    left = entries_of(site, TRANSACTION_LOG_ROOT)

    for _ in range(count + 1):
        with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
            run_once(site)

    assert entries_of(site, TRANSACTION_LOG_ROOT) == left


def test_job_claims_its_lease_whatever_is_wrong_with_a_topic(site: Site) -> None:
    entry = entries_of(site, f"topics/{TOPIC}")[-1]
    site.objects.put(entry, b"{")

    report = run_once(site)

    assert report.failures


def commits_offsets(site: Site) -> None:
    producer = transactional(site.open(), "copier")
    with producer.transaction():
        producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 1}, "readers")
    producer.close()


@pytest.mark.parametrize(
    "begin",
    [
        lambda warehouse: transactional(warehouse, "copier"),
        lambda warehouse: transactional(warehouse, "new"),
        lambda warehouse: plain(warehouse, "eve"),
        lambda warehouse: warehouse.admin().fence_producers(["copier"]),
        lambda warehouse: warehouse.coordinator().run_once(),
        lambda warehouse: warehouse.admin().abort_transaction("open"),
        lambda warehouse: warehouse.admin().alter_warehouse({"offsets_retention_ms": 8 * 24 * HOUR_MS}),
    ],
)
@pytest.mark.parametrize("count", [2, 3])
def test_nothing_is_begun_where_the_offset_log_has_decisions_that_are_lost(
    site: Site, count: int, begin: Callable[[Warehouse], object]
) -> None:
    leave_open(site.open(), "open")
    commits_offsets(site)
    lose_decisions(site, count)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]

    for _ in range(2):
        with pytest.raises(DamagedDataError, match=LOST_SETTLED):
            begin(site.open())

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left


def test_offsets_that_were_settled_since_the_transaction_log_was_read_are_no_loss(site: Site) -> None:
    warehouse = site.open()
    commits_offsets(site)
    warehouse.offsets.refresh()

    commit(transactional(warehouse, "new"), "eve")

    assert shown(site) == [*SENT, "eve"]


def test_offset_log_of_before_a_restore_is_no_witness(site: Site) -> None:
    older, warehouse = site.objects.snapshot(), site.open()
    commits_offsets(site)
    warehouse.offsets.refresh()
    site.objects.restore(older)

    with pytest.raises(WarehouseReplacedError):
        transactional(warehouse, "new")


def test_nothing_is_completed_by_a_reader_where_decisions_are_lost(site: Site) -> None:
    """Bug: what the topic shows was taken for that of the decision that stands in the place of a lost one."""
    lost_below_a_decision(site)
    left, reader = entries_of(site), site.open()

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        reader.completer.bring_through(reader.topic_log(TOPIC), reader.topic_log(TOPIC).settings().topic_id)

    assert entries_of(site) == left


@pytest.mark.parametrize(
    "which", [{"transactional_id": "open"}, {"topic": TOPIC, "partition": 0, "start_offset": OPEN_AT}]
)
@pytest.mark.parametrize("count", [1, 10])
def test_open_transaction_is_not_aborted_where_decisions_are_lost(
    site: Site, count: int, which: dict[str, Any]
) -> None:
    """Bug: it was decided, and taken for complete by what the topic shows of another decision."""
    leave_open(site.open(), "eve")
    busy = transactional(site.open(), "busy")
    for number in range(10):
        commit(busy, f"more{number}")
    lose_decisions(site, count)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        site.open().admin().abort_transaction(**which)

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left


def test_offsets_are_not_taken_for_settled_where_decisions_are_lost(site: Site) -> None:
    for _ in range(10):
        commits_offsets(site)
    lose_decisions(site, 20)
    warehouse = site.open()
    with mock.patch("txntable.producer.coordinator_client.require_settled"):
        producer = transactional(warehouse, "copier")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 2}, "readers")
    store_of(warehouse).plan = (on(Operation.PUT_IF_ABSENT, "offset_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()

    with pytest.raises(DamagedDataError, match=LOST_SETTLED):
        site.open().complete()


def test_reader_does_not_end_what_timed_out_where_decisions_are_lost(site: Site) -> None:
    """Bug: the decision took the place of a lost one, of which the topic had the marker."""
    leave_open(site.open(), "eve")
    commit(transactional(site.open(), "fast"), "fay")
    lose_decisions(site, 1)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]
    site.advance_ms(HOUR_MS)

    site.open().topic_reader(TOPIC).catch_up()

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left


@pytest.mark.parametrize("count", [2, 3])
def test_nothing_is_fenced_where_the_offset_log_has_decisions_that_are_lost(site: Site, count: int) -> None:
    commits_offsets(site)
    lose_decisions(site, count)
    left = entries_of(site, TRANSACTION_LOG_ROOT)
    warehouse = open_on(site.store(), site.environment(), recovering=True)

    with pytest.raises(DamagedDataError, match=LOST_SETTLED):
        Restoration(warehouse.completer, warehouse.admin()).fence_all()

    assert entries_of(site, TRANSACTION_LOG_ROOT) == left


def test_job_works_where_a_topic_is_of_a_newer_format(site: Site) -> None:
    """Bug: a public table that was read to look for a lost end, and not understood, stopped the whole job."""
    warehouse = site.open()
    public = warehouse.topic_log(TOPIC).public
    metadata = public.refresh().metadata
    assert metadata is not None
    newer = replace(metadata, configuration={**metadata.configuration, f"{TOPIC_PROPERTY}newer": "1"})
    public.commit("ALTER", lambda table: [newer])

    assert run_once(site).coordinator_epoch


def test_hanging_transaction_is_not_aborted_where_decisions_are_lost(site: Site) -> None:
    leave_open(site.open(), "eve")
    lose_decisions(site, 5)
    warehouse, left = site.open(), entries_of(site)
    topic = warehouse.topic_log(TOPIC)
    topic.segments.refresh()
    (settings, (one,)), position = open_now(topic), warehouse.transactions.refresh()
    hanging = HangingEpoch(one.producer_id, one.producer_epoch, position, 0, 0)

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        warehouse.completer.abort_hanging(topic, settings.topic_id, hanging)

    assert entries_of(site) == left


@pytest.mark.parametrize("transactional_id", ["etl", "new"])
def test_nothing_is_committed_by_an_id_without_a_decision_where_all_are_lost(site: Site, transactional_id: str) -> None:
    lose_decisions(site, 3)
    left = entries_of(site)

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        leave_open(site.open(), "eve", transactional_id=transactional_id)

    assert entries_of(site) == left
