"""A warehouse whose ``_warehouse.json`` is gone, or another's, and whose logs are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doubles.memory_store import MemoryObjects
from tests.simulation.site import Site
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import TRANSACTION_LOG_ROOT, WAREHOUSE_FILE, commit_path
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import Warehouse, create_on, open_on
from txntable.warehouse.warehouse_creation import read_identity


def lose_identity(objects: MemoryObjects) -> None:
    objects.restore({path: one for path, one in objects.snapshot().items() if path != WAREHOUSE_FILE})


@pytest.mark.parametrize("exist_ok", [False, True])
def test_lost_identity_is_to_be_restored_and_nothing_is_created_over_the_logs(site: Site, exist_ok: bool) -> None:
    made = site.create()
    whole = site.objects.snapshot()
    lose_identity(site.objects)
    left = site.objects.snapshot()

    for ask in (
        site.open,
        lambda: read_identity(site.store()),
        lambda: create_on(site.store(), site.environment(), exist_ok=exist_ok, settings=WarehouseSettings()),
    ):
        with pytest.raises(DamagedDataError, match=rf"whose {WAREHOUSE_FILE} is gone; restore that file"):
            ask()

    assert site.objects.snapshot() == left
    site.objects.restore({**left, WAREHOUSE_FILE: whole[WAREHOUSE_FILE]})
    assert site.open().identity == made.identity


def test_identity_of_another_warehouse_is_refused_and_is_to_be_restored_alone(site: Site) -> None:
    made, another = site.create(), Site(started=500)
    another.create()
    own = site.objects.snapshot()[WAREHOUSE_FILE]
    site.objects.put(WAREHOUSE_FILE, another.objects.snapshot()[WAREHOUSE_FILE].data)

    with pytest.raises(DamagedDataError, match=rf"`{WAREHOUSE_FILE}` is of another warehouse .* restore it alone"):
        site.open()

    site.objects.put(WAREHOUSE_FILE, own.data)
    assert site.open().identity == made.identity


def test_warehouse_that_is_created_again_while_it_is_opened_is_to_be_opened_anew(site: Site) -> None:
    site.create()
    another = Site(started=500)
    another.create()
    store = site.store()
    get_many = store.get_many

    def create_again(paths: list[str]) -> object:
        found = get_many(paths)
        site.objects.restore(another.objects.snapshot())
        return found

    store.get_many = create_again  # type: ignore[method-assign,assignment]
    with pytest.raises(WarehouseReplacedError, match="created again while it was opened; open it anew"):
        open_on(store, site.environment())


def test_lost_identity_of_a_folder_is_told_by_every_command_that_looks_at_it(tmp_path: Path) -> None:
    made = Warehouse.create(str(tmp_path / "w"), durability="page-cache")
    (tmp_path / "w" / WAREHOUSE_FILE).unlink()

    for ask in (Warehouse.open, Warehouse.create):
        with pytest.raises(DamagedDataError, match="restore that file") as refused:
            ask(made.url)
        assert refused.value.facts["found"] == commit_path(TRANSACTION_LOG_ROOT, 0)
