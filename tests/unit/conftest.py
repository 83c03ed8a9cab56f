"""A fresh warehouse for each test that asks for one."""

from __future__ import annotations

from functools import cache

import pytest

from tests.simulation.site import TWO_COLUMNS, Site


@pytest.fixture
def site() -> Site:
    return _with_topics().copy()


@cache
def _with_topics() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    admin.create_topic("u", partitions=1, schema=TWO_COLUMNS)
    admin.create_topic("raw", partitions=2)
    return site
