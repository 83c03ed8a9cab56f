"""What a look keeps of what cannot be read, and what it raises all the same."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import opened
from tests.unit.producer.producing import row
from txntable.admin.readable_part import ReadablePart
from txntable.admin.upkeep import Duty
from txntable.errors import DamagedDataError, UnknownTopicOrPartitionError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

U0 = TopicPartition("u", 0)
JUNK = b"{"


def part(warehouse: Warehouse, *names: str) -> ReadablePart:
    return ReadablePart(warehouse.completer, warehouse.topic_log, names or None)


def damage(site: Site, root: str) -> None:
    """Put junk where the next entry of a log is read."""
    version = 0
    while site.objects.get(commit_path(root, version)) is not None:
        version += 1
    site.objects.put(commit_path(root, version), JUNK)


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    warehouse = site.open()
    with warehouse.producer() as producer:
        producer.send("u", row=row("one"))
    opened(warehouse)
    warehouse.admin().alter_consumer_group_offsets("readers", {U0: 0})
    return site.open()


def test_topic_that_cannot_be_read_is_kept_with_its_error_and_the_others_are_told(
    site: Site, warehouse: Warehouse
) -> None:
    damage(site, segments_root("t"))

    found = part(warehouse)

    assert [one.settings.name for one in found.topics()] == ["raw", "u"]
    assert [each.topic_partition.topic for each in found.lags().partitions] == ["raw", "raw", "u"]
    assert [each.topic_partition for one in found.blocking() for each in one.partitions] == [U0]
    (one,) = found.unreadable
    assert (one.duty, one.where, one.note.split()[0]) == (Duty.READ, "topic t", "CORRUPT_MESSAGE")
    assert (found.names, found.searched) == (["raw", "u"], 2)


def test_ends_of_a_topic_whose_public_table_cannot_be_read_are_told(site: Site, warehouse: Warehouse) -> None:
    damage(site, public_root("u"))

    found = part(warehouse, "u")
    lags = found.lags()

    assert [(each.topic_partition, each.high_watermark) for each in lags.partitions] == [(U0, 2)]
    assert [(each.group_id, each.lag) for each in lags.groups] == [("readers", 1)]
    assert lags.publication_ms == ()
    assert ([one.where for one in found.unreadable], found.searched) == (["topic u"], 0)


def test_offset_log_that_cannot_be_read_hides_groups_alone(site: Site, warehouse: Warehouse) -> None:
    damage(site, OFFSET_LOG_ROOT)

    found = part(warehouse)

    assert len(found.lags().partitions) == 5
    assert found.lags().groups == ()
    ((blocked,),) = (one.partitions for one in found.blocking())
    assert (blocked.topic_partition, blocked.groups) == (U0, ())
    assert [one.where for one in found.unreadable] == [OFFSET_LOG_ROOT]


def test_transaction_log_that_cannot_be_read_is_no_topic_s_fault(site: Site, warehouse: Warehouse) -> None:
    damage(site, TRANSACTION_LOG_ROOT)
    damage(site, segments_root("t"))

    with pytest.raises(DamagedDataError, match=TRANSACTION_LOG_ROOT):
        part(warehouse)


def test_topic_that_there_is_not_is_refused_where_it_is_named(site: Site, warehouse: Warehouse) -> None:
    warehouse.admin().delete_topic("raw")

    with pytest.raises(UnknownTopicOrPartitionError):
        part(warehouse, "u", "raw")
    assert part(warehouse).names == ["t", "u"]
    assert part(warehouse, "u", "u").names == ["u"]


def test_names_of_topics_are_listed_where_one_cannot_be_read_and_other_calls_raise(
    site: Site, warehouse: Warehouse
) -> None:
    damage(site, segments_root("t"))
    admin = warehouse.admin()

    assert admin.list_topics() == ["raw", "t", "u"]
    for call in (admin.describe_topics, admin.list_lags, admin.find_blocking_transactions):
        with pytest.raises(DamagedDataError):
            call()


def test_names_of_topics_are_listed_without_their_public_tables(site: Site, warehouse: Warehouse) -> None:
    damage(site, public_root("t"))

    assert warehouse.admin().list_topics() == ["raw", "t", "u"]
