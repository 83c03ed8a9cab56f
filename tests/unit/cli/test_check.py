"""``txntable check``: a line for each finding, and an exit code for a scheduler's alarm."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Call
from txntable.admin.upkeep import REMEDIES, Duty
from txntable.cli.check import LATE, NOTHING_LATE
from txntable.format.layout import commit_path, public_root
from txntable.warehouse.warehouse import Warehouse


def lose_public_table(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    warehouse.store.delete([commit_path(public_root("orders"), 0)])


def test_check_of_a_warehouse_that_is_looked_after_finds_nothing(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")

    result = call("check", "--output", "json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert call("check").stdout == f"{NOTHING_LATE}\n"


def test_check_tells_what_is_late_and_what_to_do_and_fails(call: Call, warehouse: Warehouse) -> None:
    lose_public_table(warehouse)

    result = call("check", "--limit", "publication_age_ms=0", "--output", "json")

    assert result.exit_code == LATE
    assert LATE not in (0, 1, 2)
    (found,) = json.loads(result.stdout)
    assert (found["finding"], found["where"]) == (Duty.PUBLISH.value, "topic orders")
    assert (found["limit"], found["unit"], found["remedy"]) == (0, "ms", REMEDIES[Duty.PUBLISH])
    assert found["found"] > 0
    assert "not published" in call("check", "--limit", "publication_age_ms=0").stdout
    assert call("check").exit_code == 0, "younger than the limit"


def test_check_finds_nothing_after_the_coordinator_has_run(call: Call, warehouse: Warehouse) -> None:
    lose_public_table(warehouse)
    assert call("transactions", "run", "--once").exit_code == 0

    assert call("check", "--limit", "publication_age_ms=0").exit_code == 0


def test_check_tells_what_can_not_be_read(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    warehouse.store.put(commit_path(public_root("orders"), 1), b"{}")

    result = call("check", "--output", "json")

    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)
    assert found["finding"] == Duty.READ.value
    assert found["note"].startswith("CORRUPT_MESSAGE")
    assert [found[name] for name in ("found", "limit", "unit")] == [None, None, None]


@pytest.mark.parametrize(("said", "code"), [("lag=1", 1), ("lag_records=many", 1), ("lag_records", 2)])
def test_limit_that_there_is_not_is_refused(call: Call, said: str, code: int) -> None:
    result = call("check", "--limit", said)

    assert result.exit_code == code
    assert result.stdout == ""
    assert "lag" in result.stderr or "NAME=NUMBER" in result.stderr
