"""The page of a report after 1,000 and after 100,000 transactions of a hundred ids, every tenth of them aborted.

The logs are synthetic, as real ones of that age are.  All entries of the transaction log are there, as within thirty
days.  *Maintained*: retention has left the segments and markers of the newest 2,000.  *Never maintained*: a segment and
a marker of each are live.  One transaction is real, and open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.measurement import Figure, ratio
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path, segments_root
from txntable.format.topic import TopicSettings
from txntable.log.actions import Action, Commit, CommitInfo, Txn, decode_commit
from txntable.log.entry_encoding import encode_commit
from txntable.log.keyed_table import keyed_add
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_add
from txntable.partition.markers import Control, Marker, marker_add
from txntable.partition.offsets import DECIDED_THROUGH, LOG_START, NEXT_OFFSET, per_partition, per_topic
from txntable.report.collector import Collector
from txntable.report.page import render_page
from txntable.report.warehouse_report import ReportLimits
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter
from txntable.transactions.transaction_rows import id_columns
from txntable.warehouse.warehouse import Warehouse

FEW, MANY, KEPT = 1_000, 100_000, 2_000
_TOPIC, _PARTITIONS, _IDS, _ABORTED = "orders", 8, 100, 10
_AT_ONCE = 10_000
_SECOND_MS = 1_000
_TIMEOUT_MS = 60_000
_READ = 200
"""The newest segments that have a file: a report reads no others."""


def measure(folder: Path) -> list[Figure]:
    """Return the seconds and the bytes of a page, and what they are after many ÷ after few."""
    few_s, few_bytes = _page(folder / "few", FEW, FEW)
    figures = [Figure(f"page after {FEW:,} transactions", few_s, "s", f"{few_bytes / 1e6:.2f} MB")]
    for name, kept in (("maintained", KEPT), ("never maintained", MANY)):
        many_s, many_bytes = _page(folder / name, MANY, kept)
        figures += [
            Figure(f"page after {MANY:,} transactions, {name}", many_s, "s", f"{many_bytes / 1e6:.2f} MB"),
            ratio(f"seconds after {MANY:,}, {name}, ÷ after {FEW:,}", many_s, few_s),
        ]
    return figures


def _page(folder: Path, transactions: int, kept: int) -> tuple[float, int]:
    make(str(folder), transactions, kept)
    began = time.perf_counter()
    page = render_page(Collector(Warehouse.open(str(folder)), ReportLimits()).collect())
    return time.perf_counter() - began, len(page.encode())


def make(url: str, transactions: int, kept: int) -> None:
    """Make a warehouse of that age.

    Parameters
    ----------
    url : str
        A folder.
    transactions : int
        How many.
    kept : int
        Of how many, the newest ones, segments and markers are live.
    """
    warehouse = Warehouse.create(url, durability="page-cache")
    settings = warehouse.admin().create_topic(_TOPIC, partitions=_PARTITIONS)
    warehouse.transactions.allocate_producer_ids()
    made = _Made(warehouse, settings)
    made.decide(transactions)
    made.append(range(transactions - kept, transactions))
    open_one = Warehouse.open(url, durability="page-cache").producer("open")
    open_one.init_transactions()
    open_one.begin_transaction()
    open_one.send(_TOPIC, value=b"open", partition=0)
    open_one.flush()


class _Made:
    """The logs of a warehouse in the making: transaction n is of the id n % 100, in the partition n % 8."""

    def __init__(self, warehouse: Warehouse, settings: TopicSettings) -> None:
        self._warehouse, self._topic_id = warehouse, settings.topic_id
        self._first = warehouse.transactions.log.refresh().next_version
        self._since_ms = warehouse.context.clock.now_ms()
        plan = SegmentPlan(segments_root(_TOPIC), settings, (1, 0), 1)
        writer = SegmentWriter(warehouse.store, plan, 0, "f" * 32, keyed=False)
        columns = {field.name: pa.array([b"x"], field.type) for field in list(settings.schema)[:2]}
        columns |= {field.name: pa.array([None], field.type) for field in list(settings.schema)[2:]}
        writer.write(pa.record_batch(columns))
        self._staged: StagedSegment = writer.close()

    def _outcome(self, number: int) -> Outcome:
        return Outcome.ABORT if number % _ABORTED == 0 else Outcome.COMMIT

    def decide(self, transactions: int) -> None:
        """Write an entry of T for each, a second apart, and a checkpoint."""
        log = self._warehouse.transactions.log
        for number in range(transactions):
            version, table = log.table.next_version, log.table
            outcome = self._outcome(number)
            row = TransactionMetadata(
                f"etl-{number % _IDS}",
                number % _IDS,
                number // _IDS + 1,
                _TIMEOUT_MS,
                TransactionState.PREPARE_COMMIT if outcome is Outcome.COMMIT else TransactionState.PREPARE_ABORT,
                version,
                {self._topic_id: EnrolledTopic(_TOPIC, frozenset({number % _PARTITIONS}))},
                started_position=version,
                decision=Decision(number // _IDS, outcome, version),
            )
            at_ms = max(table.timestamp_ms + 1, self._since_ms - (transactions - number) * _SECOND_MS)
            info = CommitInfo(f"{number:032x}", table.commit_id, at_ms, outcome.value, str(table.log), table.chain)
            data = encode_commit(Commit(version, info, (keyed_add(id_columns(row), at_ms),)), "txntable")
            path = commit_path(TRANSACTION_LOG_ROOT, version)
            (Path(self._warehouse.url) / path).write_bytes(data)
            log.table.apply(decode_commit(version, data, path))
        self._warehouse = Warehouse.open(self._warehouse.url, durability="page-cache")
        self._warehouse.transactions.log.write_checkpoint()

    def append(self, live: range) -> None:
        """Write a segment and a marker for each as a few large commits of S, project them, and write checkpoints."""
        topic = self._warehouse.topic_log(_TOPIC)
        root = Path(self._warehouse.url) / segments_root(_TOPIC)
        for number in live[-_READ:]:
            path = root / self._path(number)
            path.parent.mkdir(exist_ok=True)
            os.link(root / self._staged.path, path)
        for start in range(live.start, live.stop, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, live.stop))
            topic.segments.commit("FILL", partial(self._rows, numbers, live.start))
        topic.segments.write_checkpoint()
        topic.project()
        topic.public.write_checkpoint()

    def _path(self, number: int) -> str:
        owner = f"{number % _IDS}-{number // _IDS}"
        return f"p{number % _PARTITIONS:05d}/{self._topic_id}-{owner}-{number:032x}.parquet"

    def _rows(self, numbers: range, first: int, _: TableState) -> list[Action]:
        actions = [action for number in numbers for action in self._transaction(number)]
        for partition in range(_PARTITIONS):
            count, gone = ((each - partition - 1) // _PARTITIONS + 1 for each in (numbers.stop, first))
            actions.append(Txn(per_partition(NEXT_OFFSET, self._topic_id, partition), 2 * count))
            actions.append(Txn(per_partition(LOG_START, self._topic_id, partition), 2 * gone))
        return [*actions, Txn(per_topic(DECIDED_THROUGH, self._topic_id), self._first + numbers[-1])]

    def _transaction(self, number: int) -> Iterator[Action]:
        partition, base = number % _PARTITIONS, 2 * (number // _PARTITIONS)
        producer, at_ms = ProducerEpoch(number % _IDS, number // _IDS), self._since_ms + number
        digest = self._staged.digest
        batch = Batch(self._path(number), partition, base, base, 1, producer, True, 0, at_ms, at_ms, at_ms, digest)
        yield batch_add(batch, self._staged.size, self._staged.stats)
        control = Control.COMMIT if self._outcome(number) is Outcome.COMMIT else Control.ABORT
        position, offsets = self._first + number, {partition: base + 1}
        marker = Marker("", producer.producer_id, producer.epoch, control, position, at_ms, 0, offsets)
        yield marker_add(self._topic_id, marker, at_ms)
