"""A second implementation, written from PROTOCOL.md alone by somebody who has not read the product, beside the product.

``clean_room.py`` runs as a process of its own on the same folder.  What one of the two writes the other reads, and
each fences the other.  What its writer found unclear in the text is in ``FINDINGS.md``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conformance.check_vectors import check_vectors
from txntable import ProducerFencedError, Warehouse
from txntable.transactions.completion import Completer

HERE = Path(__file__).parent
SCHEMA = pa.schema([("account", pa.string()), ("amount", pa.int64())])
REFUSED = 2


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("money", partitions=2, schema=SCHEMA)
    return made


def clean_room(warehouse: Warehouse, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", str(HERE / "clean_room.py"), "-w", warehouse.url.removeprefix("file://")]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def told(warehouse: Warehouse, *arguments: str) -> list[dict[str, Any]]:
    done = clean_room(warehouse, *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def transact(warehouse: Warehouse, name: str, amount: int, *more: str) -> dict[str, Any]:
    values = json.dumps([{"account": name, "amount": amount}, {"account": "cash", "amount": -amount}])
    (answer,) = told(warehouse, "transact", name, "--topic", "money", "--partition", "0", "--values", values, *more)
    return answer


def amounts(warehouse: Warehouse) -> list[tuple[str, int]]:
    """What the product shows as committed, after it has completed what is decided."""
    warehouse.complete()
    rows = warehouse.snapshot().read_arrow("money").read_all().to_pylist()
    return sorted((row["account"], row["amount"]) for row in rows)


def amounts_read(warehouse: Warehouse, level: str = "read_committed") -> list[tuple[str, int]]:
    """What the clean room shows."""
    rows = told(warehouse, "read", "money", "--isolation", level)
    return sorted((row["account"], row["amount"]) for row in rows)


def test_clean_room_agrees_with_every_vector(capsys: pytest.CaptureFixture[str]) -> None:
    failures = check_vectors(str(HERE / "vectors"))
    told = capsys.readouterr().out

    assert failures == 0, told
    assert told.count(" of ") == len(list((HERE / "vectors").glob("*.json"))), told


def test_each_reads_what_the_other_committed(warehouse: Warehouse) -> None:
    transact(warehouse, "ann", 5, "--leave-complete")
    with warehouse.producer("ours") as producer:
        producer.init_transactions()
        with producer.transaction() as txn:
            txn.send("money", row={"account": "ben", "amount": 7}, partition=1)
    transact(warehouse, "cat", 9)

    expected = sorted([("ann", 5), ("cash", -5), ("ben", 7), ("cat", 9), ("cash", -9)])
    assert amounts(warehouse) == expected
    assert amounts_read(warehouse) == expected
    assert amounts_read(warehouse, "snapshot") == expected


def test_what_a_decision_of_the_clean_room_carries_is_appended_by_the_product_and_once(warehouse: Warehouse) -> None:
    transact(warehouse, "ann", 5, "--carry", "--end", "decide")
    transact(warehouse, "cat", 9, "--carry", "--end", "decide")

    expected = sorted([("ann", 5), ("cash", -5), ("cat", 9), ("cash", -9)])
    assert amounts(warehouse) == expected
    told(warehouse, "complete")
    assert amounts_read(warehouse) == amounts_read(warehouse, "snapshot") == amounts(warehouse) == expected


def test_what_a_decision_of_the_product_carries_is_appended_by_the_clean_room_and_once(warehouse: Warehouse) -> None:
    with pytest.MonkeyPatch.context() as patch, warehouse.producer("ours") as producer:
        producer.init_transactions()
        patch.setattr(Completer, "bring", lambda completer, transactional_id: None)
        with producer.transaction() as txn:
            txn.send("money", row={"account": "ben", "amount": 7}, partition=1)
            txn.send("money", row={"account": "ann", "amount": 5}, partition=0)

    (completed,) = told(warehouse, "complete")

    assert completed == {"completed": ["ours"]}
    assert amounts_read(warehouse) == [("ann", 5), ("ben", 7)]
    assert amounts(warehouse) == [("ann", 5), ("ben", 7)]


def test_each_goes_on_from_what_the_other_decided_and_did_not_write_complete_for(warehouse: Warehouse) -> None:
    transact(warehouse, "etl", 5, "--leave-complete")
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.send("money", row={"account": "ben", "amount": 7}, partition=1)
    transact(warehouse, "etl", 9, "--leave-complete", "--carry")

    assert operations(warehouse)[-5:] == ["COMMIT", "INIT", "COMMIT", "INIT", "COMMIT"]
    expected = sorted([("etl", 5), ("cash", -5), ("ben", 7), ("etl", 9), ("cash", -9)])
    assert amounts_read(warehouse) == amounts_read(warehouse, "snapshot") == amounts(warehouse) == expected


def operations(warehouse: Warehouse) -> list[str]:
    """What the entries of T say that they did."""
    folder = Path(warehouse.url.removeprefix("file://"), "system/transaction_log/_delta_log")
    entries = [path.read_text().splitlines()[0] for path in sorted(folder.glob("0*.json"))]
    return [json.loads(line)["commitInfo"]["operation"] for line in entries]


def test_what_one_aborts_the_other_does_not_show(warehouse: Warehouse) -> None:
    transact(warehouse, "ann", 5, "--end", "abort")
    with warehouse.producer("ours") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("money", row={"account": "ben", "amount": 7}, partition=1)
        producer.flush()
        producer.abort_transaction()

    assert amounts(warehouse) == []
    assert amounts_read(warehouse) == []


def test_product_fences_a_clean_room_that_left_its_transaction_open(warehouse: Warehouse) -> None:
    left = transact(warehouse, "ann", 5, "--end", "leave")
    with warehouse.producer("ann") as producer:
        producer.init_transactions()
        stale = ["--producer", str(left["producer_id"]), str(left["producer_epoch"])]
        values = '[{"account": "zombie", "amount": 1}]'
        refused = clean_room(
            warehouse, "transact", "ann", "--topic", "money", "--partition", "0", "--values", values, *stale
        )
        with producer.transaction() as txn:
            txn.send("money", row={"account": "ben", "amount": 7}, partition=0)

    assert refused.returncode == REFUSED, refused
    assert amounts(warehouse) == [("ben", 7)]
    assert amounts_read(warehouse) == [("ben", 7)]


def test_clean_room_fences_a_producer_of_ours_that_left_its_transaction_open(warehouse: Warehouse) -> None:
    producer = warehouse.producer("ann")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("money", row={"account": "zombie", "amount": 1}, partition=0)
    producer.flush()

    transact(warehouse, "ann", 5)

    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    producer.close()
    assert amounts(warehouse) == [("ann", 5), ("cash", -5)]
    assert amounts_read(warehouse) == [("ann", 5), ("cash", -5)]


def test_clean_room_leaves_a_prepared_transaction_of_ours_to_its_token(warehouse: Warehouse) -> None:
    """An external database may have committed with it: who ends it by an init makes the two sides differ."""
    producer = warehouse.producer("ann")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("money", row={"account": "ann", "amount": 5}, partition=0)
    token = producer.prepare_transaction()

    values = '[{"account": "zombie", "amount": 1}]'
    refused = clean_room(warehouse, "transact", "ann", "--topic", "money", "--partition", "0", "--values", values)
    producer.complete_transaction(token)
    producer.close()

    assert refused.returncode == REFUSED, refused
    assert "INVALID_TXN_STATE" in refused.stdout
    assert amounts(warehouse) == amounts_read(warehouse) == [("ann", 5)]


def test_writers_of_both_kinds_at_once_lose_and_double_nothing(warehouse: Warehouse) -> None:
    """Two processes of the clean room and a producer of ours take the same slots of the same logs."""
    command = [sys.executable, "-P", str(HERE / "clean_room.py"), "-w", warehouse.url.removeprefix("file://")]
    values = {name: json.dumps([{"account": name, "amount": 1}]) for name in ("one", "two")}
    carries: dict[str, list[str]] = {"one": [], "two": ["--carry"]}
    arguments = {
        name: ["transact", name, *carries[name], "--topic", "money", "--partition", "0", "--values"] for name in values
    }
    rounds = 4
    with warehouse.producer("ours") as producer:
        producer.init_transactions()
        for number in range(rounds):
            others = [subprocess.Popen([*command, *arguments[name], values[name]]) for name in values]
            for again in range(3):
                with producer.transaction() as txn:
                    txn.send("money", row={"account": "ours", "amount": number * 3 + again}, partition=0)
            assert [other.wait() for other in others] == [0, 0]

    expected = [*[("one", 1)] * rounds, *[("ours", n) for n in range(rounds * 3)], *[("two", 1)] * rounds]
    assert amounts(warehouse) == sorted(expected)
    assert amounts_read(warehouse) == sorted(expected)
