"""``txntable erase``: a dry run until --execute, and a report that is whole as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner, Result

from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.erase_command import command, proof_in_words
from txntable.compaction.erasure_report import FoundTrace, Proof, Trace
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A topic with three records, two of them of one account, and a topic without the column."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("orders", schema=TWO_COLUMNS)
    made.admin().create_topic("bytes")
    with made.producer() as producer:
        for account in ("ann", "bob", "ann"):
            producer.send("orders", row={"account": account, "amount": 1})
    return made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but this process has a view of the warehouse: there is nobody to wait for."""
    monkeypatch.setattr("txntable.compaction.erasure._GUARDS", 0)


def call(warehouse: Warehouse, *arguments: str) -> Result:
    application = typer.Typer()
    application.command()(command)
    return CliRunner().invoke(application, ["--warehouse", warehouse.url, *arguments])


def answer(warehouse: Warehouse, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    result = call(warehouse, "--output", "json", *arguments)
    assert result.exit_code == exit_code, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def accounts(warehouse: Warehouse) -> list[str]:
    found: list[str] = warehouse.read_arrow("orders").read_all()["account"].to_pylist()
    return found


def test_erase_tells_what_would_go_and_changes_nothing(warehouse: Warehouse) -> None:
    report = answer(warehouse, "--where", "account=ann")

    assert report["topics"] == [
        {"topic": "orders", "records": 2, "segments": 1, "undecided": 0, "uploaded": 0, "files": 0, "executed": False}
    ]
    assert [log["telling"] for log in report["logs"]] == [1, 1]
    assert report["skipped"] == ["bytes lacks a column, and was not erased from"]
    assert accounts(warehouse) == ["ann", "bob", "ann"]


def test_erase_without_a_purge_leaves_the_file_of_before(warehouse: Warehouse) -> None:
    report = answer(warehouse, "--where", "account=ann", "--execute")

    assert (report["topics"][0]["records"], report["topics"][0]["files"]) == (2, 1)
    assert "proof" not in report
    assert accounts(warehouse) == ["bob"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "a dry run: 2 records; 0 files and 2 log objects of the past tell of them: say --execute to erase"),
        (("--purge",), "say --execute --purge to erase"),
        (("--execute",), "erased 2 records from the newest version; 1 file and "),
        (("--execute", "--purge"), "erased 2 records, and proved it"),
    ],
)
@pytest.mark.usefixtures("patient")
def test_what_an_erasure_comes_to_is_told_without_a_terminal(
    warehouse: Warehouse, arguments: tuple[str, ...], told: str
) -> None:
    assert told in call(warehouse, "--where", "account=ann", *arguments).stderr


@pytest.mark.parametrize(("option", "begin"), [((), "a dry run: nothing"), (("--execute",), "nothing")])
def test_erasure_of_what_nobody_has_says_that_values_are_compared_exactly(
    warehouse: Warehouse, option: tuple[str, ...], begin: str
) -> None:
    result = call(warehouse, "--where", "account=Ann", *option)

    assert f"{begin} that is stored here has these values, which are compared exactly" in result.stderr
    assert "--purge" not in result.stderr


@pytest.mark.usefixtures("patient")
def test_purge_proves_that_nothing_is_left_and_finds_nothing_to_do_again(warehouse: Warehouse) -> None:
    report = answer(warehouse, "--where", "account=ann", "--execute", "--purge")

    assert report["proof"][0]["proved"] is True
    assert report["proof"][0]["records"] == 1
    assert report["topics"][0] == {
        "topic": "orders",
        "records": 2,
        "segments": 1,
        "undecided": 0,
        "uploaded": 0,
        "files": 1,
        "executed": True,
    }
    assert report["found"] == []
    again = answer(warehouse, "--where", "account=ann", "--execute", "--purge")
    assert (again["topics"][0]["records"], again["logs"], again["proof"][0]["proved"]) == (0, [], True)
    assert warehouse.verify().damages == ()


