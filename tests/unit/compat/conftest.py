"""A warehouse that clients of confluent-kafka's shape find by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for topic in ("orders", "paid"):
        made.admin().create_topic(topic, partitions=2)
    return made


@pytest.fixture
def reading(warehouse: Warehouse) -> dict[str, Any]:
    """The configuration of a consumer."""
    return {
        "bootstrap.servers": warehouse.url,
        "group.id": "copies",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


@pytest.fixture
def writing(warehouse: Warehouse) -> dict[str, Any]:
    """The configuration of a transactional producer."""
    return {"bootstrap.servers": warehouse.url, "transactional.id": "copy", "transaction.timeout.ms": 60_000}
