"""The product as the conformance vectors see it: plain JSON values in, plain JSON values out.

Owns every import of the product below ``tests/conformance``: where a module moves, this file follows and no other.
Must not know what any case expects.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator import row_json
from coordinator.errors import TxnTableError
from coordinator.group_fencing import check_member
from coordinator.group_offsets import OffsetRow
from coordinator.group_request import GroupMetadata
from coordinator.prepared_token import PreparedToken
from txntable import key, layout, offset_rows, transaction_rows
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.log import actions
from txntable.log.action_fields import check_file_path
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.constant_file import CONSTANT_FILE
from txntable.log.entry_encoding import encode_commit
from txntable.log.log_view import LogContext, LogView
from txntable.log.table_state import TableState
from txntable.murmur2 import murmur2
from txntable.offset_log import OffsetLogFold
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable, project
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.partition.segment_columns import segment_columns
from txntable.schema import from_delta_schema, segment_schema
from txntable.segment import SegmentPlan, SegmentWriter
from txntable.storage.store_clock import StoreClock
from txntable.testing.manual_environment import ManualEnvironment
from txntable.testing.memory_store import MemoryObjects, MemoryStore
from txntable.topic import TopicSettings
from txntable.transaction_log import TransactionLogFold

Json = Any
REFUSED = (DamagedDataError, UnsupportedFormatError)
"""What a reader raises that refuses a log."""
TOPIC = "orders"
_ROOTS = {
    "T": layout.TRANSACTION_LOG_ROOT,
    "O": layout.OFFSET_LOG_ROOT,
    "S": layout.segments_root(TOPIC),
    "P": layout.public_root(TOPIC),
}
_FOLDS: Mapping[str, Callable[[], Any]] = {
    "T": TransactionLogFold,
    "O": OffsetLogFold,
    "S": lambda: PartitionLogs(TOPIC),
    "P": lambda: PublicTable(TOPIC),
}


# -- names and hashes -------------------------------------------------------------------------------


def row_key(parts: Sequence[str]) -> str:
    """Return the ``_key`` of a row of a keyed table."""
    return row_json.encode_key(*parts)


def path_of(kind: str, arguments: Mapping[str, Any]) -> str:
    """Return a path of the warehouse by its kind and what it is made of."""
    producer = arguments.get("producer")
    makers: Mapping[str, Callable[[], str]] = {
        "row": lambda: layout.key_path(arguments["kind"], row_key(arguments["key"])),
        "heartbeat": lambda: layout.heartbeat_path(arguments["group"], arguments["member_id"]),
        "segment": lambda: layout.segment_path(
            arguments["topic_id"],
            arguments["partition"],
            None if producer is None else tuple(producer),
            arguments["unique"],
        ),
        "marker": lambda: layout.marker_path(arguments["topic_id"], arguments["producer_id"], arguments["epoch"]),
        "state": lambda: layout.state_path(arguments["partition"]),
        "entry": lambda: layout.commit_path(_root(arguments), arguments["version"]),
        "checkpoint": lambda: layout.checkpoint_path(_root(arguments), arguments["version"]),
        "hint": lambda: layout.last_checkpoint_path(_root(arguments)),
    }
    return makers[kind]()


def _root(arguments: Mapping[str, Any]) -> str:
    roots = {"S": layout.segments_root, "P": layout.public_root}
    log = arguments["log"]
    return roots[log](arguments["topic"]) if log in roots else _ROOTS[log]


def file_name(path: str) -> Json:
    """Return what the path of a file below S's root says; ``None``: it is none of the format's."""
    found = layout.parse_file_name(path)
    return None if found is None else {"kind": found.kind.value, "producer": found.producer and list(found.producer)}


def is_file_path(path: str) -> bool:
    """Return whether an entry may name a file so."""
    try:
        check_file_path(path)
    except REFUSED:
        return False
    return True


def token(transactional_id: str, producer_id: int, epoch: int, unique: str) -> str:
    """Return the token of a prepared transaction."""
    return str(PreparedToken.new(transactional_id, producer_id, epoch, unique))


def constant_file() -> bytes:
    """Return the bytes of the constant file."""
    return CONSTANT_FILE


# -- keys of records --------------------------------------------------------------------------------


def key_of(types: Sequence[str], values: Sequence[Any]) -> bytes | None:
    """Return the key bytes of a record; types are those of a Delta schema, values as :func:`_column` reads them."""
    columns = [_column([value], _type_of(name)) for name, value in zip(types, values, strict=True)]
    return key.key_bytes([column[0].as_py() for column in columns], [column.type for column in columns])


def hash_of(data: bytes) -> int:
    """Return the murmur2 of bytes."""
    return murmur2(data)


def partition_of(data: bytes, partitions: int) -> int:
    """Return the partition of key bytes."""
    return key.partition_of(data, partitions)


def batch_partitions(types: Sequence[str], values: Sequence[Any], partitions: int) -> int | None:
    """Return the partition of a record as the writers of whole batches compute it."""
    columns = [_column([value], _type_of(name)) for name, value in zip(types, values, strict=True)]
    names = [f"c{index}" for index in range(len(columns))]
    found: int | None = key.partitions_of(pa.RecordBatch.from_arrays(columns, names), names, partitions)[0].as_py()
    return found


def _type_of(name: Any) -> pa.DataType:
    field = {"name": "c", "type": name, "nullable": True, "metadata": {}}
    return from_delta_schema(json.dumps({"type": "struct", "fields": [field]})).field(0).type


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return what vectors write as JSON: bytes in hex, timestamps in µs, dates and decimals as texts."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date(kind) and any(isinstance(value, int) for value in values):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array([_value(value, kind) for value in values], kind)


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _value(value[field.name], field.type) for field in kind.fields}
    readers: Mapping[Callable[[pa.DataType], bool], Callable[[Any], Any]] = {
        pa.types.is_binary: bytes.fromhex,
        pa.types.is_decimal: Decimal,
        pa.types.is_date: dt.date.fromisoformat,
        pa.types.is_floating: float,
    }
    reader = next((reader for is_of, reader in readers.items() if is_of(kind)), None)
    return value if reader is None else reader(value)


# -- stored JSON and rows ---------------------------------------------------------------------------


def is_stored_json(text: str) -> bool:
    """Return whether readers accept a document."""
    try:
        row_json.parse_json(text)
    except ValueError:
        return False
    return True


def row_path(columns: Mapping[str, str | None]) -> str:
    """Return the path of a row by its columns."""
    return layout.key_path(columns["_kind"] or "", columns["_key"] or "")


def columns_of_row(log: str, kind: str, text: str) -> Json:
    """Return the columns that a row's JSON demands, ``_row`` as this product writes it; raises one of REFUSED."""
    if log == "O":
        row = offset_rows.GroupRow if kind == offset_rows.GROUP_KIND else OffsetRow
        return dict(offset_rows.columns_of(row.from_json(text)))
    readers: Mapping[str, Callable[[], Any]] = {
        "id": lambda: transaction_rows.id_columns(transaction_rows.TransactionMetadata.from_json(text)),
        "batch": lambda: transaction_rows.batch_columns(transaction_rows.BatchRow.from_json(text)),
        "lease": lambda: transaction_rows.lease_columns(transaction_rows.LeaseRow.from_json(text)),
    }
    return dict(readers[kind]())


