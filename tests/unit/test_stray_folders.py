"""Folders beside the topics' whose names no topic can have: somebody else's, and in nobody's way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.upkeep.coordinating import run_once
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.layout import topic_names
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def site() -> Site:
    site = Site()
    site.create().admin().create_topic("t", schema=TWO_COLUMNS)
    for folder in ("lost+found", "my topic", "a=b"):
        site.objects.put(f"topics/{folder}/x", b"somebody's")
    return site


@pytest.mark.parametrize(
    "operation",
    [
        lambda warehouse: warehouse.admin().list_topics(),
        lambda warehouse: warehouse.admin().find_hanging_transactions(),
        lambda warehouse: warehouse.complete(),
        compact,
        lambda warehouse: compact(warehouse, execute=False),
        vacuum,
        lambda warehouse: vacuum(warehouse, execute=True),
    ],
)
def test_operation_on_all_topics_passes_by_what_is_none(site: Site, operation: Callable[[Warehouse], object]) -> None:
    operation(site.open())

    assert len(site.objects_below("topics/lost+found")) == 1


def test_coordinator_round_fails_in_nothing(site: Site) -> None:
    assert run_once(site).failures == 0


def test_only_names_that_a_topic_can_have_are_topics() -> None:
    assert topic_names(["a", "a b", "", ".", "..", "x" * 250, "A-_.9"]) == ["a", "A-_.9"]
