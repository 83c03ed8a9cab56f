"""Names, hashes, keys, rows and statistics of the product, as plain JSON values in and out.

Must not know what any case expects.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tests.conformance.product import (
    CONSTANT_FILE,
    BatchRow,
    DamagedDataError,
    GroupRow,
    LeaseRow,
    MemoryObjects,
    MemoryStore,
    OffsetRow,
    PreparedToken,
    SegmentPlan,
    SegmentWriter,
    TopicSettings,
    TransactionMetadata,
    UnsupportedFormatError,
    check_file_path,
    from_delta_schema,
    key,
    layout,
    murmur2,
    offset_rows,
    row_json,
    segment_schema,
    transaction_rows,
)

REFUSED = (DamagedDataError, UnsupportedFormatError)
"""What a reader raises that refuses a log."""
TOPIC = "orders"
ROOTS = {
    "T": layout.TRANSACTION_LOG_ROOT,
    "O": layout.OFFSET_LOG_ROOT,
    "S": layout.segments_root(TOPIC),
    "P": layout.public_root(TOPIC),
}


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
    return roots[log](arguments["topic"]) if log in roots else ROOTS[log]


def file_name(path: str) -> Any:
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
    if pa.types.is_map(kind):
        return [tuple(pair) for pair in value]
    readers: Mapping[Callable[[pa.DataType], bool], Callable[[Any], Any]] = {
        pa.types.is_binary: bytes.fromhex,
        pa.types.is_decimal: Decimal,
        pa.types.is_date: dt.date.fromisoformat,
        pa.types.is_floating: float,
    }
    reader = next((reader for is_of, reader in readers.items() if is_of(kind)), None)
    return value if reader is None else reader(value)


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


def columns_of_row(log: str, kind: str, text: str) -> Any:
    """Return the columns that a row's JSON demands, ``_row`` as this product writes it; raises one of REFUSED."""
    if log == "O":
        row = GroupRow if kind == offset_rows.GROUP_KIND else OffsetRow
        return dict(offset_rows.columns_of(row.from_json(text)))
    readers: Mapping[str, Callable[[], Any]] = {
        "id": lambda: transaction_rows.id_columns(TransactionMetadata.from_json(text)),
        "batch": lambda: transaction_rows.batch_columns(BatchRow.from_json(text)),
        "lease": lambda: transaction_rows.lease_columns(LeaseRow.from_json(text)),
    }
    return dict(readers[kind]())


def statistics_of(schema: str, rows: Sequence[Mapping[str, Any]], timestamps_us: Sequence[int]) -> str:
    """Return ``add.stats`` of a segment with these rows."""
    return segment_of(schema, rows, timestamps_us)[0]


def segment_of(
    schema: str,
    rows: Sequence[Mapping[str, Any]],
    timestamps_us: Sequence[int],
    config: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, bytes]:
    """Return ``add.stats`` and the file of a segment with these rows, in a topic with these settings."""
    columns = from_delta_schema(schema)
    fields = [field for field in segment_schema(columns) if field.name != "_offset_delta"]
    given: dict[str, Sequence[Any]] = {name: [row.get(name) for row in rows] for name in columns.names}
    arrays = [_column(given.get(field.name, timestamps_us), field.type) for field in fields]
    settings = TopicSettings(TOPIC, "0" * 32, 1, columns, config=config)
    plan = SegmentPlan(ROOTS["S"], settings, None, 1_700_000_000_000)
    objects = MemoryObjects()
    writer = SegmentWriter(MemoryStore(objects), plan, 0, "0" * 32, keyed=False)
    writer.write(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
    stats = writer.close().stats
    (file,) = objects.snapshot().values()
    return stats, file.data
