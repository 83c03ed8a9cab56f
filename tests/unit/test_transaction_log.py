"""T's rows beside the ids': the lease, and kinds that this version does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.site import Site
from tests.unit.log.world import plant, plant_checkpoint
from txntable.coordinator.lease import LeaseRow
from txntable.coordinator.transaction_request import Transition
from txntable.errors import DamagedDataError, TransactionCoordinatorFencedError, UnsupportedFormatError
from txntable.log.keyed_table import KIND, POSITION, keyed_add
from txntable.transactions.transaction_rows import lease_columns
from txntable.warehouse.warehouse import Warehouse

ANN, BOB = "a" * 32, "b" * 32


@pytest.fixture
def site() -> Site:
    site = Site()
    site.create()
    return site


def open_again(site: Site, *, through_checkpoint: bool) -> Warehouse:
    if through_checkpoint:
        warehouse = site.open()
        warehouse.transactions.log.write_checkpoint()
    return site.open()


def test_lease_is_nobodys_in_a_new_warehouse(site: Site) -> None:
    transactions = site.open().transactions

    assert transactions.lease() is None
    assert transactions.coordinator_epoch() == 0


@pytest.mark.parametrize("through_checkpoint", [False, True])
def test_lease_reads_as_claimed_from_entries_and_from_a_checkpoint(site: Site, through_checkpoint: bool) -> None:
    first = site.open().transactions.claim_lease(ANN)
    second = site.open().transactions.claim_lease(BOB)

    transactions = open_again(site, through_checkpoint=through_checkpoint).transactions

    assert (first.coordinator_epoch, second.coordinator_epoch) == (1, 2)
    assert transactions.lease() == second == LeaseRow(BOB, 2, transactions.refresh())
    assert transactions.coordinator_epoch() == 2


def test_lease_row_has_these_columns(site: Site) -> None:
    warehouse = site.open()
    row = warehouse.transactions.claim_lease(ANN)

    (add,) = warehouse.transactions.log.table.files

    assert dict(add.partition_values) == {
        "_kind": "lease",
        "_key": '["coordinator"]',
        "_state": None,
        "_producer_id": None,
        "_producer_epoch": "1",
        "_decision": None,
        "_position": "1",
        "_row": row.to_json(),
    }


def test_commit_through_the_leased_door_is_refused_at_its_slot_once_another_claimed(site: Site) -> None:
    warehouse = site.open()
    warehouse.transactions.claim_lease(ANN)
    store = warehouse.transactions.leased(ANN)
    store.request("PROBE", "etl", lambda row, position: Transition(None, None))
    site.open().transactions.claim_lease(BOB)

    with pytest.raises(TransactionCoordinatorFencedError, match=f"current_owner={BOB}"):
        store.allocate_producer_ids()

    assert warehouse.transactions.log.table.numbers == {}
    warehouse.transactions.allocate_producer_ids()


@pytest.mark.parametrize("through_checkpoint", [False, True])
def test_kind_that_this_version_does_not_know_is_refused(site: Site, through_checkpoint: bool) -> None:
    columns = {**lease_columns(LeaseRow(ANN, 1, 1)), KIND: "quota"}
    warehouse = site.open()
    (plant_checkpoint if through_checkpoint else plant)(warehouse.transactions.log, keyed_add(columns, 0))

    with pytest.raises(UnsupportedFormatError, match="kind=quota"):
        site.open()


def test_lease_whose_columns_contradict_its_content_is_damage(site: Site) -> None:
    add = keyed_add(lease_columns(LeaseRow(ANN, 1, 1)), 0)
    plant(site.open().transactions.log, replace(add, partition_values={**add.partition_values, POSITION: "7"}))

    with pytest.raises(DamagedDataError, match="columns=_position"):
        site.open()
