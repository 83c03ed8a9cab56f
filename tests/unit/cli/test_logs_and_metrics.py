"""Events on standard error, and metrics in place of an answer."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli.check import LATE
from txntable.format.layout import commit_path, public_root
from txntable.warehouse.warehouse import Warehouse

EVENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO) txntable\.[a-z_.]+ [a-z ]+( [a-z_]+=\S.*)?")


@pytest.fixture(autouse=True)
def _quiet_afterwards() -> Iterator[None]:
    yield
    logger = logging.getLogger("txntable")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


@pytest.mark.parametrize(
    "words", [("transactions", "run", "--once", "--log-level", "info"), ("-v", "transactions", "run", "--once")]
)
def test_events_are_lines_with_time_level_logger_and_facts(call: Call, words: tuple[str, ...]) -> None:
    result = call(*words)

    assert result.exit_code == 0
    events = result.stderr.splitlines()
    assert any("lease claimed owner=" in line for line in events)
    assert all(EVENT.fullmatch(line) for line in events)
    assert "lease claimed" not in result.stdout


def test_without_a_level_only_warnings_are_told(call: Call) -> None:
    assert call("transactions", "run", "--once").stderr == ""


def test_debug_tells_of_each_commit(call: Call) -> None:
    result = call("topics", "create", "orders", "--log-level", "debug")

    assert "committed log=topics/orders/_segments version=0 operation=CREATE TOPIC" in result.stderr


def test_check_exports_prometheus_text_and_keeps_its_exit_code(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    warehouse.store.delete([commit_path(public_root("orders"), 0)])

    result = call("check", "--limit", "publication_age_ms=0", "--metrics", "prometheus")

    assert result.exit_code == LATE
    assert f'txntable_findings{{warehouse="{warehouse.url}",finding="not published"}} 1\n' in result.stdout
    assert f'txntable_late{{warehouse="{warehouse.url}"}} 1\n' in result.stdout
    assert result.stderr.startswith("not published: topic orders: run `txntable transactions run --once`")


def test_coordinator_exports_embedded_metrics(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")

    result = call("transactions", "run", "--once", "--metrics", "cloudwatch")

    (line,) = result.stdout.splitlines()
    document = json.loads(line)
    assert (document["coordinator_coordinator_epoch"], document["coordinator_failures"]) == (1, 0)
    assert document["last_stable_offset_lag_max"] == 0
