"""What an alarm says of groups: which lag, and which stand where they cannot."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.admin.test_upkeep_check import Watch, send_many
from tests.unit.producer.producing import row, started
from txntable.admin.upkeep import Duty
from txntable.format.records import TopicPartition
from txntable.offsets.offset_log import OffsetLog
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    """In which the coordinator job has run once."""
    warehouse = site.open()
    warehouse.coordinator().run_once()
    return warehouse


@pytest.fixture
def watch(site: Site, warehouse: Warehouse) -> Watch:
    return Watch(site)


def test_group_that_lags_is_found_when_lag_is_limited(site: Site, warehouse: Warehouse, watch: Watch) -> None:
    send_many(warehouse, "u", 5)
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("u", 0): 1})

    assert watch.findings() == []
    assert watch.findings(lag_records=4) == []
    (found,) = watch.findings(lag_records=3)
    assert (found.duty, found.where, found.found) == (Duty.CONSUME, "group g, partition u-0", 4)


def test_group_that_stands_beyond_the_end_of_a_partition_is_found_for_the_log_may_be_an_older_copy(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    """Bug: the lag of such a group was 0, and all was well."""
    send_many(warehouse, "u", 5)
    older = {path: found for path, found in site.objects.snapshot().items() if path.startswith("topics/u/")}
    send_many(site.open(), "u", 5)
    site.open().admin().alter_consumer_group_offsets("g", {TopicPartition("u", 0): 10})
    assert watch.findings() == []

    kept = {path: found for path, found in site.objects.snapshot().items() if not path.startswith("topics/u/")}
    site.objects.restore({**kept, **older})

    (found,) = watch.findings()
    assert (found.duty, found.where, found.found) == (Duty.STAND_WITHIN, "group g, partition u-0", 10)
    assert found.limit == 5


def test_group_that_commits_what_was_written_meanwhile_does_not_stand_beyond_the_end(
    site: Site, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, refresh = site.open(), OffsetLog.refresh
    read_on: list[bool] = []

    def refresh_late(log: OffsetLog) -> int:
        if log is opened.offsets and not read_on:
            read_on.append(True)
            send_many(site.open(), "u", 5)
            site.open().admin().alter_consumer_group_offsets("g", {TopicPartition("u", 0): 5})
        return refresh(log)

    monkeypatch.setattr(OffsetLog, "refresh", refresh_late)

    assert [one for one in opened.admin().check_upkeep() if one.duty is Duty.STAND_WITHIN] == []
    assert read_on


def test_group_that_an_open_transaction_holds_back_lags_by_what_it_could_have_read_as_its_description_says(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    send_many(warehouse, "u", 5)
    holding = started(warehouse, "holds")
    holding.begin_transaction()
    holding.send("u", row=row("open"), partition=0)
    holding.flush()
    send_many(warehouse, "u", 5)
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("u", 0): 1})

    assert [found.found for found in watch.findings(lag_records=3)] == [4]
    assert [group.lag for group in warehouse.admin().list_lags().groups] == [4]
