"""Logs in memory, opened from cold by the product, and what they fold to, as plain JSON values.

Must not know what any case expects.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.parquet as pq

from tests.conformance.naming import REFUSED, ROOTS, TOPIC
from tests.conformance.product import (
    LogContext,
    LogView,
    ManualEnvironment,
    MemoryObjects,
    MemoryStore,
    OffsetLogFold,
    PartitionLogs,
    PublicTable,
    StoreClock,
    TableState,
    TopicView,
    TransactionLogFold,
    actions,
    encode_checkpoint,
    encode_commit,
    project,
    public_view,
    segment_columns,
    transaction_rows,
    uncommitted_view,
)

_FOLDS: Mapping[str, Callable[[], Any]] = {
    "T": TransactionLogFold,
    "O": OffsetLogFold,
    "S": lambda: PartitionLogs(TOPIC),
    "P": lambda: PublicTable(TOPIC),
}


class Log:
    """One log of a warehouse on a store in memory, opened from cold.

    Parameters
    ----------
    kind : str
        ``T``, ``O``, ``S`` or ``P``.
    objects : Mapping of str to bytes
        By name, relative to the log's folder.
    """

    def __init__(self, kind: str, objects: Mapping[str, bytes]) -> None:
        environment = ManualEnvironment()
        stored = MemoryObjects()
        self.root = ROOTS[kind]
        for name, data in objects.items():
            stored.put(f"{self.root}/_delta_log/{name}", data)
        store = MemoryStore(stored)
        context = LogContext(store, environment, StoreClock(store, environment))
        self.view: LogView[Any] = LogView(context, self.root, _FOLDS[kind]())
        self.kind = kind

    def open(self) -> Any:
        """Read the log from cold and return its state; raises one of REFUSED."""
        self.view.refresh()
        return {**table_state(self.view.table), **self._meaning()}

    def accepts(self) -> bool:
        """Return whether the log can be read, and every row of it."""
        try:
            self.open()
        except REFUSED:
            return False
        return True

    def _meaning(self) -> dict[str, Any]:
        meanings: Mapping[str, Callable[[], dict[str, Any]]] = {
            "T": lambda: transactions(self.view.table, self.view.fold),
            "O": lambda: groups_and_offsets(self.view.fold),
            "S": lambda: partitions(self.view.table, self.view.fold),
            "P": dict,
        }
        return meanings[self.kind]()


def table_state(table: TableState) -> dict[str, Any]:
    """Return what any table's log says."""
    return {
        "version": table.version,
        "commit_id": table.commit_id,
        "log": table.log,
        "in_commit_timestamp": table.timestamp_ms,
        "next_chain": table.chain,
        "stepped_over": [commit.version for commit in table.void],
        "numbers": dict(table.numbers),
        "files": sorted(table.files.paths()),
        "tombstones": {path: gone.deletion_ms for path, gone in sorted(table.tombstones.items())},
    }


def transactions(table: TableState, fold: TransactionLogFold) -> dict[str, Any]:
    """Return what T says of its rows, each of which is looked at."""
    for add in table.files:
        transaction_rows.check_row(add)
    return {
        "rows": {
            f"{add.partition_values['_kind']} {add.partition_values['_key']}": json.loads(
                add.partition_values["_row"] or ""
            )
            for add in table.files
        },
        "open": sorted(name for name, row in fold.under_way.items() if row.state.is_open),
        "decided_and_not_complete": [[row.transactional_id, row.position] for row in fold.decided()],
    }


def groups_and_offsets(fold: OffsetLogFold) -> dict[str, Any]:
    """Return what O says of groups and offsets."""
    return {
        "groups": {name: json.loads(row.to_json()) for name, row in sorted(fold.groups.items())},
        "offsets": {row.key: json.loads(row.to_json()) for rows in fold.offsets.values() for row in rows.values()},
        "pending": sorted(fold.pending),
    }


