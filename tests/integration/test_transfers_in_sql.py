"""Plain SQL over the tables of a warehouse: ``WHERE _commit <= D`` on any number of topics is a snapshot."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.transfers import TOPICS, TOTAL, open_accounts, started, transfer, turn_over
from txntable.format.layout import TRANSACTION_LOG_ROOT, public_root
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse, open_on

PROTOCOL = (Path(__file__).parent.parent.parent / "PROTOCOL.md").read_text()
(POSITION,) = re.findall(r"```sql\n(.*?)```", PROTOCOL, re.DOTALL)
NAIVE_POSITION = "SELECT max(_position) FROM transactions"
MONEY = "SELECT sum(amount) FROM (SELECT amount, _commit FROM checking UNION ALL SELECT amount, _commit FROM savings)"
SNAPSHOTS, TRANSFERS = 40, 25


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    open_accounts(made)
    # Its producer goes on with nothing: until it says COMPLETE, plain SQL counts its transaction as not there yet.
    made.complete()
    return made


def number(sql: str, tables: dict[str, DeltaTable]) -> int:
    query = QueryBuilder()
    for name, table in tables.items():
        query = query.register(name, table)
    rows: list[dict[str, Any]] = pa.table(query.execute(sql)).to_pylist()
    return int(next(iter(rows[0].values())))


def position_in(url: str, sql: str = POSITION) -> int:
    return number(sql, {"transactions": DeltaTable(f"{url}/{TRANSACTION_LOG_ROOT}")})


def newest_tables(url: str) -> dict[str, DeltaTable]:
    return {topic: DeltaTable(f"{url}/{public_root(topic)}") for topic in TOPICS}


def snapshots_in(url: str) -> Iterator[tuple[int, int]]:
    """Yield positions and sums; the position is read before the tables are opened."""
    for _ in range(SNAPSHOTS):
        position = position_in(url)
        yield position, number(f"{MONEY} WHERE _commit <= {position}", newest_tables(url))


def test_sum_never_changes_in_sql_snapshots_while_others_move_money(warehouse: Warehouse) -> None:
    def work(name: str) -> None:
        handle, chance = Warehouse.open(warehouse.url, durability="page-cache"), random.Random(name)
        producer = started(handle, name) if name.startswith("teller") else handle.producer()
        for _ in range(TRANSFERS):
            (transfer if name.startswith("teller") else turn_over)(producer, name, chance)

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(work, name) for name in ("teller 1", "teller 2", "plain")]
        seen = threads.submit(lambda: list(snapshots_in(warehouse.url))).result()
        for each in writing:
            each.result()

    assert {money for _, money in seen} == {TOTAL}
    positions = [position for position, _ in seen]
    assert positions == sorted(positions)
    assert len(positions) == SNAPSHOTS
    assert number(MONEY, newest_tables(warehouse.url)) == TOTAL, "at rest all is published"


def test_position_in_sql_follows_a_series_one_transaction_behind_and_comes_up_at_its_end(warehouse: Warehouse) -> None:
    producer = started(warehouse, "teller")
    for _ in range(3):
        transfer(producer, "teller", random.Random(0))
    (decided,) = warehouse.transactions.log.fold.decided()

    assert position_in(warehouse.url) == decided.position - 1
    producer.close()
    assert position_in(warehouse.url) == decided.position + 1, "that of COMPLETE"


def test_newest_tables_alone_show_money_made_or_lost_in_sql(warehouse: Warehouse) -> None:
    position = position_in(warehouse.url)
    checking = DeltaTable(f"{warehouse.url}/{public_root('checking')}")

    move_seven(warehouse)
    tables = newest_tables(warehouse.url) | {"checking": checking}

    assert number(MONEY, tables) == TOTAL + 7, "one table was opened before, the other after"
    assert number(f"{MONEY} WHERE _commit <= {position}", tables) == TOTAL


def test_position_in_sql_stays_below_what_is_decided_and_not_published(warehouse: Warehouse) -> None:
    store = SteppingStore(open_store(StoreSpec(warehouse.url, {}, "page-cache")))
    teller = open_on(store, SystemEnvironment())
    store.plan = (on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.KILL_BEFORE, occurrence=2),)

    with pytest.raises(ProcessKilled):
        move_seven(teller)  # one topic has what the decision carries for it, the other nothing

    tables = newest_tables(warehouse.url)
    assert abs(number(f"{MONEY} WHERE _commit <= {position_in(warehouse.url, NAIVE_POSITION)}", tables) - TOTAL) == 7
    assert number(f"{MONEY} WHERE _commit <= {position_in(warehouse.url)}", tables) == TOTAL
    warehouse.complete()
    assert number(f"{MONEY} WHERE _commit <= {position_in(warehouse.url)}", newest_tables(warehouse.url)) == TOTAL


def move_seven(warehouse: Warehouse) -> None:
    with started(warehouse, "teller").transaction() as txn:
        txn.send("checking", row={"account": "x", "amount": -7})
        txn.send("savings", row={"account": "x", "amount": 7})
