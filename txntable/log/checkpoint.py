"""Checkpoints: a table's whole state in one Parquet object (PROTOCOL.md §4.4).

Classic Delta checkpoints, written and read with pyarrow, so that every Delta reader starts from
them.  Bytes in, state out, and no other effect but the note that Arrow's threads had a large one, and that memory is
given back when asked; when one is due is decided here, for who commits and for the job.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.coordinator.row_json import LARGEST_NUMBER, parse_json
from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.format.parquet_bounds import check_whole, chunks_of
from txntable.log.action_fields import check_file_columns, check_file_paths
from txntable.log.actions import (
    Metadata,
    Protocol,
    Remove,
    check_protocol,
    decode_metadata,
    decode_protocol,
    decode_remove,
    decode_txn,
)
from txntable.log.damage import reading
from txntable.log.table_state import ADD_SCHEMA, ADD_TYPE, NO_FILES, LiveFiles, TableState
from txntable.runtime.background_thread import lend_to_arrow
from txntable.storage.object_store import LARGEST_WHOLE_BYTES

SMALLEST_INTERVAL = 100
# Of live files, for each version between two checkpoints: at least this, less than twice of it.
_ROWS_A_VERSION = 50
# What the job leaves to whoever opens the log: a request for each entry, JSON to parse, rows to skip.
_LONGEST_TAIL = 10
_LARGEST_TAIL_BYTES = 65_536
_MOST_EXPIRED = 100
# What a footer may claim before anything is decoded.
LARGEST_ROWS = 10_000_000
_LARGEST_HINT_BYTES = 4096
LARGEST_BYTES = 8 * 1024 * 1024 * 1024
# Beside what a small one may decode to: each row has a name that does not compress.
_SMALLEST_BOUND, _LARGEST_RATIO = 64 * 1024 * 1024, 1024
# The only texts that repeat; a reader could not tell a dictionary of long ones from a bomb.
_DICTIONARIES = ["add.partitionValues.key_value.key", "remove.partitionValues.key_value.key"]
_SMALL_BYTES = 1024 * 1024
# What is written and read at a time: memory beside the state.
_ROWS_A_GROUP = 16_384
# In the file's own metadata: the digest of its version's entry.  One of another log that stood here does not count.
_ENTRY = "txntable.entry"
_STRING_MAP = pa.map_(pa.string(), pa.string())
_REMOVE_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
    ]
)
_TXN_TYPE = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRING_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _STRING_MAP),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL_TYPE = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
_SCHEMA = pa.schema(
    [
        ("protocol", _PROTOCOL_TYPE),
        ("metaData", _METADATA_TYPE),
        ("txn", _TXN_TYPE),
        ("add", ADD_TYPE),
        ("remove", _REMOVE_TYPE),
    ]
)
# Readers then begin further down, and the next commit or the coordinator job writes another.
_REMEDY = (
    "delete it, and `_last_checkpoint` beside it if it names this version, where the entries below it are still there,"
    " or restore it from a backup"
)


def interval(live_files: int) -> int:
    """Return of how many versions one gets a checkpoint from whoever commits it: 100, 200, 400 and so on.

    It doubles and does nothing else: were it to grow with each file, a table that gains one in each version would
    meet a multiple of it again and again.
    """
    doublings = max(live_files // (_ROWS_A_VERSION * SMALLEST_INTERVAL), 1).bit_length() - 1
    return SMALLEST_INTERVAL << doublings


def is_due(version: int, live_files: int) -> bool:
    """Return whether whoever committed `version` writes a checkpoint of it.

    Every k-th version, k the largest of 100, 200, 400, … that is at most live files / 50: reading one costs a
    constant share of what writing the versions in between has cost.
    """
    return version > 0 and version % interval(live_files) == 0


@dataclass(frozen=True, slots=True)
class LogTail:
    """What stands above a log's newest checkpoint: whoever opens the log reads it entry by entry.

    Attributes
    ----------
    checkpoint : int or None
        The newest one's version; ``None``: there is none.
    checkpoint_size : int
        Its bytes.
    entries, size : int
        Above it: how many, and their bytes.
    """

    checkpoint: int | None = None
    checkpoint_size: int = 0
    entries: int = 0
    size: int = 0


def is_worthwhile(tail: LogTail, state: TableState, since_ms: int) -> bool:
    """Return whether a checkpoint would spare whoever opens the log next more than it costs (PROTOCOL.md §4.2 rule 7).

    Parameters
    ----------
    tail : LogTail
        As a LIST showed it.
    state : TableState
        Of the log, not older.
    since_ms : int
        Tombstones from before (ms since 1970) do not go into a new checkpoint.
    """
    if tail.checkpoint is not None and (state.version or 0) <= tail.checkpoint:
        return False
    if tail.entries > _LONGEST_TAIL or tail.size > max(_LARGEST_TAIL_BYTES, tail.checkpoint_size):
        return True
    expired = sum(gone.deletion_ms < since_ms for gone in state.tombstones.values())
    kept = len(state.files) + len(state.tombstones) - expired
    return expired > max(_MOST_EXPIRED, kept)


def release_memory() -> None:
    """Give back what writing a checkpoint took: a few times the table, once in a hundred commits.

    Arrow's allocator would keep it for the next one, which is larger.
    """
    pa.default_memory_pool().release_unused()


def encode_checkpoint(state: TableState) -> bytes:
    """Return the Parquet bytes of the state's checkpoint.

    Parameters
    ----------
    state : TableState
        At a version, with protocol and metadata.

    Raises
    ------
    InvalidRequestError
        It has more rows than a reader takes: the log goes on without this checkpoint.
    """
    if state.protocol is None or state.metadata is None:
        raise DamagedDataError("a table without protocol or metadata has no checkpoint", version=state.version)
    rows = 2 + len(state.numbers) + len(state.files) + len(state.tombstones)
    if rows > LARGEST_ROWS:
        # Written, it would be refused by everyone who opens the log; without it they read the entries.
        raise InvalidRequestError("the table is too large for a checkpoint; compact it", rows=rows, most=LARGEST_ROWS)
    few = [
        _column("protocol", [_protocol_row(state.protocol)]),
        _column("metaData", [_metadata_row(state.metadata)]),
        _column("txn", [{"appId": name, "version": number} for name, number in sorted(state.numbers.items())]),
        _column("remove", [_remove_row(tombstone) for tombstone in state.tombstones.values()]),
    ]
    sink, schema = io.BytesIO(), _SCHEMA.with_metadata({_ENTRY: state.chain or ""})
    # Nobody looks a row up by its bounds: statistics would be an eighth of the time.
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": _DICTIONARIES, "write_statistics": False}
    with pq.ParquetWriter(sink, schema, **options) as writer:
        writer.write_table(pa.concat_tables(few).cast(schema))
        adds = state.files.to_table().combine_chunks()
        for start in range(0, adds.num_rows, _ROWS_A_GROUP):
            writer.write_table(_add_column(adds.slice(start, _ROWS_A_GROUP)).cast(schema))
    return sink.getvalue()


def _column(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row} for row in rows], _SCHEMA)


def _add_column(adds: pa.Table) -> pa.Table:
    struct = pa.StructArray.from_arrays(
        [adds[name].combine_chunks() for name in ADD_SCHEMA.names], fields=list(ADD_TYPE)
    )
    columns = [struct if f.name == "add" else pa.nulls(adds.num_rows, f.type) for f in _SCHEMA]
    return pa.table(columns, schema=_SCHEMA)


def _protocol_row(protocol: Protocol) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "readerFeatures": list(protocol.reader_features) if protocol.min_reader >= 3 else None,
        "writerFeatures": list(protocol.writer_features),
    }


def _metadata_row(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.table_id,
        "name": metadata.name,
        "format": {"provider": "parquet", "options": []},
        "schemaString": metadata.schema,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": list(metadata.configuration.items()),
        "createdTime": metadata.created_ms,
    }


def _remove_row(remove: Remove) -> dict[str, Any]:
    return {
        "path": remove.path,
        "deletionTimestamp": remove.deletion_ms,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": list(remove.partition_values.items()),
        "size": remove.size,
    }


def entry_of(data: bytes, path: str) -> str | None:
    """Return the digest of the entry that a checkpoint says it is of; ``None``: of none, so other software wrote it.

    Only of one that is of its version's entry are the rows looked at (PROTOCOL.md §4.4): what other software says in
    its own is not for us to understand.

    Parameters
    ----------
    data : bytes
        The whole object.
    path : str
        For error messages.

    Raises
    ------
    DamagedDataError
        It is no Parquet, or larger than any can be.
    """
    _check_length(data, path)
    with reading(path):
        try:
            found = pq.read_schema(pa.BufferReader(data)).metadata or {}
        except (OSError, pa.ArrowInvalid) as error:
            raise _no_parquet(path) from error
        return _entry_in(found)


def _entry_in(named: Mapping[bytes, bytes]) -> str | None:
    return named.get(_ENTRY.encode(), b"").decode() or None


def _check_length(data: bytes, path: str) -> None:
    if len(data) > LARGEST_WHOLE_BYTES:
        raise DamagedDataError(f"a checkpoint is larger than any can be; {_REMEDY}", path=path, bytes=len(data))


def _no_parquet(path: str) -> DamagedDataError:
    return DamagedDataError(f"checkpoint cannot be read; {_REMEDY}", path=path)


def decode_checkpoint(version: int, data: bytes, path: str, proved: pa.Table | None = None) -> TableState:
    """Return the state that a checkpoint holds; the commit id and time are not in it, but its entry's digest is.

    Parameters
    ----------
    version : int
        From the object's name.
    data : bytes
        The whole object.
    path : str
        For error messages.
    proved : pyarrow.Table, optional
        Columns of :data:`txntable.log.table_state.ADD_SCHEMA` that it has to begin with, and that were read so before:
        what is returned has the other files alone.

    Raises
    ------
    DamagedDataError
        It is no Parquet, truncated, lacks what a checkpoint must have, or holds what no log of ours can say; or it
        does not begin with those rows.
    UnsupportedFormatError
        It needs a newer version of this project.
    """
    _check_length(data, path)
    with reading(path):
        groups = _Groups(proved)
        entry = groups.read(data, path)
        protocol = [decode_protocol(row) for row in groups.rows["protocol"]]
        metadata = [decode_metadata(row) for row in groups.rows["metaData"]]
        numbers = {txn.app_id: txn.version for txn in map(decode_txn, groups.rows["txn"])}
        tombstones = {remove.path: remove for remove in map(decode_remove, groups.rows["remove"])}
        files = LiveFiles(_adds(groups.adds()))
        if len(protocol) != 1 or len(metadata) != 1:
            raise DamagedDataError(f"checkpoint lacks its protocol or metadata; {_REMEDY}")
        check_protocol(protocol[0], path)
    return TableState(
        version,
        chain=entry,
        protocol=protocol[0],
        metadata=metadata[0],
        files=files,
        numbers=numbers,
        tombstones=tombstones,
    )


class _Groups:
    """What the row groups of a checkpoint hold, read one after the other: so memory holds one beside what is kept.

    Parameters
    ----------
    proved : pyarrow.Table, optional
        The first live files have to be these, and are not kept.
    """

    def __init__(self, proved: pa.Table | None) -> None:
        self._proved = NO_FILES if proved is None else proved
        self._adds: list[pa.Table] = []
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _SCHEMA.names if name != "add"}

    def read(self, data: bytes, path: str) -> str | None:
        """Read the whole file, once its footer says that it is no larger than one can be; return its entry's digest."""
        try:
            file = pq.ParquetFile(pa.BufferReader(data))
            claimed = sum(file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups))
            if file.metadata.num_rows > LARGEST_ROWS or claimed > LARGEST_BYTES:
                raise DamagedDataError(
                    f"a checkpoint claims to be larger than one can be; {_REMEDY}",
                    path=path,
                    rows=file.metadata.num_rows,
                    bytes=claimed,
                )
            _check_pages(file.metadata, memoryview(data))
            # Of a small one threads cost more than the decoding; each keeps memory, which a writer is spared.
            if threads := len(data) > _SMALL_BYTES and not self._proved.num_rows:
                lend_to_arrow(path)
            for group in range(file.num_row_groups):
                self._take(file.read_row_group(group, use_threads=threads))
        except (OSError, pa.ArrowInvalid) as error:
            # Arrow's own word for bytes that are no Parquet.
            raise _no_parquet(path) from error
        return _entry_in(file.schema_arrow.metadata or {})

    def _take(self, group: pa.Table) -> None:
        for name, rows in self.rows.items():
            column = group[name].combine_chunks()
            if column.null_count < len(column):
                rows.extend(column.filter(pc.is_valid(column)).to_pylist(maps_as_pydicts="strict"))
        column = group["add"].combine_chunks()
        if column.null_count == len(column):
            return
        column = column.filter(pc.is_valid(column)) if column.null_count else column
        adds = pa.table([pc.struct_field(column, name).cast(type_) for name, type_ in _ADD_FIELDS], schema=ADD_SCHEMA)
        known = self._proved.slice(0, adds.num_rows)
        if not adds.slice(0, known.num_rows).equals(known):
            raise DamagedDataError("a checkpoint says something else than the state that it is of")
        self._proved, adds = self._proved.slice(known.num_rows), adds.slice(known.num_rows)
        if adds.num_rows:
            self._adds.append(adds)

    def adds(self) -> pa.Table:
        """Return the live files that are not proved, as columns of :data:`txntable.log.table_state.ADD_SCHEMA`."""
        if self._proved.num_rows:
            raise DamagedDataError("a checkpoint has fewer files than the state that it is of")
        return pa.concat_tables([NO_FILES, *self._adds]).combine_chunks()


def _check_pages(footer: pq.FileMetaData, data: memoryview) -> None:
    """Refuse what would decode to more than a checkpoint of this size can hold, whatever its footer claims."""
    most = min(LARGEST_BYTES, _SMALLEST_BOUND + _LARGEST_RATIO * len(data))
    for group in range(footer.num_row_groups):
        chunks = chunks_of(footer, group, range(footer.num_columns))
        most -= check_whole(footer, chunks, lambda start, length: data[start : start + length], most)


def _adds(adds: pa.Table) -> pa.Table:
    adds.validate(full=True)
    check_file_paths(adds["path"])
    check_file_columns(adds)
    return adds


_ADD_FIELDS = [(f.name, f.type) for f in ADD_SCHEMA]


def encode_hint(version: int, actions: int) -> bytes:
    """Return the bytes of ``_last_checkpoint``."""
    return json.dumps({"version": version, "size": actions}).encode()


def decode_hint(data: bytes) -> int | None:
    """Return the version that ``_last_checkpoint`` names; ``None`` when it cannot be read (it is only a hint)."""
    if len(data) > _LARGEST_HINT_BYTES:
        return None
    try:
        version = parse_json(data.decode())["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return version if type(version) is int and 0 <= version <= LARGEST_NUMBER else None
