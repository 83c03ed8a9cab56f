"""Processes that work on one warehouse at the same time, and what must be true of it afterwards.

A *label* names one transaction (or one flush outside of any): ``<who>/<number>``.  Under each label the same records go
to every partition, so that a part of a transaction, or one twice, shows.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.pool import Pool
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.simulation.site import published
from txntable.errors import TxnTableError
from txntable.format.layout import public_root
from txntable.partition.batch import batch_of
from txntable.partition.markers import marker_of
from txntable.partition.offsets import next_offset
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

TOPIC, PARTITIONS, AMOUNTS = "shared", 2, range(2)
SAME_ID = "same"
ALREADY_COMMITTED = "BATCH_ALREADY_COMMITTED"
# So that a test fails instead of hanging when one of the processes has died.
_PATIENCE_S = 60.0

ReportT = TypeVar("ReportT")
# Of a process: where all wait for each other.  A barrier can only be inherited.
_gates: list[Barrier] = []


@dataclass
class Report:
    """What one process was told."""

    committed: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


# -- starting together ----------------------------------------------------------------------


def join(gate: Barrier) -> None:
    """Begin the life of a process of the pool."""
    _gates.append(gate)


def meet() -> None:
    """Wait until all processes are here."""
    _gates[-1].wait(_PATIENCE_S)


def together(pool: Pool, work: Callable[..., ReportT], jobs: Sequence[tuple[Any, ...]]) -> list[ReportT]:
    """Do each job in a process of its own, all beginning at once."""
    return pool.starmap(_meet_and_work, [(work, job) for job in jobs], chunksize=1)


def _meet_and_work(work: Callable[..., ReportT], job: tuple[Any, ...]) -> ReportT:
    meet()
    return work(*job)


# -- what the processes do ------------------------------------------------------------------


def open_warehouse(url: str) -> Warehouse:
    """Open the warehouse as every process here does."""
    return Warehouse.open(url, durability="page-cache")


def send_all(producer: Producer, label: str, *, flush: bool = False) -> None:
    """Send the records of a label; with `flush`, in two appends."""
    for amount in AMOUNTS:
        for partition in range(PARTITIONS):
            producer.send(TOPIC, row={"account": label, "amount": amount}, partition=partition)
        if flush:
            producer.flush()


def commit_transactions(producer: Producer, who: str, transactions: int) -> list[str]:
    """Commit so many transactions, one after the other; return their labels."""
    labels = []
    for number in range(transactions):
        label = f"{who}/{number:08d}"
        producer.begin_transaction()
        send_all(producer, label, flush=number % 2 == 1)
        producer.commit_transaction()
        labels.append(label)
    return labels


def produce_in_transactions(url: str, who: str, transactions: int) -> list[str]:
    """Commit transactions under an id of one's own."""
    producer = open_warehouse(url).producer(who)
    producer.init_transactions()
    return commit_transactions(producer, who, transactions)


def produce_plainly(url: str, who: str, flushes: int) -> list[str]:
    """Send outside of transactions; each flush is one append, hence visible whole."""
    labels = [f"{who}/{number:08d}" for number in range(flushes)]
    with open_warehouse(url).producer() as producer:
        for label in labels:
            send_all(producer, label)
            producer.flush()
    return labels


def attempt(warehouse: Warehouse, label: str, batch_id: str | None, report: Report) -> str | None:
    """Take the shared id over, and try one transaction; return what refused it first."""
    producer = warehouse.producer(SAME_ID)
    try:
        producer.init_transactions()
        producer.begin_transaction(batch_id)
        send_all(producer, label, flush=batch_id is None)
        producer.commit_transaction()
        report.committed.append(label)
        return None
    except TxnTableError as error:
        report.refusals.append(error.code)
        if error.txn_requires_abort:
            try:
                producer.abort_transaction()
            except TxnTableError as second:
                report.refusals.append(second.code)
        return error.code


def fence_each_other(url: str, who: str, rounds: int) -> Report:
    """Take the shared id over again and again, each time for one transaction."""
    warehouse, report = open_warehouse(url), Report()
    for number in range(rounds):
        attempt(warehouse, f"{who}/{number:08d}", None, report)
    return report


def run_same_batches(url: str, who: str, batches: int) -> Report:
    """Run the batches that all others run too, each at the same time, and each until somebody has committed it."""
    warehouse, report = open_warehouse(url), Report()
    for number in range(batches):
        meet()
        while attempt(warehouse, f"{who}/{number:08d}", f"run {number}", report) not in (None, ALREADY_COMMITTED):
            pass
    return report