def partitions(table: TableState, logs: PartitionLogs) -> dict[str, Any]:
    """Return what S says of producers, transactions and visibility."""
    return {
        "producers": [
            {
                "partition": partition,
                "id": producer_id,
                "epoch": one.epoch,
                "coordinator_epoch": one.coordinator_epoch,
                "last_timestamp": one.last_timestamp_ms,
                "last_offset": one.last_offset,
                "batches": [
                    [b.first_sequence, b.last_sequence, b.base_offset, b.last_offset, b.name] for b in one.batches
                ],
            }
            for (partition, producer_id), one in sorted(logs.producers.items())
        ],
        "open_transactions": [
            {"producer": list(owner), "first_offsets": {str(p): o for p, o in sorted(one.first_offsets.items())}}
            for owner, one in sorted(logs.open.items())
        ],
        "markers": [
            {"producer": list(owner), "control": one.control.value, "position": one.position}
            for owner, one in sorted(logs.markers.items())
        ],
        "cleaned": {str(p): [[c.through, c.at_ms] for c in all_] for p, all_ in sorted(logs.cleanings.items())},
        "partitions": _bounds_and_ranges(table, logs),
    }


def _bounds_and_ranges(table: TableState, logs: PartitionLogs) -> Any:
    settings = logs.settings
    if settings is None or settings.deleted:
        return {}
    public = projected(table, logs)
    columns = segment_columns(table.files.to_table(), public=False)
    everything = uncommitted_view(settings, table, columns, logs.unstable.firsts())
    committed = public_view(settings, public, segment_columns(public.files.to_table(), public=True), None)
    return {
        str(partition): {
            "log_start": bounds.start,
            "last_stable_offset": bounds.last_stable_offset,
            "high_watermark": bounds.high_watermark,
            "read_uncommitted": _ranges(everything, partition),
            "read_committed": _ranges(committed, partition),
        }
        for partition, bounds in everything.bounds.items()
    }


def _ranges(view: TopicView, partition: int) -> list[Any]:
    """Return first and last offset of what a view shows of each segment, and ``_commit`` where the table has it."""
    found = []
    for segment in view.plan():
        if segment.partition == partition:
            last = min(segment.last_offset, segment.end - 1)
            place = [max(segment.base_offset, segment.start), last]
            found.append(place if segment.commit is None else [*place, segment.commit])
    return found


def projected(table: TableState, logs: PartitionLogs, public: TableState | None = None) -> TableState:
    """Return P's state after the projection of S's."""
    found = TableState() if public is None else public
    said = project(logs, table, found, 0)
    if said:
        info = actions.CommitInfo("f" * 32, found.commit_id, 1, "PROJECT", log="f" * 32, chain=found.chain)
        found.apply(actions.Commit(found.next_version, info, tuple(said)))
    return found


def projection_of(segments: Log, public: Log | None, now_ms: int) -> list[Any]:
    """Return the actions that make P reflect S, as the lines of an entry say them."""
    segments.view.refresh()
    state = TableState()
    if public is not None:
        state = public.view.refresh()
    said = project(segments.view.fold, segments.view.table, state, now_ms)
    info = actions.CommitInfo("f" * 32, None, 1, "PROJECT", log="f" * 32)
    lines = encode_commit(actions.Commit(0, info, tuple(said)), "any").decode().splitlines()
    return [json.loads(line) for line in lines[1:]]


def checkpoint_rows(log: Log) -> tuple[list[Any], str | None]:
    """Return the rows of the checkpoint of a log's head, without what is null, and its ``txntable.entry``."""
    log.view.refresh()
    table = pq.read_table(io.BytesIO(encode_checkpoint(log.view.table)))
    rows = table.to_pylist(maps_as_pydicts="strict")
    found = [_without_nulls({name: value for name, value in row.items() if value is not None}) for row in rows]
    entry = (table.schema.metadata or {}).get(b"txntable.entry")
    return found, None if entry is None else entry.decode()


def _without_nulls(row: Any) -> Any:
    """Leave out the fields of an action that are null; in its maps a null is a value."""
    return {kind: {name: value for name, value in body.items() if value is not None} for kind, body in row.items()}


def checkpoint_of(log: Log) -> bytes:
    """Return the bytes of the checkpoint of a log's head."""
    log.view.refresh()
    return encode_checkpoint(log.view.table)
