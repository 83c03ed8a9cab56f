"""Logs that have lost their newest entries: what topics show stays, and everybody is told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from unittest import mock

import pytest

from tests.simulation.site import Site, published
from tests.unit.reading import (
    TOPIC,
    accounts_in,
    commit,
    leave_open,
    plain,
    read_only,
    site_with_topic,
    transactional,
)
from tests.unit.upkeep.coordinating import HOUR_MS, decide_only, run_once
from txntable.admin.admin import Admin
from txntable.admin.restoration import Restoration
from txntable.admin.upkeep import Duty
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.format.records import TopicPartition
from txntable.log.actions import Action, Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.offsets import DECIDED_THROUGH, NEXT_OFFSET
from txntable.storage.object_store import StoredObject
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse, open_on

LOST_TEXT = "the partition log has lost its newest entries"
LOST_DECISIONS = f"the transaction log has lost its newest entries.* topic={TOPIC} "
LOST = f"{LOST_TEXT}.* topic={TOPIC} "
SENT = ["ann", "bob", "cid", "dan"]


@pytest.fixture
def site() -> Site:
    """A topic whose newest entries are of a transaction and of a plain append, all published."""
    made, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    for account in SENT[:3]:
        commit(producer, account)
    plain(warehouse, SENT[3])
    return made


def entries_of(site: Site, root: str = f"topics/{TOPIC}/_segments") -> list[str]:
    folder = f"{root}/_delta_log/"
    return sorted(path for path in site.objects.snapshot() if path.startswith(folder) and path.endswith(".json"))


def lose(site: Site, count: int) -> dict[str, StoredObject]:
    """Delete the newest entries; return what they were."""
    before = site.objects.snapshot()
    lost = entries_of(site)[-count:]
    for path in lost:
        site.objects.delete(path)
    return {path: before[path] for path in lost}


def shown(site: Site) -> list[str]:
    """What the public table shows as it stands, without bringing it up."""
    return [row["account"] for row in published(site.open(), TOPIC)]


def send_plain(warehouse: Warehouse) -> None:
    plain(warehouse, "eve")


def send_in_transaction(warehouse: Warehouse) -> None:
    commit(transactional(warehouse), "eve")


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


# -- the transaction log --------------------------------------------------------------------


def lose_decisions(site: Site, count: int) -> None:
    """Delete the entries of the transaction log from one of its last decisions on."""
    decisions = [one.position for one in site.open().transactions.rows()]
    first = max(decisions) - count + 1
    for path in entries_of(site, TRANSACTION_LOG_ROOT):
        if path >= commit_path(TRANSACTION_LOG_ROOT, first):
            site.objects.delete(path)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_committed_by_who_starts_where_decisions_are_lost(site: Site, count: int) -> None:
    lose_decisions(site, count)
    left = [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)]

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        send_in_transaction(site.open())

    assert [entries_of(site), entries_of(site, TRANSACTION_LOG_ROOT)] == left
    assert shown(site) == SENT


def test_nothing_is_completed_by_a_process_that_has_not_read_a_topic_where_decisions_are_lost(site: Site) -> None:
    """Bug: the topic says how far it has come only once it was read."""
    producer = transactional(site.open(), "busy")
    for number in range(10):
        commit(producer, f"more{number}")
    lose_decisions(site, 10)
    warehouse = site.open()
    with mock.patch.object(TopicLog, "require_decided"):
        decide_only(warehouse, leave_open(warehouse, "eve", transactional_id="open"))
    left = entries_of(site)

    report = run_once(site)

    assert report.failures
    assert entries_of(site) == left


def test_nothing_is_completed_by_a_reader_where_decisions_are_lost(site: Site) -> None:
    """Bug: what the topic shows was taken for that of the decision that stands in the place of a lost one."""
    producer = transactional(site.open(), "busy")
    for number in range(10):
        commit(producer, f"more{number}")
    lose_decisions(site, 10)
    warehouse = site.open()
    with mock.patch.object(TopicLog, "require_decided"):
        decide_only(warehouse, leave_open(warehouse, "eve", transactional_id="open"))
    left, reader = entries_of(site), site.open()

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        reader.completer.bring_through(reader.topic_log(TOPIC), reader.topic_log(TOPIC).settings().topic_id)

    assert entries_of(site) == left


@pytest.mark.parametrize("transactional_id", ["etl", "new"])
def test_nothing_is_committed_by_an_id_without_a_decision_where_all_are_lost(site: Site, transactional_id: str) -> None:
    lose_decisions(site, 3)
    left = entries_of(site)

    with pytest.raises(DamagedDataError, match=LOST_DECISIONS):
        leave_open(site.open(), "eve", transactional_id=transactional_id)

    assert entries_of(site) == left


@pytest.mark.parametrize("count", [1, 2, 3])
def test_check_tells_of_the_lost_end(site: Site, count: int) -> None:
    assert [one for one in site.open().admin().check_upkeep() if one.duty is Duty.READ] == []

    of_topic, of_decisions = site.copy(), site.copy()
    lose(of_topic, count)
    lose_decisions(of_decisions, count)

    for damaged, told in ((of_topic, LOST_TEXT), (of_decisions, "the transaction log has lost its newest entries")):
        findings = damaged.open().admin().check_upkeep()
        assert [told in one.note for one in findings if one.duty is Duty.READ] == [True]
