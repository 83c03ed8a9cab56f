"""Servers of moto in one process, whose state they share: each begins with empty buckets of its own."""

from __future__ import annotations

import pytest

from txntable.errors import WarehouseAlreadyExistsError
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse


def create(server: LockedMotoServer) -> None:
    Warehouse.create(f"{server.url}/warehouse", server.storage_options)


def test_server_begins_empty_though_another_has_run_on_since_the_last_one_of_its_bucket() -> None:
    with LockedMotoServer("outer") as outer:
        create(outer)
        for _ in range(2):
            with LockedMotoServer("inner") as inner:
                create(inner)

        with pytest.raises(WarehouseAlreadyExistsError):
            create(outer)


def test_bucket_of_two_servers_stays_until_the_last_of_them_stops() -> None:
    with LockedMotoServer("both") as first:
        create(first)
        with LockedMotoServer("both"):
            pass

        with pytest.raises(WarehouseAlreadyExistsError):
            create(first)
