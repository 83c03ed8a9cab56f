"""What OpenTelemetry's own reader collects of a handle is what the handle counts."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import txntable
from tests.simulation.site import Site
from tests.unit.producer.producing import row, started
from txntable.format.layout import commit_path, segments_root
from txntable.telemetry.opentelemetry import COUNTERS, instrument_name, observe

COUNTED = re.compile(r'"([a-z-]+-metrics/[a-z.-]+-total)"')
TIMED = re.compile(r'@timed\("([a-z-]+)"\)')
GAUGED = {"consumer-coordinator-metrics/assigned-partitions"}


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """Instrument -> what was collected of it."""
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [one for each in data.resource_metrics for scope in each.scope_metrics for one in scope.metrics]
    return {one.name: list(one.data.data_points) for one in metrics}


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


def test_totals_of_a_handle_are_collected_under_the_names_of_its_metrics(
    site: Site, reader: InMemoryMetricReader
) -> None:
    warehouse = site.open()
    observe(warehouse, MeterProvider([reader]))
    producer = started(warehouse)
    with producer.transaction() as transaction:
        transaction.send("u", row=row("one"))

    found = points(reader)

    expected = {
        instrument_name(f"{group}/{name}"): value
        for group, names in warehouse.metrics().items()
        for name, value in names.items()
    }
    assert {name: each[0].value for name, each in found.items()} == expected
    assert expected["txntable.producer.txn_commit_total"] == 1
    assert {dict(each[0].attributes)["warehouse"] for each in found.values()} == {warehouse.url}


def test_lags_are_collected_where_they_are_asked_for(site: Site, reader: InMemoryMetricReader) -> None:
    warehouse = site.open()
    observe(warehouse, MeterProvider([reader]), lags=True)
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("open"))
    producer.flush()
    warehouse.admin().alter_consumer_group_offsets("readers", {txntable.TopicPartition("u", 0): 0})

    found = points(reader)

    (stable,) = [one for one in found["txntable.last_stable_offset_lag"] if one.attributes["topic"] == "u"]
    assert (stable.value, stable.attributes["partition"]) == (1, 0)
    assert [one.value for one in found["txntable.group_lag"]] == [0]
    assert {one.attributes["topic"] for one in found["txntable.publication_lag"]} == {"raw", "t", "u"}


def test_without_a_provider_nothing_is_collected(site: Site) -> None:
    observe(site.open())


def test_every_total_that_is_counted_has_an_instrument() -> None:
    root = Path(txntable.__file__).parent
    texts = [path.read_text() for path in sorted(root.rglob("*.py")) if "telemetry" not in path.parts]
    counted = {name for text in texts for name in COUNTED.findall(text)}
    counted |= {f"producer-metrics/{name}" for text in texts for name in TIMED.findall(text)}
    counted |= {f"producer-metrics/txn-{outcome}-total" for outcome in ("commit", "abort")}

    assert counted - GAUGED == set(COUNTERS)


def test_who_has_not_installed_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    monkeypatch.delitem(sys.modules, "txntable.telemetry.opentelemetry")

    with pytest.raises(txntable.MissingDependencyError, match=r"pip install 'txntable\[opentelemetry\]'"):
        importlib.import_module("txntable.telemetry.opentelemetry")


def test_topic_that_cannot_be_read_is_counted_and_hides_no_other(site: Site, reader: InMemoryMetricReader) -> None:
    site.objects.put(commit_path(segments_root("t"), 1), b"{")
    observe(site.open(), MeterProvider([reader]), lags=True)

    found = points(reader)

    assert [one.value for one in found["txntable.unreadable"]] == [1]
    assert {one.attributes["topic"] for one in found["txntable.publication_lag"]} == {"raw", "u"}