@pytest.mark.usefixtures("patient")
def test_purge_tells_people_what_was_looked_through_and_that_nothing_was_found(warehouse: Warehouse) -> None:
    result = call(warehouse, "--where", "account=ann", "--execute", "--purge")

    lines = result.stdout.splitlines()
    assert re.search(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\S* +yes", lines[lines.index("Proof") + 2])
    assert lines[lines.index("Found") + 1] == "nothing was found"
    looked, found = lines[lines.index("Found") + 2 :][:2]
    assert re.match(r"Looked through \d+ objects \([\d,]+ bytes\), all that is stored: .*1 record\)", looked)
    assert found == "Nothing of what was erased was found."


@pytest.mark.usefixtures("patient")
def test_purge_that_leaves_something_fails_and_says_what(warehouse: Warehouse) -> None:
    Path(warehouse.url, "topics/orders/notes.txt").write_text("about annabel-lee")
    with warehouse.producer() as producer:
        producer.send("orders", row={"account": "annabel-lee", "amount": 1})

    report = answer(warehouse, "--where", "account=annabel-lee", "--execute", "--purge", exit_code=1)

    assert report["found"] == [
        {"trace": "bytes", "left": True, "path": "topics/orders/notes.txt", "count": 1, "column": None}
    ]
    assert report["proof"][0]["proved"] is False
    assert report["proof_in_words"][1] == "Something is left in 1 place: see Found."


@pytest.mark.usefixtures("patient")
def test_purge_tells_files_of_other_software_apart_and_what_to_do_about_them(warehouse: Warehouse) -> None:
    topic = Path(warehouse.url, "topics/orders")
    names = ["_change_data/_partition=0/cdc-00000-1f.c000.parquet", "_partition=1/_base_offset=5/part-00000-2f.parquet"]
    for name in names:
        (topic / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([{"account": "ann", "amount": 1}], TWO_COLUMNS), topic / name)

    report = answer(warehouse, "--where", "account=ann", "--execute", "--purge", exit_code=1)

    assert [(one["trace"], one["left"], one["path"]) for one in report["found"]] == [
        ("file of other software", True, f"topics/orders/{name}") for name in names
    ]
    remedy = (
        "no log names them; delete them, or, where a refused write of Delta software left them, let `txntable vacuum"
    )
    assert report["proof_in_words"][2].startswith(f"file of other software, 2 places: {remedy}")
    assert report["proof_in_words"][2].endswith("seven days after they were written; erasing again does not.")
    for name in names:
        (topic / name).unlink()
    again = answer(warehouse, "--where", "account=ann", "--execute", "--purge")
    assert again["proof"][0]["proved"] is True


@pytest.mark.parametrize("trace", [trace for trace in Trace if trace.is_left])
def test_each_trace_that_is_left_has_words_for_what_to_do(trace: Trace) -> None:
    said = proof_in_words(Proof(traces=(FoundTrace(trace, "some/path"), FoundTrace(Trace.NAME, "other"))))

    assert said[1] == "Something is left in 1 place: see Found."
    assert [line.partition(":")[0] for line in said[2:]] == [f"{trace.value}, 1 place"]


def test_values_of_one_column_are_any_of_them_and_columns_all(warehouse: Warehouse) -> None:
    any_of = answer(warehouse, "--where", "account=ann", "--where", "account=bob")
    all_of = answer(warehouse, "--where", "account=ann", "--where", "amount=2")

    assert (any_of["topics"][0]["records"], all_of["topics"][0]["records"]) == (3, 0)


@pytest.mark.parametrize("arguments", [["--where", "ann"], ["--where", "=ann"], []])
def test_condition_that_is_none_is_wrong_usage_and_its_value_is_not_told(
    warehouse: Warehouse, arguments: list[str]
) -> None:
    result = call(warehouse, *arguments)

    assert result.exit_code == 2
    assert "ann" not in result.stderr.replace("annot", "")


def test_people_read_a_table_and_one_line(warehouse: Warehouse) -> None:
    result = call(warehouse, "--where", "account=ann")

    assert result.exit_code == 0
    assert "orders" in result.stdout
