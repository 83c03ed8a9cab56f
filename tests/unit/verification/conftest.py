"""The warehouse that is damaged, and one of its topics."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.verification.stored import fill
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    return fill(site)


@pytest.fixture
def u(warehouse: Warehouse) -> TopicLog:
    return warehouse.topic_log("u")
