"""The bytes of a log entry: Delta's actions as JSON, one a line (PROTOCOL.md §4.1).

Owns the one encoding of what :mod:`actions` reads.  Pure: must not know of storage, slots or state.
"""

from __future__ import annotations

import json
from typing import Any

from txntable.log.actions import TAG, Action, Add, Commit, Metadata, Protocol, Remove, Txn

_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def encode_commit(commit: Commit, engine: str) -> bytes:
    """Return the bytes of a log entry: one JSON object a line, ``commitInfo`` first."""
    info = commit.info
    body: dict[str, Any] = {
        "inCommitTimestamp": info.timestamp_ms,
        "timestamp": info.timestamp_ms,
        "operation": info.operation,
        "operationParameters": dict(info.details.parameters),
        "engineInfo": engine,
        "txnId": info.commit_id,
        "commitId": info.commit_id,
        "log": info.log,
        "previous": info.previous,
        "chain": info.chain,
    }
    if info.details.metrics:
        body["operationMetrics"] = dict(info.details.metrics)
    if commit.repairs:
        body["repairs"] = len(commit.repairs)
    lines = [_dumps({"commitInfo": body})]
    lines.extend(_dumps(_encode(action)) for action in (*commit.repairs, *commit.actions))
    return ("\n".join(lines) + "\n").encode()


def _encode(action: Action) -> dict[str, Any]:
    match action:
        case Add():
            return {"add": _encode_add(action)}
        case Txn():
            return {"txn": {"appId": action.app_id, "version": action.version}}
        case Remove():
            return {
                "remove": {
                    "path": action.path,
                    "deletionTimestamp": action.deletion_ms,
                    "dataChange": action.data_change,
                    "extendedFileMetadata": True,
                    "partitionValues": dict(action.partition_values),
                    "size": action.size,
                }
            }
        case Metadata():
            return {"metaData": _encode_metadata(action)}
        case Protocol():
            return {"protocol": _encode_protocol(action)}


def _encode_add(add: Add) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": add.path,
        "partitionValues": dict(add.partition_values),
        "size": add.size,
        "modificationTime": add.modification_time,
        "dataChange": add.data_change,
    }
    if add.stats is not None:
        body["stats"] = add.stats
    if add.tag is not None:
        body["tags"] = {TAG: add.tag}
    return body


def _encode_metadata(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.table_id,
        "name": metadata.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": metadata.schema,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": metadata.created_ms,
    }


def _encode_protocol(protocol: Protocol) -> dict[str, Any]:
    body: dict[str, Any] = {"minReaderVersion": protocol.min_reader, "minWriterVersion": protocol.min_writer}
    if protocol.min_reader >= 3:
        body["readerFeatures"] = list(protocol.reader_features)
    body["writerFeatures"] = list(protocol.writer_features)
    return body