# -- logs -------------------------------------------------------------------------------------------


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
        self.root = _ROOTS[kind]
        for name, data in objects.items():
            stored.put(f"{self.root}/_delta_log/{name}", data)
        store = MemoryStore(stored)
        context = LogContext(store, environment, StoreClock(store, environment))
        self.view: LogView[Any] = LogView(context, self.root, _FOLDS[kind]())
        self.kind = kind

    def open(self) -> Json:
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

    def _meaning(self) -> dict[str, Json]:
        meanings: Mapping[str, Callable[[], dict[str, Json]]] = {
            "T": lambda: transactions(self.view.table, self.view.fold),
            "O": lambda: groups_and_offsets(self.view.fold),
            "S": lambda: partitions(self.view.table, self.view.fold),
            "P": dict,
        }
        return meanings[self.kind]()


def table_state(table: TableState) -> dict[str, Json]:
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


def transactions(table: TableState, fold: TransactionLogFold) -> dict[str, Json]:
    """Return what T says of its rows."""
    return {
        "rows": {add.partition_values["_key"]: json.loads(add.partition_values["_row"] or "") for add in table.files},
        "open": sorted(name for name, row in fold.under_way.items() if row.state.is_open),
        "decided_and_not_complete": [[row.transactional_id, row.position] for row in fold.decided()],
    }


