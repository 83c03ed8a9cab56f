"""Partition logs that have lost their newest entries: what topics show stays, and everybody is told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.simulation.site import Site
from tests.unit.lost_ends import (
    LOST,
    LOST_DECISIONS,
    LOST_TEXT,
    SENT,
    entries_of,
    lose,
    lose_decisions,
    send_in_transaction,
    send_plain,
    shown,
    site_with_records,
)
from tests.unit.reading import (
    TOPIC,
    accounts_in,
    leave_open,
    plain,
    read_only,
)
from tests.unit.upkeep.coordinating import HOUR_MS, decide_only, run_once
from txntable.admin.admin import Admin
from txntable.admin.restoration import Restoration
from txntable.admin.upkeep import Duty
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.records import TopicPartition
from txntable.log.actions import Action, Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.offsets import DECIDED_THROUGH, NEXT_OFFSET
from txntable.warehouse.warehouse import Warehouse, open_on


@pytest.fixture
def site() -> Site:
    return site_with_records()


@pytest.mark.parametrize("call", [send_plain, send_in_transaction, lambda warehouse: leave_open(warehouse, "eve")])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_appended_in_place_of_what_is_lost(
    site: Site, count: int, call: Callable[[Warehouse], object]
) -> None:
    lose(site, count)
    left = entries_of(site)

    with pytest.raises(DamagedDataError, match=LOST):
        call(site.open())

    assert entries_of(site) == left
    assert shown(site) == SENT


@pytest.mark.parametrize(
    "before",
    [
        send_plain,
        lambda warehouse: warehouse.read_arrow(TOPIC),
        lambda warehouse: warehouse.admin().describe_topics(),
        lambda warehouse: warehouse.topic_log(TOPIC).settings(),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_appended_by_a_process_that_has_read_the_topic_or_was_refused_before(
    site: Site, count: int, before: Callable[[Warehouse], object]
) -> None:
    """Bug: who had read the partition logs for something else did not look, and a refusal counted as a look."""
    lose(site, count)
    left, warehouse = entries_of(site), site.open()
    with suppress(DamagedDataError):
        before(warehouse)

    for _ in range(2):
        with pytest.raises(DamagedDataError, match=LOST):
            send_plain(warehouse)

    assert entries_of(site) == left


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_was_decided_is_not_completed_in_place_of_what_is_lost(site: Site, count: int) -> None:
    """Bug: its marker took the lost slot, the public table did not show it, and the decision counted as complete."""
    warehouse = site.open()
    decide_only(warehouse, leave_open(warehouse, "eve", transactional_id="open"))
    plain(site.open(), "fay", "gus", "hal")
    lost, left = lose(site, count), entries_of(site)

    assert run_once(site).failures

    assert entries_of(site) == left
    for path, found in lost.items():
        site.objects.put(path, found.data)
    assert run_once(site).failures == 0
    assert sorted(shown(site)) == [*SENT, "eve", "fay", "gus", "hal"]


@pytest.mark.parametrize(
    "change",
    [
        lambda admin: admin.alter_configs(TOPIC, {"retention.ms": "86400000"}),
        lambda admin: admin.create_partitions({TOPIC: 2}),
        lambda admin: admin.delete_topic(TOPIC),
        lambda admin: admin.delete_records({TopicPartition(TOPIC, 0): 1}),
    ],
)
def test_nothing_is_changed_in_place_of_what_is_lost(site: Site, change: Callable[[Admin], object]) -> None:
    lose(site, 1)
    left = entries_of(site)

    with pytest.raises(DamagedDataError, match=LOST):
        change(site.open().admin())

    assert entries_of(site) == left


def test_idle_producers_are_not_forgotten_in_place_of_what_is_lost(site: Site) -> None:
    lose(site, 1)
    left = entries_of(site)
    site.advance_ms(2 * HOUR_MS)

    with pytest.raises(DamagedDataError, match=LOST):
        site.open().topic_log(TOPIC).expire_producers(HOUR_MS)

    assert entries_of(site) == left


def test_public_table_of_before_a_restore_is_no_witness(site: Site) -> None:
    older = site.objects.snapshot()
    plain(site.open(), "eve")
    topic = site.open().topic_log(TOPIC)
    topic.public.refresh()
    site.objects.restore(older)

    with pytest.raises(WarehouseReplacedError):
        topic.prove_whole()


@pytest.mark.parametrize(
    ("loss", "told"), [(lambda site: lose(site, 1), LOST), (lambda site: lose_decisions(site, 2), LOST_DECISIONS)]
)
def test_nothing_is_fenced_where_the_end_of_a_log_is_lost(
    site: Site, loss: Callable[[Site], object], told: str
) -> None:
    """Bug: the fences of the other logs, and of this one, were there when it was refused."""
    loss(site)
    before = site.objects.snapshot().keys()
    warehouse = open_on(site.store(), site.environment(), recovering=True)

    with pytest.raises(DamagedDataError, match=told):
        Restoration(warehouse.completer, warehouse.admin()).fence_all()

    assert not [path for path in site.objects.snapshot().keys() - before if "/_delta_log/" in path]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_jobs_tell_of_it_and_leave_the_public_table_as_it_is(
    site: Site, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    lose(site, count)
    site.advance_ms(2 * HOUR_MS)

    report = run_once(site)
    compacted = compact(site.open())

    assert report.failures
    assert [LOST_TEXT in str(one.failures) for one in compacted] == [True]
    assert LOST_TEXT in caplog.text
    assert shown(site) == SENT


@pytest.mark.parametrize("opened", [Site.open, read_only])
def test_committed_records_are_read_on(site: Site, opened: Callable[[Site], Warehouse]) -> None:
    lose(site, 2)

    assert accounts_in(opened(site).read_arrow(TOPIC)) == SENT


@pytest.mark.parametrize("count", [1, 2, 3])
def test_everything_goes_on_when_the_entries_are_restored(site: Site, count: int) -> None:
    lost = lose(site, count)
    with pytest.raises(DamagedDataError, match=LOST):
        send_plain(site.open())

    for path, found in lost.items():
        site.objects.put(path, found.data)
    send_in_transaction(site.open())

    assert run_once(site).failures == 0
    assert shown(site) == [*SENT, "eve"]


@pytest.mark.parametrize("number", [NEXT_OFFSET, DECIDED_THROUGH])
def test_public_table_keeps_what_it_shows_when_others_took_the_place_of_what_is_lost(site: Site, number: str) -> None:
    topic = site.open().topic_log(TOPIC)
    name = next(one for one in topic.segments.refresh().numbers if one.startswith(number))
    gone = next(iter(topic.segments.table.files))

    def decide(table: TableState) -> list[Action]:
        return [Txn(name, table.number(name) - 1), Remove(gone.path, 0, True, gone.partition_values, gone.size)]

    topic.segments.commit("TEST", decide)

    with pytest.raises(DamagedDataError, match=LOST):
        site.open().topic_log(TOPIC).catch_up()
    assert shown(site) == SENT


def test_view_that_is_older_than_the_public_table_is_no_damage(site: Site) -> None:
    reader = site.open()
    old = reader.topic_log(TOPIC)
    old.segments.refresh()
    plain(site.open(), "eve")

    assert old.publish() is False
    assert shown(site) == [*SENT, "eve"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_check_tells_of_the_lost_end(site: Site, count: int) -> None:
    assert [one for one in site.open().admin().check_upkeep() if one.duty is Duty.READ] == []

    of_topic, of_decisions = site.copy(), site.copy()
    lose(of_topic, count)
    lose_decisions(of_decisions, count)

    for damaged, told in ((of_topic, LOST_TEXT), (of_decisions, "the transaction log has lost its newest entries")):
        findings = damaged.open().admin().check_upkeep()
        assert [told in one.note for one in findings if one.duty is Duty.READ] == [True]


@pytest.mark.parametrize(
    ("loss", "told"), [(lambda site: lose(site, 1), LOST), (lambda site: lose_decisions(site, 3), LOST_DECISIONS)]
)
def test_all_is_not_well_where_the_end_of_a_log_is_lost(site: Site, loss: Callable[[Site], object], told: str) -> None:
    loss(site)

    with pytest.raises(DamagedDataError, match=told):
        site.open().admin().find_blocking_transactions()
