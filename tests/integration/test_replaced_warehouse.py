"""A warehouse that is moved, wiped, created again or restored under living processes (PROTOCOL.md §4.2 rule 13, §4.6).

What the processes of before are told is true, what they leave behind harms nobody, and ``deltalake`` agrees.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS, published
from txntable.cli.main import application
from txntable.errors import DamagedDataError, IllegalStateError, TxnTableError, WarehouseReplacedError
from txntable.format.layout import TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

Make = Callable[[], Warehouse]


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer("replaced") as running:
        yield running


def transfer(producer: Producer, account: str) -> None:
    producer.begin_transaction()
    producer.send("t", row={"account": account, "amount": 1})
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
    producer.commit_transaction()


def filled(warehouse: Warehouse, name: str, transactions: int) -> Producer:
    """Make the topic where it is not there, and commit; return the producer."""
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS, exist_ok=True)
    producer = warehouse.producer(name)
    producer.init_transactions()
    for number in range(transactions):
        transfer(producer, f"{name} {number}")
    # COMPLETE of the last one is no late put then.
    warehouse.complete()
    return producer


def accounts(warehouse: Warehouse) -> list[str]:
    return [row["account"] for row in published(warehouse, "t")]


def refused(producer: Producer) -> int:
    """Try three transactions; return how many were told committed."""
    told = 0
    for number in range(3):
        try:
            transfer(producer, f"zombie {number}")
            told += 1
        except (WarehouseReplacedError, IllegalStateError):
            pass
    return told


def seen_by_deltalake(warehouse: Warehouse, options: dict[str, str], root: str, column: str) -> list[str]:
    table = DeltaTable(f"{warehouse.url}/{root}", storage_options=options)
    found = pa.table(QueryBuilder().register("found", table).execute(f"SELECT {column} FROM found ORDER BY {column}"))
    return found[column].to_pylist()


def agrees_with_deltalake(warehouse: Warehouse, options: dict[str, str]) -> None:
    assert seen_by_deltalake(warehouse, options, public_root("t"), "account") == sorted(accounts(warehouse))
    rows = [str(add.partition_values["_row"]) for add in warehouse.transactions.log.refresh().files]
    assert seen_by_deltalake(warehouse, options, TRANSACTION_LOG_ROOT, "_row") == sorted(rows)
    table = DeltaTable(f"{warehouse.url}/{segments_root('t')}", storage_options=options)
    assert set(pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()) == {
        add.path for add in warehouse.topic_log("t").segments.refresh().files
    }


# -- local folders ---------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "wh"


def make(place: Path) -> Warehouse:
    return Warehouse.create(str(place), durability="page-cache")


@pytest.mark.parametrize("mount_point_stays", [False, True])
def test_producer_is_told_nothing_committed_while_the_folder_is_away(place: Path, *, mount_point_stays: bool) -> None:
    producer = filled(make(place), "etl", 2)
    os.rename(place, f"{place}.away")
    if mount_point_stays:
        place.mkdir()

    assert refused(producer) == 0

    assert not place.exists() or not list(place.iterdir())
    if mount_point_stays:
        place.rmdir()
    os.rename(f"{place}.away", place)
    assert refused(producer) == 0, "it was told to stop"
    again = Warehouse.open(str(place), durability="page-cache")
    transfer(filled(again, "etl", 0), "after")
    assert accounts(again) == ["etl 0", "etl 1", "after"]


def test_producer_is_told_nothing_committed_in_a_folder_that_was_deleted_and_created_again(place: Path) -> None:
    producer = filled(make(place), "etl", 3)
    shutil.rmtree(place)
    new = make(place)
    filled(new, "new", 1)
    before = sorted(place.rglob("*"))

    assert refused(producer) == 0

    assert sorted(place.rglob("*")) == before
    filled(new, "other", 20)
    assert len(accounts(Warehouse.open(str(place)))) == 21


def restore(place: Path, backup: Path) -> None:
    """Put a backup back into the folder that is there, as tools that copy files do."""
    for child in place.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    shutil.copytree(backup, place, dirs_exist_ok=True)


def restored_under_living_processes(place: Path, transactions: int) -> list[Producer]:
    """Return producers that worked after the backup, and lost that: nobody has fenced them yet."""
    warehouse = make(place)
    filled(warehouse, "early", 2)
    shutil.copytree(place, f"{place}.backup")
    late = [
        filled(Warehouse.open(str(place), durability="page-cache"), f"late{number}", transactions)
        for number in range(3)
    ]
    restore(place, Path(f"{place}.backup"))
    return late


def fence_all(place: Path) -> None:
    result = CliRunner().invoke(application, ["warehouse", "fence-all", "--execute", "-w", str(place)])
    assert result.exit_code == 0, result.output


def go_on_in_new_processes(place: Path, transactions: int) -> None:
    for _ in range(transactions):
        filled(Warehouse.open(str(place), durability="page-cache"), "unfenced", 1)


@pytest.mark.parametrize("fenced", ["before they try", "after they tried", "after they tried and others went on"])
def test_processes_of_before_a_restore_are_told_nothing_committed_and_harm_nobody(place: Path, fenced: str) -> None:
    late = restored_under_living_processes(place, 3)
    if fenced == "before they try":
        fence_all(place)
        assert [refused(producer) for producer in late] == [0, 0, 0]
    else:
        assert [refused(producer) for producer in late] == [0, 0, 0]
        if fenced != "after they tried":
            with pytest.raises(DamagedDataError, match="fence-all"):
                go_on_in_new_processes(place, 30)
        fence_all(place)

    after = Warehouse.open(str(place), durability="page-cache")
    unfenced = len(accounts(after)) - 2
    filled(after, "new", 25)

    again = Warehouse.open(str(place), durability="page-cache")
    assert not [account for account in accounts(again) if account.startswith(("late", "zombie"))]
    assert len(accounts(again)) == 2 + unfenced + 25
    agrees_with_deltalake(again, {})


# -- S3 ----------------------------------------------------------------------------------------


def plant_in_every_log(past: Warehouse, wipe: Callable[[], object]) -> None:
    """Wipe and create the warehouse again under a process, which then puts an entry into T, O, S and P."""
    topic = past.topic_log("t")
    producer = past.producer("zombie")
    producer.init_transactions()
    plain = past.producer(enable_idempotence=False)
    past.offsets.refresh()
    # Another process appends, and dies before it has projected.
    topic.segments.refresh()
    topic.public.refresh()
    wipe()
    calls: list[Callable[[], object]] = [
        lambda: transfer(producer, "zombie"),
        lambda: past.offsets.log.commit("SETTLE", lambda table: [*table.files][:1]),
        lambda: (plain.send("t", row={"account": "zombie", "amount": 1}), plain.flush()),
        lambda: topic.public.commit("PROJECT", lambda table: [*table.files][:1]),
    ]
    for call in calls:
        with pytest.raises(TxnTableError):
            call()


def test_warehouse_that_was_created_again_on_s3_is_not_harmed_by_processes_of_before(server: LockedMotoServer) -> None:
    options = dict(server.storage_options)
    url = "s3://replaced/again"
    past = Warehouse.create(url, storage_options=options)
    producer = filled(past, "etl", 4)
    new: list[Warehouse] = []

    def wipe() -> None:
        past.store.delete([meta.path for meta in past.store.list("")])
        new.append(Warehouse.create(url, storage_options=options))
        new[0].admin().create_topic("t", schema=TWO_COLUMNS)

    plant_in_every_log(past, wipe)
    assert refused(producer) == 0
    above = {
        root: [meta.path for meta in past.store.list(f"{root}/_delta_log")][-1]
        for root in (TRANSACTION_LOG_ROOT, "system/offset_log", segments_root("t"), public_root("t"))
    }
    assert all(int(path[-25:-5]) > 3 for path in above.values()), above

    filled(new[0], "new", 25)

    fresh = Warehouse.open(url, storage_options=options)
    assert accounts(fresh) == [f"new {number}" for number in range(25)]
    agrees_with_deltalake(fresh, options)
    for log in (fresh.transactions.log, fresh.offsets.log, fresh.topic_log("t").segments, fresh.topic_log("t").public):
        assert (log.refresh().version or 0) > int(above[log.root][-25:-5]), "it has been stepped over"


def test_what_a_process_of_before_knows_of_one_log_decides_nothing_in_another(server: LockedMotoServer) -> None:
    options = dict(server.storage_options)
    url = "s3://replaced/decided"
    Warehouse.create(url, storage_options=options).admin().create_topic("t", schema=TWO_COLUMNS)
    past = Warehouse.open(url, storage_options=options)
    past.transactions.log.refresh()
    past.store.delete([meta.path for meta in past.store.list("")])
    Warehouse.create(url, storage_options=options).admin().create_topic("t", schema=TWO_COLUMNS)
    before = [meta.path for meta in past.store.list(f"{segments_root('t')}/_delta_log")]

    plain = past.producer(enable_idempotence=False)
    plain.send("t", row={"account": "zombie", "amount": 1})
    with pytest.raises(WarehouseReplacedError):
        plain.flush()

    assert [meta.path for meta in past.store.list(f"{segments_root('t')}/_delta_log")] == before
