"""A ``_warehouse.json`` that is another warehouse's is told as itself, not by each log that it does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.simulation.site import Site
from tests.unit.verification.stored import HOUR_MS, damages, kinds, maintain, only
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, WAREHOUSE_FILE, commit_path
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.verification.damage import Damage, DamageKind
from txntable.warehouse.warehouse import Warehouse

OTHER = "f" * 32
IDENTITY = (DamageKind.IDENTITY, WAREHOUSE_FILE)


def change_identity(site: Site, warehouse: Warehouse) -> bytes:
    found = site.objects.get(WAREHOUSE_FILE)
    assert found is not None
    site.objects.put(WAREHOUSE_FILE, found.data.replace(warehouse.identity.warehouse_id.encode(), OTHER.encode()))
    return found.data


def test_identity_of_another_warehouse_is_told_once_and_is_restored_alone(site: Site, warehouse: Warehouse) -> None:
    warehouse.admin().alter_warehouse({"offsets_retention_ms": 10**9})
    right = change_identity(site, warehouse)

    (found,) = damages(site)
    site.objects.put(WAREHOUSE_FILE, right)

    assert (found.kind, found.path) == IDENTITY
    assert OTHER in found.problem
    assert warehouse.identity.warehouse_id in found.problem
    assert found.remedy.startswith("restore this object alone")
    assert "whole warehouse" not in found.remedy
    assert damages(site) == []


def test_identity_of_another_warehouse_is_told_when_the_logs_begin_with_a_checkpoint(
    site: Site, warehouse: Warehouse
) -> None:
    for _ in range(2):
        site.advance_ms(40 * 24 * HOUR_MS)
        maintain(site)
    assert site.objects.get(commit_path(TRANSACTION_LOG_ROOT, 0)) is None
    change_identity(site, warehouse)

    assert only(site) == IDENTITY


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT])
def test_log_of_another_warehouse_is_told_as_a_log_when_the_two_do_not_agree(
    site: Site, warehouse: Warehouse, root: str
) -> None:
    keyed = warehouse.transactions if root == TRANSACTION_LOG_ROOT else warehouse.offsets

    def decide(table: TableState) -> Sequence[Action]:
        assert table.metadata is not None
        configuration = {**table.metadata.configuration, "txntable.warehouse.id": OTHER}
        return [replace(table.metadata, configuration=configuration)]

    keyed.log.refresh()
    keyed.log.commit("TEST", decide)

    assert only(site) == (DamageKind.GUARD, commit_path(root, keyed.log.refresh().next_version - 1))

    change_identity(site, warehouse)

    assert kinds(site) == {DamageKind.GUARD}


def test_remedy_of_a_log_of_another_warehouse_is_not_that_of_the_identity() -> None:
    assert Damage(DamageKind.GUARD, TRANSACTION_LOG_ROOT, "").remedy != Damage(*IDENTITY, "").remedy
