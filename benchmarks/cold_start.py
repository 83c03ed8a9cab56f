"""Opening a topic of 100,000 segments: our cold start, and one more append and projection there.

The log is synthetic (no data files), in one checkpoint; deltalake opening the same log is the peer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.measurement import Figure, peak_memory_mib, ratio
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import Batch, ProducerEpoch, batch_add
from txntable.partition.markers import Control, Marker, marker_add
from txntable.partition.offsets import NEXT_OFFSET, per_partition
from txntable.segments.segment import StagedSegment
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

SEGMENTS = 100_000
PER_TRANSACTION = 50
PARTITIONS = 100


def measure(folder: Path) -> list[Figure]:
    """Return seconds to open the logs and to work on them."""
    warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
    schema = pa.schema([pa.field("x", pa.int64())])
    topic_id = warehouse.admin().create_topic("big", partitions=PARTITIONS, schema=schema).topic_id
    fill(warehouse.topic_log("big"), topic_id, SyntheticFile())

    fresh = TopicLog(warehouse.context, "big")
    segments_s = _timed(fresh.segments.refresh)
    public_s = _timed(fresh.public.refresh)
    append_s = _timed(lambda: _append_one(fresh, topic_id))
    project_s = _timed(fresh.project)
    full_s = _timed(TopicLog(warehouse.context, "big").catch_up)
    theirs_s = _timed(lambda: DeltaTable(str(folder / "wh/topics/big")).file_uris())
    return [
        Figure("partition logs, cold open", segments_s, "s", f"{SEGMENTS:,} segments"),
        Figure("public table, cold open", public_s, "s"),
        Figure("append of one segment, warm", append_s, "s", "the first look-up by path builds an index"),
        Figure("projection of one segment, warm", project_s, "s"),
        Figure("both opened, nothing to project", full_s, "s"),
        Figure("deltalake, open and list the public table", theirs_s, "s"),
        ratio("our open of both logs ÷ deltalake's of one", segments_s + public_s, theirs_s),
        Figure("peak memory of this process", peak_memory_mib(), "MiB"),
    ]


@dataclass(frozen=True, slots=True)
class SyntheticFile:
    """What the log says of every segment: 10 records.

    Attributes
    ----------
    size : int
        Bytes.
    stats : str
        Delta's statistics.
    """

    size: int = 1000
    stats: str = '{"numRecords":10}'
    digest: str = f"sha256:{0:064x}"


def fill(topic: TopicLog, topic_id: str, file: SyntheticFile, segments: int = SEGMENTS) -> None:
    """Write committed segments, a multiple of 100, as a few large commits, and a checkpoint."""
    step = max(PARTITIONS, min(segments, SEGMENTS) // 10)
    for start in range(0, segments, step):
        topic.segments.commit("FILL", partial(_rows, topic_id, range(start, start + step), file))
        topic.project()
    topic.segments.write_checkpoint()
    topic.public.write_checkpoint()


def segment_name(topic_id: str, number: int) -> str:
    """Return the path of a synthetic segment, relative to the partition logs."""
    return f"p{number % PARTITIONS:05d}/{topic_id}-1-{number // PER_TRANSACTION}-{number:032x}.parquet"


def _rows(topic_id: str, numbers: range, file: SyntheticFile, table: TableState) -> list[Action]:
    actions: list[Action] = []
    for number in numbers:
        partition, producer = number % PARTITIONS, ProducerEpoch(1, number // PER_TRANSACTION)
        base = (number // PARTITIONS) * 10
        batch = Batch(
            segment_name(topic_id, number),
            partition,
            base,
            base + 9,
            10,
            producer,
            True,
            0,
            1,
            2,
            4,
            file.digest,
            None,
            3,
        )
        actions.append(batch_add(batch, file.size, file.stats))
        if number % PER_TRANSACTION == PER_TRANSACTION - 1:
            marker = Marker("", 1, producer.epoch, Control.COMMIT, producer.epoch + 1, 5, 0, {})
            actions.append(marker_add(topic_id, marker, 5))
    last = (numbers[-1] // PARTITIONS + 1) * 10
    actions.extend(Txn(per_partition(NEXT_OFFSET, topic_id, partition), last) for partition in range(PARTITIONS))
    return actions


def _append_one(topic: TopicLog, topic_id: str) -> None:
    staged = StagedSegment("p00000/new.parquet", 0, 1, 100, '{"numRecords":1}', 1, 2, None, 3, f"sha256:{0:064x}")
    request = AppendRequest(topic_id, None, False, (SequencedSegment(staged, None),))
    topic.segments.commit("APPEND", lambda table: decide_append(topic.segments.fold, table, request, 5).actions)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
