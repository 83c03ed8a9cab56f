"""Lists in a pipe or a file fit into 80 columns as well, where names are as long as they usually are."""

from __future__ import annotations

from tests.unit.cli.conftest import Call
from txntable.warehouse.warehouse import Warehouse


def test_list_of_transactions_fits_when_an_id_has_24_characters(call: Call, warehouse: Warehouse) -> None:
    name = "orders-nightly-2026-1120"
    warehouse.producer(transactional_id=name).init_transactions()

    lines = call("transactions", "list").stdout.splitlines()

    assert max(map(len, lines)) <= 80
    assert name in lines[1]
