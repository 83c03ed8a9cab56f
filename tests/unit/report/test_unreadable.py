"""A page of a warehouse of which not all can be read: it says so first, and shows the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests.page import stage
from tests.simulation.site import Site
from tests.unit.report.reading_page import Element, read_page
from txntable.admin.unreadable import topic_place, unreadable
from txntable.admin.upkeep import REMEDIES, Duty, Finding
from txntable.errors import DamagedDataError
from txntable.format.layout import commit_path, public_root, segments_root
from txntable.report.collector import Collector
from txntable.report.page import render_page
from txntable.report.warehouse_report import Bounded, ReportLimits, WarehouseReport
from txntable.warehouse.warehouse import Warehouse


def looked(warehouse: Warehouse, **limits: int) -> WarehouseReport:
    return Collector(warehouse, ReportLimits(**limits)).collect()


def shown(report: WarehouseReport) -> tuple[str, Element]:
    """The page's title, and the page."""
    document = read_page(render_page(report))
    return document.first("title").text, document


def _cut(root: str, site: Site) -> None:
    path = commit_path(root, 0)
    found = site.objects.get(path)
    assert found is not None
    site.objects.put(path, found.data[:50])


def _lose(root: str, site: Site) -> None:
    """Take away the first of two entries."""
    site.objects.delete(commit_path(root, 0))


DAMAGES: dict[str, Callable[[Site], None]] = {
    "truncated": partial(_cut, segments_root("orders")),
    "missing": partial(_lose, segments_root("orders")),
    "truncated public log": partial(_cut, public_root("orders")),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_page_says_first_which_topic_cannot_be_read_and_what_to_do(site: Site, warehouse: Warehouse, kind: str) -> None:
    warehouse.admin().create_topic("whole")
    with warehouse.producer() as producer:
        producer.send("orders", value=b"v")
    DAMAGES[kind](site)

    report = looked(site.open())
    title, document = shown(report)

    assert title.startswith("topic orders cannot be read: ")
    headline = document.first(id="held-back")
    assert headline.first("h2").text == "Not all can be read: topic orders."
    assert "topic orders cannot be read: CORRUPT_MESSAGE" in headline.text
    assert "txntable warehouse verify" in headline.text
    assert "No transaction holds readers back in 1 topic that can be read." in headline.text
    assert "late" not in headline.text
    topics = document.first(id="topics")
    assert topics.first("h2").text == "Topics 2"
    assert [each.first("h3").text for each in topics.all("article")] == ["orders", "whole"]
    assert "It cannot be read: CORRUPT_MESSAGE" in topics.text
    assert document.first(id="health").first("h2").text == "Health 1 unreadable"
    assert "All is well" not in document.text


def test_what_cannot_be_read_is_not_counted_as_late(warehouse: Warehouse) -> None:
    lost = unreadable(topic_place("lost"), DamagedDataError("a log entry is gone"))
    found = (lost, Finding(Duty.MERGE, "topic orders"))
    report = replace(looked(warehouse), findings=Bounded(found, 2), unreadable=Bounded(found[:1], 1))

    _, document = shown(report)

    assert report.late == 1
    assert "And 1 thing is late" in document.first(id="held-back").text
    assert document.first(id="health").first("h2").text == "Health 1 unreadable, 1 late"
    assert REMEDIES[Duty.READ].split("`")[2].strip() in document.first(id="held-back").text


def test_many_that_cannot_be_read_are_counted(warehouse: Warehouse) -> None:
    lost = tuple(unreadable(topic_place(f"t{number}"), DamagedDataError("gone")) for number in range(5))
    report = replace(looked(warehouse), findings=Bounded(lost, 5), unreadable=Bounded(lost, 5))

    title, document = shown(report)

    assert title.startswith("5 topics or logs cannot be read: ")
    statement = document.first(id="held-back").first("h2").text
    assert statement == "Not all can be read: topic t0, topic t1, topic t2 and 2 more."


def test_page_says_it_where_no_finding_is_to_be_shown(site: Site, warehouse: Warehouse) -> None:
    DAMAGES["truncated"](site)

    title, document = shown(looked(site.open(), findings=0, topics=0))

    assert title.startswith("1 topic or log cannot be read: ")
    assert document.first(id="topics").first("h2").text == "Topics 1"
    assert "There is no topic yet" not in document.text


def test_topic_that_cannot_be_read_since_the_last_check_is_told(site: Site, warehouse: Warehouse) -> None:
    collector = Collector(site.open(), ReportLimits(), check_every_ms=60_000)
    assert collector.collect().unreadable.total == 0
    site.objects.put(commit_path(segments_root("orders"), 1), b"{")

    report = collector.collect()

    assert [one.name for one in report.unreadable_topics.shown] == ["orders"]
    assert [one.where for one in report.findings.shown] == ["topic orders"]


def test_page_of_a_whole_warehouse_still_says_that_all_is_well() -> None:
    title, document = shown(stage.empty())

    assert title.startswith("All is well: ")
    assert document.first(id="held-back").text.startswith("All is well")
