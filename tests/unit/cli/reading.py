"""What tests of input share: topics, and short words for reading and for what is read."""

from __future__ import annotations

import io
import json

import pyarrow as pa

from txntable.cli.record_source import Chunk, Reading, RecordFormat, read_records
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings

INNER = pa.struct([pa.field("id", pa.int32(), nullable=False), pa.field("note", pa.string())])
NULLABLE = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])


def topic(schema: pa.Schema = KAFKA_SCHEMA, partitions: int = 3) -> TopicSettings:
    return TopicSettings("t", "0" * 32, partitions, schema)


def chunks(data: bytes, reading: Reading, settings: TopicSettings | None = None) -> list[Chunk]:
    return list(read_records(io.BytesIO(data), settings or topic(), reading))


def rows(data: bytes | str, record_format: RecordFormat, settings: TopicSettings | None = None, **options) -> list:
    encoded = data.encode() if isinstance(data, str) else data
    return [row for chunk in chunks(encoded, Reading(record_format, **options), settings) for row in _rows(chunk)]


def _rows(chunk: Chunk) -> list[dict]:
    named: list[dict] = chunk.rows.to_pylist()
    return named


def record(key: bytes | None, value: bytes | None, headers: list | None = None) -> dict:
    return {"key": key, "value": value, "headers": headers}


def header(name: str, value: bytes | None) -> dict:
    return {"key": name, "value": value}


def json_lines(*documents: object) -> str:
    return "\n".join(json.dumps(document) for document in documents)


def column(kind: pa.DataType) -> TopicSettings:
    return topic(pa.schema([pa.field("id", pa.int64()), pa.field("x", kind)]))
