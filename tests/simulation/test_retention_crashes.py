"""Kills at every storage call of retention and of a deletion of records, then the same by another process."""

from __future__ import annotations

from tests.simulation.site import Site, published
from tests.simulation.test_crashes import kills
from tests.unit.reading import TOPIC, commit, leave_open, places, plain, send, site_with_topic, transactional
from txntable.format.records import TopicPartition
from txntable.topics.retention import ExpiredRecords, expire_records
from txntable.warehouse.warehouse import Warehouse

PLACE = TopicPartition(TOPIC, 0)
WEEK_MS = 7 * 86_400_000


def site_with_old_records() -> Site:
    """A segment of a transaction and one without, two of an open transaction around them, and a young one."""
    site, warehouse = site_with_topic()
    warehouse.admin().alter_configs(TOPIC, {"retention.ms": WEEK_MS})
    commit(transactional(warehouse), "a0", "a1", "a2")
    producer = leave_open(warehouse, "o4")
    plain(warehouse, "b5", "b6", "b7")
    site.advance_ms(WEEK_MS + 60_000)
    send(producer, "o8")
    producer.flush()
    plain(warehouse, "c9")
    return site


def delete_records(warehouse: Warehouse) -> None:
    warehouse.admin().delete_records({PLACE: 6})


def expire(warehouse: Warehouse) -> ExpiredRecords:
    return expire_records(warehouse.topic_log(TOPIC))


def alter_configs(warehouse: Warehouse) -> None:
    warehouse.admin().alter_configs(TOPIC, {"retention.ms": 2 * WEEK_MS, "segment.bytes": 2**20})


def test_deletion_of_records_killed_anywhere_is_finished_by_the_same_call() -> None:
    seen = set()
    for crashed, where in kills(site_with_old_records(), delete_records):
        before = tuple(places(crashed.open().read_arrow(TOPIC, isolation_level="snapshot")))
        seen.add(before)
        delete_records(crashed.open())

        other = crashed.open()
        shown = [(0, row["_offset"], row["account"]) for row in published(other, TOPIC)]
        assert shown == [(0, 6, "b6"), (0, 7, "b7"), (0, 9, "c9")], where
        assert tuple(shown) == tuple(places(other.read_arrow(TOPIC, isolation_level="snapshot"))), where
    assert [len(records) for records in sorted(seen, key=len)] == [3, 7], "all or none of it to every reader"


def test_retention_killed_anywhere_is_finished_by_the_next_round() -> None:
    seen = set()
    for crashed, where in kills(site_with_old_records(), expire):
        seen.add(tuple(places(crashed.open().read_arrow(TOPIC, isolation_level="snapshot"))))
        expire(crashed.open())

        other = crashed.open()
        assert [row["account"] for row in published(other, TOPIC)] == ["c9"], where
        (described,) = other.admin().describe_topics([TOPIC])
        assert (described.partitions[0].log_start, described.partitions[0].last_stable_offset) == (8, 8), where
        assert expire(crashed.open()) == ExpiredRecords(), where
    assert [len(records) for records in sorted(seen, key=len)] == [1, 7]


def test_altering_settings_killed_anywhere_is_whole_or_nothing_and_finished_by_the_same_call() -> None:
    seen = set()
    for crashed, where in kills(site_with_old_records(), alter_configs):
        seen.add(len(crashed.open().topic_log(TOPIC).settings().config))
        alter_configs(crashed.open())

        metadata = crashed.open().topic_log(TOPIC).public.refresh().metadata
        assert metadata is not None, where
        assert metadata.configuration["txntable.config.retention.ms"] == str(2 * WEEK_MS), where
    assert seen == {1, 2}
