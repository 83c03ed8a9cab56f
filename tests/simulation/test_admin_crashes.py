"""Kills at every storage call of what an admin does to transactions, then the same call again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.simulation.site import Site
from tests.simulation.test_crashes import committed_transfers, kills, prepared, recover, send, transfer
from txntable.admin.restoration import Restoration
from txntable.errors import InvalidTxnStateError
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.log.delta_log import DeltaLog
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID
from txntable.warehouse.warehouse import Warehouse

DAY_MS = 86_400_000


def site_with_prepared_transaction() -> Site:
    site = prepared()
    producer = site.open().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "never")
    producer.prepare_transaction()
    return site


def abort_open(warehouse: Warehouse) -> None:
    with suppress(InvalidTxnStateError):
        warehouse.admin().abort_transaction("etl")


def fence(warehouse: Warehouse) -> None:
    warehouse.admin().fence_producers(["etl", "new"])


def test_admin_abort_killed_anywhere_is_finished_by_the_same_call_or_by_anyone() -> None:
    for site in (prepared(open_transaction=True), site_with_prepared_transaction()):
        for crashed, where in kills(site, abort_open):
            abort_open(crashed.open())
            recover(crashed)
            assert committed_transfers(crashed, where) == 0
            transfer(crashed.open())
            assert committed_transfers(crashed, where) == 1, where


def test_fencing_killed_anywhere_is_finished_by_the_same_call() -> None:
    for crashed, where in kills(prepared(open_transaction=True), fence):
        fence(crashed.open())

        rows = crashed.open().admin().describe_transactions(["etl", "new"])
        assert not crashed.open().transactions.log.fold.under_way, where
        assert rows["etl"].producer_epoch >= 2, where
        assert committed_transfers(crashed, where) == 0


def fence_all(warehouse: Warehouse) -> None:
    Restoration(warehouse.completer, warehouse.admin()).fence_all()


def test_fencing_all_killed_anywhere_is_finished_by_the_same_call() -> None:
    """After a restore: whoever was there before can never append again, and who comes now was never before."""
    site = prepared(open_transaction=True)
    before = site.open().transactions.log
    before.refresh()
    given = before.table.number(NEXT_PRODUCER_ID)

    for crashed, where in kills(site, fence_all):
        fence_all(crashed.open())

        assert not crashed.open().admin().list_transactions(), where
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where
        rows = crashed.open().admin().describe_transactions(["etl"])
        assert rows["etl"].producer_id > given + 2**39, where


PARTITION = TopicPartition("debit", 0)


def site_with_lost_offsets() -> Site:
    """The newest entries of the offset log are lost; offsets of a transaction that was decided are pending there."""
    site = prepared()
    producer = site.open().producer("copier")
    producer.init_transactions()
    for offset in (1, 2):
        producer.begin_transaction()
        producer.send_offsets_to_transaction({PARTITION: offset}, "readers")
        producer.commit_transaction()
    producer.close()
    newest = max(path for path in site.objects.snapshot() if path.startswith(f"{OFFSET_LOG_ROOT}/_delta_log/0"))
    site.objects.delete(newest)
    return site


def test_taking_an_offset_log_as_it_is_killed_anywhere_is_finished_by_the_same_call() -> None:
    for crashed, where in kills(site_with_lost_offsets(), fence_all):
        fence_all(crashed.open())

        warehouse = crashed.open()
        found = warehouse.admin().list_consumer_group_offsets("readers")[PARTITION]
        assert found is not None, where
        assert (found.offset, warehouse.offsets.pending()) == (2, []), where
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where


def alter_warehouse(warehouse: Warehouse) -> None:
    warehouse.admin().alter_warehouse({"vacuum_retention_ms": 40 * DAY_MS, "snapshot_retention_ms": 120_000})


def test_alteration_of_a_warehouse_killed_anywhere_is_finished_by_the_same_call() -> None:
    for crashed, where in kills(prepared(open_transaction=True), alter_warehouse):
        before = crashed.open().settings().vacuum_retention_ms
        assert before in (30 * DAY_MS, 40 * DAY_MS), where

        alter_warehouse(crashed.open())

        warehouse = crashed.open()
        warehouse.offsets.refresh()
        assert warehouse.settings().snapshot_retention_ms == 120_000, where
        logs: list[DeltaLog[Any]] = [warehouse.transactions.log, warehouse.offsets.log]
        logs += [warehouse.topic_log(name).public for name in warehouse.admin().list_topics()]
        assert {log.refresh().deleted_files_retention_ms for log in logs} == {40 * DAY_MS}, where
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where
