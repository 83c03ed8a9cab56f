"""A warehouse in memory, whose clock is told."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    made = site.create()
    made.admin().create_topic("orders", partitions=2)
    return made
