"""A warehouse with very many transactional ids: nothing may cost more than its share of them.

Each number of ids is measured in a process of its own.  What grows with the ids must, at most, grow as they do; what is
about one of them must not grow at all, once the log is open.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measurement import Figure, peak_memory_mib, ratio
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import Action
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.keyed_table import keyed_add
from txntable.log.table_state import TableState
from txntable.transactions.transaction_rows import id_columns
from txntable.warehouse.warehouse import Warehouse

FEW, MANY = 1_000, 100_000
_AT_ONCE = 5_000
_SOON_MS = 1_000


def measure(folder: Path) -> list[Figure]:
    """Return what the same costs with few and with many ids, and how much more that is for each id."""
    few, many = (_of_process(folder / str(ids), ids) for ids in (FEW, MANY))
    figures = []
    for name, value in many.items():
        unit = "MiB" if "MiB" in name else "s"
        figures.append(Figure(f"{name}, {FEW:,} ids", few[name], unit))
        figures.append(Figure(f"{name}, {MANY:,} ids", value, unit))
        figures.append(ratio(f"{name}: {MANY:,} ÷ {FEW:,}", value, few[name]))
    return figures


def _of_process(folder: Path, ids: int) -> dict[str, float]:
    folder.mkdir()
    asked = [sys.executable, "-m", "benchmarks.transactional_ids", str(folder), str(ids)]
    found: dict[str, float] = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    return found


def fill(warehouse: Warehouse, ids: int) -> None:
    """Give a warehouse so many ids that have nothing open."""
    log, now_ms = warehouse.transactions.log, warehouse.context.clock.now_ms()

    def rows(first: int) -> Callable[[TableState], list[Action]]:
        def decide(table: TableState) -> list[Action]:
            position = table.next_version
            return [
                keyed_add(
                    id_columns(TransactionMetadata(f"id-{n:09}", n, 0, 60_000, TransactionState.EMPTY, position)),
                    now_ms,
                )
                for n in range(first, min(first + _AT_ONCE, ids))
            ]

        return decide

    warehouse.transactions.allocate_producer_ids()
    for first in range(0, ids, _AT_ONCE):
        log.commit("INIT", rows(first))
    log.write_checkpoint()


def _main(folder: Path, ids: int) -> None:
    short = WarehouseSettings(transaction_max_timeout_ms=_SOON_MS, transactional_id_expiration_ms=_SOON_MS)
    url, expiring = str(folder / "warehouse"), str(folder / "expiring")
    made = Warehouse.create(url, durability="page-cache")
    made.admin().create_topic("t")
    fill(made, ids)
    gone = Warehouse.create(expiring, durability="page-cache", settings=short)
    fill(gone, ids)
    found = {"checkpoint, MiB": len(encode_checkpoint(made.transactions.log.table)) / 2**20}
    del made, gone
    for name, call in _calls(url, expiring):
        began = time.perf_counter()
        call()
        found[name] = time.perf_counter() - began
    found["peak memory, MiB"] = peak_memory_mib()
    sys.stdout.write(json.dumps(found))


def _calls(url: str, expiring: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is timed, by name; what each needs is made between the one before and itself."""
    opened: list[Warehouse] = [Warehouse.open(url, durability="page-cache")]
    yield "cold open", lambda: opened.append(Warehouse.open(url, durability="page-cache"))
    warehouse = opened[-1]
    producer = warehouse.producer("one-more")
    producer.init_transactions()

    def transact() -> None:
        with producer.transaction() as transaction:
            transaction.send("t", value=b"x")

    yield "first transaction after a cold open", transact
    yield "a transaction", transact
    admin = warehouse.admin()
    yield "list all ids", admin.list_transactions
    yield "describe one id", lambda: admin.describe_transactions(["id-000000500"])
    yield "check upkeep", admin.check_upkeep
    yield "a round of the job", warehouse.coordinator().run_once
    yield "the next round", warehouse.coordinator().run_once
    yield "write a checkpoint", warehouse.transactions.log.write_checkpoint
    job = Warehouse.open(expiring, durability="page-cache").coordinator()
    time.sleep(_SOON_MS / 1000)
    yield "a round that expires all", job.run_once


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
