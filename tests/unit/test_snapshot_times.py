"""Snapshots as of a time: what a reader saw then, also of what has no position."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings

from tests.doubles.manual_environment import START_MS, ManualEnvironment
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.administering import decide_only
from tests.unit.playing import OTHER, moves, play, read
from tests.unit.reading import TOPIC, commit, leave_open, plain, read_only, send, site_with_topic, transactional
from txntable.compaction.compactor import compact
from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse, open_on

DAY_MS = 86_400_000


def as_read_only(site: Site) -> Warehouse:
    """A reader without write permission on a machine whose clock is right."""
    now_ms = site.open().context.clock.now_ms()
    return open_on(ReadOnlyStore(site.store()), ManualEnvironment(seed=99, wall_ms=now_ms))


def time_of(site: Site) -> dt.datetime:
    return dt.datetime.fromtimestamp(site.open().context.clock.now_ms() / 1000, tz=dt.UTC)


@settings(max_examples=20)
@given(moves)
def test_snapshot_as_of_a_time_shows_what_a_reader_saw_then_in_all_topics(steps: list) -> None:
    """Also what was sent without a transaction, before and after, and whatever became of the topic since."""
    site, warehouse = site_with_topic(partitions=1)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)
    seen = {}

    def look() -> None:
        site.advance_ms(10_000)
        reader = site.open()
        seen[reader.context.clock.now_ms()] = [read(reader, None, topic) for topic in (TOPIC, OTHER)]
        site.advance_ms(10_000)

    play(warehouse, steps, look)
    look()

    for what_then in (
        lambda: None,
        lambda: warehouse.admin().delete_records({TopicPartition(TOPIC, 0): None}),
        lambda: warehouse.admin().delete_topic(TOPIC),
        lambda: warehouse.admin().create_topic(TOPIC, schema=TWO_COLUMNS),
    ):
        what_then()
        site.advance_ms(10_000)
        reader = site.open()
        for now_ms, found in seen.items():
            moment = dt.datetime.fromtimestamp(now_ms / 1000, tz=dt.UTC)
            assert [read(reader, moment, topic) for topic in (TOPIC, OTHER)] == found


def test_reader_without_write_access_asks_for_a_time_by_its_own_clock() -> None:
    site, warehouse = site_with_topic(partitions=1)
    plain(warehouse, "a")
    moment = time_of(site)
    site.advance_ms(10_000)
    plain(warehouse, "b")

    assert read(read_only(site), moment) == ["a"]
    with pytest.raises(OffsetOutOfRangeError, match="not come yet"):
        read(read_only(site), moment + dt.timedelta(days=1))


def test_snapshot_as_of_a_time_shows_all_of_what_was_decided_by_then_and_published_later() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = leave_open(warehouse, "a")
    decide_only(warehouse, producer)
    site.advance_ms(10_000)
    moment = time_of(site)
    site.advance_ms(10_000)
    reader = site.open()
    reader.complete()
    plain(reader, "b")

    assert read(site.open(), moment) == ["a"]
    reader.admin().delete_records({TopicPartition(TOPIC, 0): None})
    assert read(site.open(), moment) == ["a"]


def test_reader_without_write_access_reads_a_time_that_compaction_has_merged_beyond_what_is_published() -> None:
    site, warehouse = site_with_topic(partitions=1)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)
    producer = transactional(warehouse)
    for account in "ab":
        commit(producer, account)
    owing = site.open()
    slow = transactional(owing, "slow")
    slow.begin_transaction()
    send(slow, "x", topic=OTHER)
    slow.flush()
    decide_only(owing, slow)
    for account in "cd":
        commit(producer, account)
    site.advance_ms(DAY_MS)
    compact(site.open())
    site.advance_ms(10_000)

    assert read(as_read_only(site), time_of(site)) == ["a", "b"]


def test_snapshot_as_of_a_time_shows_a_topic_that_was_created_after_the_last_decision() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    site.advance_ms(DAY_MS)
    before = time_of(site)
    site.advance_ms(DAY_MS)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)
    site.advance_ms(DAY_MS)

    with pytest.raises(UnknownTopicOrPartitionError, match="no such topic then"):
        read(site.open(), before, OTHER)
    assert read(site.open(), time_of(site), OTHER) == []


@pytest.mark.parametrize(("hours", "accounts"), [(0.5, []), (1.5, ["a"]), (2.5, ["a", "b"]), (3, ["a", "b", "c"])])
def test_snapshot_as_of_a_time_shows_what_was_committed_by_then(hours: float, accounts: list[str]) -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    for account in "abc":
        site.advance_ms(3_600_000)
        commit(producer, account)
    moment = dt.datetime.fromtimestamp(START_MS / 1000, tz=dt.UTC) + dt.timedelta(hours=hours)

    for zone in (dt.UTC, dt.timezone(dt.timedelta(hours=9))):
        assert read(warehouse, moment.astimezone(zone)) == accounts