def groups_and_offsets(fold: OffsetLogFold) -> dict[str, Json]:
    """Return what O says of groups and offsets."""
    return {
        "groups": {name: json.loads(row.to_json()) for name, row in sorted(fold.groups.items())},
        "offsets": {row.key: json.loads(row.to_json()) for rows in fold.offsets.values() for row in rows.values()},
        "pending": sorted(fold.pending),
    }


def partitions(table: TableState, logs: PartitionLogs) -> dict[str, Json]:
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


def _bounds_and_ranges(table: TableState, logs: PartitionLogs) -> Json:
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


def _ranges(view: TopicView, partition: int) -> list[Json]:
    """Return [first, last] offsets of what a view shows of each segment, with its ``_commit`` where the table has one."""
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


def projection_of(segments: Log, public: Log | None, now_ms: int) -> list[Json]:
    """Return the actions that make P reflect S, as the lines of an entry say them."""
    segments.view.refresh()
    state = TableState()
    if public is not None:
        state = public.view.refresh()
    said = project(segments.view.fold, segments.view.table, state, now_ms)
    info = actions.CommitInfo("f" * 32, None, 1, "PROJECT", log="f" * 32)
    lines = encode_commit(actions.Commit(0, info, tuple(said)), "any").decode().splitlines()
    return [json.loads(line) for line in lines[1:]]


def checkpoint_rows(log: Log) -> tuple[list[Json], str | None]:
    """Return the rows of the checkpoint of a log's head, without what is null, and its ``txntable.entry``."""
    log.view.refresh()
    table = pq.read_table(io.BytesIO(encode_checkpoint(log.view.table)))
    rows = table.to_pylist(maps_as_pydicts="strict")
    found = [_without_nulls({name: value for name, value in row.items() if value is not None}) for row in rows]
    entry = (table.schema.metadata or {}).get(b"txntable.entry")
    return found, None if entry is None else entry.decode()


def _without_nulls(row: Json) -> Json:
    """Leave out the fields of an action that are null; in its maps a null is a value."""
    return {kind: {name: value for name, value in body.items() if value is not None} for kind, body in row.items()}


def checkpoint_of(log: Log) -> bytes:
    """Return the bytes of the checkpoint of a log's head."""
    log.view.refresh()
    return encode_checkpoint(log.view.table)


# -- segments ---------------------------------------------------------------------------------------


def statistics_of(schema: str, rows: Sequence[Mapping[str, Any]], timestamps_us: Sequence[int]) -> str:
    """Return ``add.stats`` of a segment with these rows."""
    columns = from_delta_schema(schema)
    fields = [field for field in segment_schema(columns) if field.name != "_offset_delta"]
    given: dict[str, Sequence[Any]] = {name: [row.get(name) for row in rows] for name in columns.names}
    arrays = [_column(given.get(field.name, timestamps_us), field.type) for field in fields]
    settings = TopicSettings(TOPIC, "0" * 32, 1, columns)
    plan = SegmentPlan(_ROOTS["S"], settings, None, 1_700_000_000_000)
    writer = SegmentWriter(MemoryStore(MemoryObjects()), plan, 0, "0" * 32, keyed=False)
    writer.write(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
    return writer.close().stats


# -- groups -----------------------------------------------------------------------------------------


def refusal_of_commit(
    row: str | None, metadata: Mapping[str, Any] | None, partitions: Sequence[tuple[str, int]], transactional: bool
) -> str | None:
    """Return the error that refuses a commit of offsets, by its name in Kafka; ``None``: it is accepted."""
    group = None if row is None else offset_rows.GroupRow.from_json(row)
    frozen = None
    if metadata is not None:
        said = metadata["ownership"]
        ownership = None if said is None else {(topic, partition): epoch for topic, partition, epoch in said}
        frozen = GroupMetadata(
            "readers", metadata["member_id"], metadata["generation"], metadata["instance_id"], ownership
        )
    try:
        check_member(group, frozen, [(topic, number) for topic, number in partitions], transactional=transactional)
    except TxnTableError as error:
        return error.code
    return None