def observe(url: str, rounds: int) -> list[int]:
    """Do :func:`observe_handle` in a process of its own."""
    return observe_handle(open_warehouse(url), rounds)


def observe_handle(warehouse: Warehouse, rounds: int) -> list[int]:
    """Read, complete, list and write checkpoints; return how many records each round saw."""
    seen = []
    admin, topic = warehouse.admin(), warehouse.topic_log(TOPIC)
    for number in range(rounds):
        snapshot = warehouse.snapshot()
        rows = public_rows(warehouse.url, snapshot.version(TOPIC))
        counts = Counter(row["account"] for row in rows if row["_commit"] <= snapshot.position)
        assert set(counts.values()) <= {len(AMOUNTS) * PARTITIONS}, f"a part of a transaction: {counts}"
        seen.append(counts.total())
        warehouse.complete()
        listed = admin.list_transactions()
        admin.describe_transactions([row.transactional_id for row in listed])
        admin.describe_topics([TOPIC])
        (warehouse.transactions.log, topic.segments, topic.public)[number % 3].write_checkpoint()
    return seen


def produce_until_killed(url: str, who: str, start: int, parent: Connection) -> None:
    """Commit transactions for ever; tell the parent what is appended, wait for its nod, and tell what is committed."""
    producer = open_warehouse(url).producer(who)
    producer.init_transactions()
    for number in itertools.count(start):
        label = f"{who}/{number:08d}"
        producer.begin_transaction()
        send_all(producer, label, flush=True)
        parent.send(("appended", label))
        parent.recv()
        producer.commit_transaction()
        parent.send(("committed", label))


# -- what must be true afterwards -----------------------------------------------------------


def public_rows(url: str, version: int | None = None) -> list[dict[str, Any]]:
    """The records of the public table, as deltalake reads it."""
    table = DeltaTable(f"{url}/{public_root(TOPIC)}", version=version)
    sql = "select *, _base_offset + _offset_delta as _offset from x order by _partition, _offset"
    rows: list[dict[str, Any]] = pa.table(QueryBuilder().register("x", table).execute(sql)).to_pylist()
    return rows


def check_records(warehouse: Warehouse, labels: Iterable[str]) -> None:
    """Exactly the records of `labels` are there, each once, and those of a producer in its order."""
    rows = public_rows(warehouse.url)
    names = ("_partition", "_offset", "account", "amount")
    assert [{name: row[name] for name in names} for row in rows] == published(warehouse, TOPIC), "both readers agree"
    wanted = [(label, partition, amount) for label in labels for partition in range(PARTITIONS) for amount in AMOUNTS]
    found = [(row["account"], row["_partition"], row["amount"]) for row in rows]
    assert sorted(found) == sorted(wanted)
    orders = defaultdict(list)
    for row in rows:
        orders[row["_partition"], row["account"].split("/")[0]].append((row["account"], row["amount"]))
    assert all(order == sorted(order) for order in orders.values()), "the order of each producer is kept"


def check_offsets(warehouse: Warehouse) -> None:
    """Every offset of a partition is a record's or a marker's, and no two have the same."""
    log = warehouse.topic_log(TOPIC).segments
    taken = defaultdict(list)
    for add in log.refresh().files:
        if add.partition_values["_control"] is None:
            batch = batch_of(add)
            taken[batch.partition].append((batch.base_offset, batch.last_offset))
        else:
            for partition, offset in marker_of(add.path, add.partition_values).offsets.items():
                taken[partition].append((offset, offset))
    settings = log.fold.settings
    assert settings is not None
    for partition, spans in taken.items():
        spans.sort()
        assert [first for first, _ in spans] == [0, *(last + 1 for _, last in spans[:-1])], partition
        assert spans[-1][1] + 1 == next_offset(log.table.numbers, settings.topic_id, partition)


def check_nothing_is_open(warehouse: Warehouse) -> None:
    """No transaction is under way, nothing is owed of what is decided, and no data waits for a marker."""
    warehouse.transactions.refresh()
    fold = warehouse.transactions.log.fold
    warehouse.completer.look_at(fold.decided())
    assert fold.incomplete() == []
    assert sorted(fold.under_way) == sorted(row.transactional_id for row in fold.unrecorded())
    log = warehouse.topic_log(TOPIC).segments
    log.refresh()
    assert log.fold.open == {}
