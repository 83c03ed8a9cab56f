"""``txntable vacuum``: a dry run that tells why, until --execute."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from tests.simulation.rubbish import PART
from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.vacuum import vacuum
from txntable.compaction.vacuum_command import command, told
from txntable.warehouse.warehouse import Warehouse

LEFT = f"topics/orders/_partition=0/{PART}"
UNFINISHED = "topics/orders/_segments/p00000/.unfinished-7-1"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A topic with a record; two files of long ago, and one of now, that nobody needs."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("orders", schema=TWO_COLUMNS)
    with made.producer() as producer:
        producer.send("orders", row={"account": "ann", "amount": 1})
    for path in (LEFT, UNFINISHED):
        file = tmp_path / "wh" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
        os.utime(file, (1_000_000_000, 1_000_000_000))
    (tmp_path / "wh" / "topics/orders" / PART).write_bytes(b"young")
    return made


def call(warehouse: Warehouse, *arguments: str) -> Result:
    application = typer.Typer()
    application.command()(command)
    return CliRunner().invoke(application, ["--warehouse", warehouse.url, *arguments])


def answer(warehouse: Warehouse, *arguments: str) -> list[dict[str, Any]]:
    result = call(warehouse, "--output", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def there(warehouse: Warehouse, path: str) -> bool:
    return Path(warehouse.url, path).exists()


def test_vacuum_tells_what_would_go_and_why_and_deletes_nothing(warehouse: Warehouse) -> None:
    rows = answer(warehouse)

    assert [row for row in rows if row["action"] == "delete"] == [
        {
            "topic": "orders",
            "action": "delete",
            "reason": "left by a refused write of other software",
            "objects": 1,
            "bytes": 5,
            "example": LEFT,
            "executed": False,
        },
        {
            "topic": None,
            "action": "delete",
            "reason": "left by a writer that was killed",
            "objects": 1,
            "bytes": 5,
            "example": UNFINISHED,
            "executed": False,
        },
    ]
    assert {row["reason"] for row in rows if row["action"] == "keep"} == {
        "part of a log",
        "a log names it",
        "younger than seven days",
    }
    assert there(warehouse, LEFT)
    assert there(warehouse, UNFINISHED)


def test_vacuum_deletes_with_execute_and_a_second_one_finds_nothing(warehouse: Warehouse) -> None:
    rows = answer(warehouse, "--execute")

    assert [row["example"] for row in rows if row["executed"]] == [LEFT, UNFINISHED]
    assert not there(warehouse, LEFT)
    assert not there(warehouse, UNFINISHED)
    assert [row for row in answer(warehouse, "--execute") if row["action"] == "delete"] == []
    assert warehouse.read_arrow("orders").read_all().num_rows == 1


def test_last_line_tells_how_much_goes_and_what_to_say(warehouse: Warehouse) -> None:
    assert told(vacuum(warehouse)) == "a dry run: say --execute to delete 2 objects, 10 bytes"
    assert call(warehouse).stderr.splitlines()[0] == "a dry run: say --execute to delete 2 objects, 10 bytes"
    assert told(vacuum(warehouse, execute=True)) == "deleted 2 objects, 10 bytes"
    assert told(vacuum(warehouse)) == "there is nothing to delete"


def test_vacuum_of_one_topic_leaves_the_rest_alone(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("other", schema=TWO_COLUMNS)

    assert {row["topic"] for row in answer(warehouse, "--topic", "other", "--execute")} == {"other"}
    assert there(warehouse, LEFT)


def test_vacuum_of_an_unknown_topic_is_one_line_and_exit_code_1(warehouse: Warehouse) -> None:
    result = call(warehouse, "--topic", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: UNKNOWN_TOPIC_OR_PARTITION there never was such a topic")


def test_topic_whose_log_is_damaged_is_told_and_the_others_are_vacuumed(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("broken", schema=TWO_COLUMNS)
    Path(warehouse.url, "topics/broken/_segments/_delta_log", f"{0:020d}.json").write_text("{")

    result = call(warehouse, "--execute")

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("error: CORRUPT_MESSAGE")
    assert "topics/broken" in result.stderr.splitlines()[-1]
    assert not there(warehouse, LEFT)


def test_table_names_action_and_reason(warehouse: Warehouse) -> None:
    result = call(warehouse)

    assert result.exit_code == 0
    assert "Topic    Action   Reason" in result.stdout
    assert "orders   delete   left by a refused write of other software" in result.stdout
