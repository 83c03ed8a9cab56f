"""Every golden warehouse of format 1 is opened, read, verified, written to and maintained by every build."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.golden.kinds import KINDS
from tests.golden.warehouses import FOLDER, all_of, copy_of, expected, kinds, rows_of
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.infra.package import PROJECT
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.verification.damage import Damage
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse

LARGEST_BYTES = 300_000
COMPACTED = "latest"
CLEANED_UP = "erased"
PROTOCOL = (PROJECT / "PROTOCOL.md").read_text(encoding="utf-8")
CHECKPOINTS = ("*.checkpoint.parquet", "_last_checkpoint")


@pytest.fixture(params=kinds())
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def folder(kind: str, tmp_path: Path) -> Path:
    return copy_of(kind, tmp_path / kind)


def opened(folder: Path) -> Warehouse:
    return Warehouse.open(str(folder), durability="page-cache")


def damages(folder: Path) -> tuple[Damage, ...]:
    return verify_stored(LocalFolder(StoreSpec(str(folder), durability="page-cache"))).damages


def commit_one_more(warehouse: Warehouse) -> None:
    """Send a row that a topic has already to each of them, in one transaction."""
    producer = warehouse.producer("golden")
    producer.init_transactions()
    with producer.transaction() as transaction:
        for topic in warehouse.admin().list_topics():
            row = warehouse.read_arrow(topic).read_all().slice(0, 1).to_pylist()[0]
            columns = {name: value for name, value in row.items() if not name.startswith("_")}
            if {*columns} == {"key", "value", "headers"}:
                transaction.send(topic, columns["value"], key=columns["key"])
            else:
                transaction.send(topic, row=columns)


def kept(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What upkeep leaves: of a compacted topic the latest record of each key, and no tombstones."""
    found = dict(rows)
    if COMPACTED in rows:
        latest = {row["account"]: row for row in rows[COMPACTED]}
        left = [row for row in latest.values() if row["amount"] is not None]
        found[COMPACTED] = sorted(left, key=itemgetter("_offset"))
    return found


def test_every_kind_was_written_and_all_are_small() -> None:
    assert {*kinds()} == {*KINDS, "native"}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LARGEST_BYTES


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every entry of every golden warehouse: which log, and its actions."""
    made = tmp_path_factory.mktemp("all")
    return [found for name in kinds() for found in entries_below(copy_of(name, made / name))]


def entries_below(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for path in folder.glob("**/_delta_log/*.json"):
        root = path.parent.parent.relative_to(folder)
        log = {"transaction_log": "T", "offset_log": "O", "_segments": "S"}.get(root.name, "P")
        yield log, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_operation_of_the_protocol_stands_in_a_golden_warehouse(
    entries: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    rows = re.findall(r"^\| ([TOSP] [^|]*) \|", PROTOCOL.partition("## 11. ")[2], re.MULTILINE)
    told = {point for row in rows for point in row.split(", ")}

    stands = {f"{log} {actions[0]['commitInfo']['operation']}" for log, actions in entries}

    assert len(told) >= 50
    assert told - stands == set()


def test_every_named_number_of_the_protocol_stands_in_a_golden_warehouse(
    entries: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    table = PROTOCOL.partition("### 5.1 ")[2].partition("### 5.2 ")[0]
    rows = re.findall(r"^\| ([TOSP, ]+) \| ([^|]*) \|", table, re.MULTILINE)
    named = [
        (log, name) for logs, names in rows for log in logs.split(", ") for name in re.findall(r"`([^`]+)`", names)
    ]
    told = {(log, name.split("/")[0]) for log, name in named}

    numbers = [(log, line["txn"]["appId"]) for log, actions in entries for line in actions if "txn" in line]
    stands = {(log, name.split("/")[0]) for log, name in numbers}

    assert len(told) == 13
    assert stands == told


def test_all_that_was_read_when_it_was_written_is_read_today(kind: str, folder: Path) -> None:
    assert all_of(opened(folder)) == expected(kind)


@pytest.mark.parametrize("kind", sorted({*kinds()} - {CLEANED_UP}))
def test_the_same_is_read_without_checkpoints_when_no_entry_was_cleaned_up(kind: str, folder: Path) -> None:
    logs = {path.parent for path in folder.rglob("_last_checkpoint")}
    for log in logs:
        assert (log / f"{0:020d}.json").exists()
        for path in [found for pattern in CHECKPOINTS for found in log.glob(pattern)]:
            path.unlink()

    assert all_of(opened(folder)) == expected(kind)


def test_verification_finds_nothing(folder: Path) -> None:
    assert damages(folder) == ()


def test_other_delta_reader_reads_the_same_rows(kind: str, folder: Path) -> None:
    query = "SELECT _partition, _base_offset + _offset_delta AS o FROM t ORDER BY 1, 2"
    # What was decided and completed by nobody yet is published by whoever reads it through the protocol.
    all_of(opened(folder))
    for topic, rows in expected(kind)["rows"].items():
        found = QueryBuilder().register("t", DeltaTable(str(folder / "topics" / topic))).execute(query).read_all()

        assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
            (row["_partition"], row["_offset"]) for row in rows
        ]


def test_new_transaction_stands_behind_what_is_there(kind: str, folder: Path) -> None:
    commit_one_more(opened(folder))

    for topic, rows in expected(kind)["rows"].items():
        now = rows_of(opened(folder), topic)
        assert [row for row in now if row in rows] == rows
        assert len(now) == len(rows) + 1
    assert damages(folder) == ()


def test_upkeep_loses_nothing(kind: str, folder: Path) -> None:
    warehouse = opened(folder)
    warehouse.coordinator().run_once()
    reports = compact(warehouse)
    vacuum(warehouse, execute=True)

    without_positions = [
        {topic: [{**row, "_commit": None} for row in rows] for topic, rows in kept(found).items()}
        for found in (expected(kind)["rows"], all_of(opened(folder))["rows"])
    ]
    assert [report.failures for report in reports if report.failures] == []
    assert without_positions[1] == without_positions[0]
    assert damages(folder) == ()
