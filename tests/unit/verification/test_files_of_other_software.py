"""What other software leaves in the folder of a log is told as its own, with the remedy (PROTOCOL.md §4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.verification.stored import U, damages, only, other_number
from txntable.format.layout import (
    TRANSACTION_LOG_ROOT,
    checkpoint_path,
    last_checkpoint_path,
)
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.delta_log import DeltaLog
from txntable.log.table_state import TableState
from txntable.verification.damage import DamageKind
from txntable.warehouse.warehouse import Warehouse


def _no_chain(state: TableState) -> TableState:
    return replace(state, chain=None)


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, U, "topics/u"])
def test_checkpoint_of_other_software_is_told_as_that_and_differs_in_nothing(
    site: Site, warehouse: Warehouse, root: str
) -> None:
    topic = site.open().topic_log("u")
    topic.settings()
    logs: dict[str, DeltaLog[Any]] = {
        TRANSACTION_LOG_ROOT: warehouse.transactions.log,
        U: topic.segments,
        "topics/u": topic.public,
    }
    version = logs[root].write_checkpoint()
    path = checkpoint_path(root, version)
    site.objects.put(path, encode_checkpoint(_no_chain(logs[root].table)))

    assert only(site) == (DamageKind.FOREIGN_CHECKPOINT, path)


def test_checkpoint_of_other_software_that_says_something_else_is_both(site: Site, warehouse: Warehouse) -> None:
    version = warehouse.transactions.log.write_checkpoint()
    path = checkpoint_path(TRANSACTION_LOG_ROOT, version)
    table = site.open().transactions.log.table
    site.objects.put(path, encode_checkpoint(_no_chain(other_number(table))))

    found = {(one.kind, one.path) for one in damages(site)}
    assert found == {(DamageKind.FOREIGN_CHECKPOINT, path), (DamageKind.CHECKPOINT, path)}


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, U, "topics/u"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet", DamageKind.FOREIGN_CHECKPOINT),
        (f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", DamageKind.FOREIGN_CHECKPOINT),
        (f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", DamageKind.FOREIGN_CHECKPOINT),
        ("_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet", DamageKind.FOREIGN_CHECKPOINT),
        (f"{0:020d}.{1:020d}.compacted.json", DamageKind.FOREIGN_LOG_FILE),
        (f"{1:020d}.crc", DamageKind.FOREIGN_LOG_FILE),
        (f"_commits/{2:020d}.80a083e8-7026-4e79-81be-64bd76c43a11.json", DamageKind.FOREIGN_LOG_FILE),
        (f"_staged_commits/{2:020d}.80a083e8-7026-4e79-81be-64bd76c43a11.json", DamageKind.FOREIGN_LOG_FILE),
    ],
)
def test_file_of_other_software_that_engines_read_in_place_of_the_entries_is_found(
    site: Site, warehouse: Warehouse, root: str, name: str, kind: DamageKind
) -> None:
    path = f"{root}/_delta_log/{name}"
    site.objects.put(path, b"{}")

    assert only(site) == (kind, path)


@pytest.mark.parametrize("name", [f".{1:020d}.json.crc", f"{1:020d}.json.tmp", "notes.txt", f"old/{1:020d}.json"])
def test_object_in_the_folder_of_a_log_that_means_nothing_to_any_engine_is_no_damage(
    site: Site, warehouse: Warehouse, name: str
) -> None:
    site.objects.put(f"{U}/_delta_log/{name}", b"{}")

    assert damages(site) == []


def test_hint_to_a_checkpoint_of_other_software_in_parts_is_told_with_the_parts(
    site: Site, warehouse: Warehouse
) -> None:
    version = warehouse.transactions.log.write_checkpoint()
    whole = checkpoint_path(TRANSACTION_LOG_ROOT, version)
    data = site.objects.get(whole)
    assert data is not None
    parts = [whole.replace(".parquet", f".{part:010d}.{2:010d}.parquet") for part in (1, 2)]
    for part in parts:
        site.objects.put(part, data.data)
    site.objects.delete(whole)

    found = [(one.kind, one.path) for one in damages(site)]
    assert found == [(DamageKind.FOREIGN_CHECKPOINT, part) for part in parts]


@pytest.mark.parametrize("is_hint_there", [True, False])
def test_hint_whose_checkpoint_is_gone_is_found_since_other_engines_stop_there(
    site: Site, warehouse: Warehouse, *, is_hint_there: bool
) -> None:
    version = warehouse.transactions.log.write_checkpoint()
    hint = last_checkpoint_path(TRANSACTION_LOG_ROOT)
    site.objects.delete(checkpoint_path(TRANSACTION_LOG_ROOT, version))
    if not is_hint_there:
        site.objects.delete(hint)

    found = [(one.kind, one.path) for one in damages(site)]
    assert found == ([(DamageKind.CHECKPOINT_MISSING, hint)] if is_hint_there else [])
