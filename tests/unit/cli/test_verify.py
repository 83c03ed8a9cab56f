"""``txntable warehouse verify``: a row for each damage, with its remedy, and an exit code."""

from __future__ import annotations

import json

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.unit.cli.conftest import Call
from txntable.cli.progress import FIRST_MS, INTERVAL_MS, progressing
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.verification.damage import REMEDIES, DamageKind
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    warehouse.admin().create_topic("orders")
    with warehouse.producer() as producer:
        producer.send("orders", b"paid")
    return warehouse


def test_verification_of_a_sound_warehouse_says_what_was_read(call: Call, orders: Warehouse) -> None:
    result = call("warehouse", "verify")

    assert result.exit_code == 0
    assert result.stdout.startswith("all is well: 4 logs (")
    assert " and 1 segment (" in result.stdout
    assert json.loads(call("warehouse", "verify", "--output", "json").stdout) == []


def test_verification_of_a_warehouse_that_cannot_be_opened_names_the_damage_and_the_remedy(
    call: Call, orders: Warehouse
) -> None:
    path = commit_path(TRANSACTION_LOG_ROOT, 1)
    found = orders.store.get(path)
    assert found is not None
    orders.store.put(path, found.data[:-1])
    assert call("topics", "list").exit_code == 1

    result = call("warehouse", "verify", "--output", "json")

    assert result.exit_code == 1
    damages = {each["path"]: each for each in json.loads(result.stdout)}
    assert damages[path]["damage"] == DamageKind.ENTRY_UNREADABLE.value
    assert damages[path]["remedy"] == REMEDIES[DamageKind.ENTRY_UNREADABLE]
    assert "1 damaged" in result.stderr


def test_verification_of_a_topic_that_is_none_is_an_error(call: Call, orders: Warehouse) -> None:
    result = call("warehouse", "verify", "--topic", "nope")

    assert result.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in result.stderr


def test_verification_prints_metrics_of_a_warehouse_that_cannot_be_opened_too(call: Call, orders: Warehouse) -> None:
    sound = call("warehouse", "verify", "--metrics", "cloudwatch")
    orders.store.delete([commit_path(TRANSACTION_LOG_ROOT, 0)])

    damaged = call("warehouse", "verify", "--metrics", "cloudwatch")

    well, found = json.loads(sound.stdout), json.loads(damaged.stdout)
    assert (sound.exit_code, well["damages"], well["verified_segments"]) == (0, 0, 1)
    assert (damaged.exit_code, found["warehouse"]) == (1, well["warehouse"])
    assert found["damages"] > 0
    assert REMEDIES[DamageKind.LOG_BEGINNING] in damaged.stderr


def test_progress_is_a_line_early_and_then_rarely_where_nobody_is_looking(capsys: pytest.CaptureFixture[str]) -> None:
    environment = ManualEnvironment()
    with progressing("reading", environment) as progress:
        progress("1 of 5")
        environment.advance_ms(FIRST_MS)
        progress("2 of 5")
        environment.advance_ms(INTERVAL_MS - 1)
        progress("3 of 5")
        environment.advance_ms(1)
        progress("4 of 5")
        environment.advance_ms(INTERVAL_MS - 1)
        progress("5 of 5")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "2 of 5\n4 of 5\n")
