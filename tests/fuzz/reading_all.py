"""What must hold of a warehouse whatever was asked of it: it opens, all of it is read, and transactions go on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from txntable.format.isolation import IsolationLevel
from txntable.log.delta_log import DeltaLog
from txntable.warehouse.warehouse import Warehouse

PROOF = "proof"


def read_all(warehouse: Warehouse) -> None:
    """Fold every log of a warehouse that nobody has looked at in this process, and read every topic and group."""
    admin = warehouse.admin()
    warehouse.settings()
    admin.list_transactions()
    admin.check_upkeep()
    groups = [found.group_id for found in admin.list_consumer_groups()]
    admin.describe_consumer_groups(groups)
    for group in groups:
        admin.list_consumer_group_offsets(group)
    names = admin.list_topics()
    admin.describe_topics(names)
    for name in names:
        for level in IsolationLevel:
            warehouse.read_arrow(name, isolation_level=level).read_all()
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            view = warehouse.topic_reader(name).view(level)
            for partition in view.bounds:
                view.columns.max_timestamps_ms(view.columns.rows_between(partition, 0, 1 << 62))


def logs_of(warehouse: Warehouse) -> list[DeltaLog[Any]]:
    """Return a view of every log."""
    topics = [warehouse.topic_log(name) for name in warehouse.admin().list_topics()]
    return [
        warehouse.transactions.log,
        warehouse.offsets.log,
        *(log for topic in topics for log in (topic.segments, topic.public)),
    ]


def commit_one(warehouse: Warehouse, transactional_id: str = "prover") -> None:
    """Commit a transaction that writes to a topic and a group, and find its record."""
    warehouse.admin().create_topic(PROOF, schema=pa.schema([pa.field("n", pa.int64())]), exist_ok=True)
    before = warehouse.read_arrow(PROOF).read_all().num_rows
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.send(PROOF, row={"n": before})
        producer.send_offsets_to_transaction({}, "prover")
    producer.close()
    assert warehouse.read_arrow(PROOF).read_all()["n"].to_pylist()[-1] == before


def require_whole(open_warehouse: Callable[[], Warehouse], *, thoroughly: bool) -> None:
    """Require that a warehouse opens and goes on; thoroughly: from checkpoints too, and under its job."""
    read_all(open_warehouse())
    commit_one(open_warehouse())
    if not thoroughly:
        return
    for log in logs_of(open_warehouse()):
        log.write_checkpoint()
    read_all(open_warehouse())
    open_warehouse().coordinator().run_once()
    commit_one(open_warehouse())


if __name__ == "__main__":
    require_whole(partial(Warehouse.open, sys.argv[1], durability="page-cache"), thoroughly=True)
