"""An entry that was lost from the middle of a log is found, though whoever reads the log takes it to end there."""

from __future__ import annotations

import json

import pytest

from tests.simulation.site import Site
from tests.unit.producer.producing import row
from txntable.admin.upkeep import Duty, Finding
from txntable.format.layout import OFFSET_LOG_ROOT, commit_path, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.report.collector import Collector
from txntable.report.warehouse_report import ReportLimits
from txntable.warehouse.warehouse import Warehouse

PLACES = {segments_root("u"): "topic u", public_root("u"): "topic u", OFFSET_LOG_ROOT: OFFSET_LOG_ROOT}


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    warehouse = site.open()
    for number in range(3):
        with warehouse.producer() as producer:
            producer.send("u", row=row("one", number))
        warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("u", 0): number})
    return warehouse


def unreadable(site: Site) -> list[Finding]:
    return [one for one in site.open().admin().check_upkeep() if one.duty is Duty.READ]


@pytest.mark.parametrize("root", PLACES)
def test_entry_that_was_lost_below_others_is_found(site: Site, warehouse: Warehouse, root: str) -> None:
    path = commit_path(root, 2)
    assert site.objects.get(commit_path(root, 3)) is not None
    site.objects.delete(path)

    (found,) = unreadable(site)

    assert found.where == PLACES[root]
    assert found.note.startswith("CORRUPT_MESSAGE the log has a gap")
    assert path in found.note


def test_newest_entries_of_a_log_may_be_any_number(site: Site, warehouse: Warehouse) -> None:
    assert unreadable(site) == []


def test_entry_of_another_log_above_the_end_is_no_gap(site: Site, warehouse: Warehouse) -> None:
    """As a restore leaves it, until a cleanup takes it."""
    root = segments_root("u")
    found = site.objects.get(commit_path(root, 3))
    assert found is not None
    first, _, rest = found.data.partition(b"\n")
    body = json.loads(first)
    (name,) = (
        name for name, value in body["commitInfo"].items() if value == warehouse.topic_log("u").segments.table.log
    )
    body["commitInfo"][name] = "0" * 32
    site.objects.put(commit_path(root, 9), json.dumps(body).encode() + b"\n" + rest)

    assert unreadable(site) == []


def test_page_shows_what_is_below_the_gap_once(site: Site, warehouse: Warehouse) -> None:
    site.objects.delete(commit_path(segments_root("u"), 2))

    report = Collector(site.open(), ReportLimits()).collect()

    assert [one.where for one in report.unreadable.shown] == ["topic u"]
    assert report.unreadable_topics.total == 0
    assert "u" in {topic.name for topic in report.topics.shown}
