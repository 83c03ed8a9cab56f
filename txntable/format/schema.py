"""The columns of topics, of their two tables and of segments (PROTOCOL.md §3.2).

Owns which schemas a topic can have and which columns the format adds.  Rows are brought into
that shape by :mod:`txntable.format.conform`.  Pure; must not know of storage or Spark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import parse_json
from txntable.errors import SchemaMismatchError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.control_characters import CONTROL
from txntable.format.delta_types import (
    TIMESTAMP,
    TIMESTAMP_NTZ,
    canonical_field,
    canonical_type,
    from_delta_field,
    inner_fields,
    nearest_type,
    nullable_type,
    to_delta_type,
    unsupported_part,
)
from txntable.format.topic import TopicSettings

OFFSET_DELTA_COLUMN = "_offset_delta"
# Without column mapping, which would need a reader feature, Delta refuses these in names.
FORBIDDEN_CHARACTERS = " ,;{}()\n\t="
DEEPEST_TYPE = 30
"""Structs, lists and maps around a value: deltalake reads 40 structs or 31 maps, and not 50 or 32."""

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
KAFKA_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER))),
    ]
)
_RECORD_COLUMNS = [pa.field(OFFSET_DELTA_COLUMN, pa.int64()), pa.field(TIMESTAMP_COLUMN, TIMESTAMP)]
SEGMENTS_PARTITION_COLUMNS = [
    pa.field("_partition", pa.int32()),
    pa.field("_base_offset", pa.int64()),
    pa.field("_last_offset", pa.int64()),
    pa.field("_producer_id", pa.int64()),
    pa.field("_producer_epoch", pa.int64()),
    pa.field("_control", pa.string()),
    pa.field("_marker", pa.string()),
]
PUBLIC_PARTITION_COLUMNS = [
    pa.field("_partition", pa.int32()),
    pa.field("_base_offset", pa.int64()),
    pa.field("_last_offset", pa.int64()),
    pa.field("_commit", pa.int64()),
]


def check_topic_schema(schema: pa.Schema) -> pa.Schema:
    """Return `schema` as a topic will have it, or refuse it.

    Parameters
    ----------
    schema : pyarrow.Schema
        As the user gave it.

    Returns
    -------
    pyarrow.Schema
        The same columns with canonical types, without metadata; reading it back from Delta's
        JSON gives the same.

    Raises
    ------
    SchemaMismatchError
        It is no Arrow schema, there are no columns, or a name or a type cannot be stored: change what the message
        names.
    """
    if not isinstance(schema, pa.Schema):
        raise SchemaMismatchError(
            "a topic's schema is a pyarrow.Schema; make one (of a Spark DataFrame: txntable.spark.topic_schema)",
            found=type(schema).__name__,
        )
    if len(schema) == 0:
        raise SchemaMismatchError("a topic's schema has at least one column; name its columns")
    for name in schema.names:
        if name.startswith("_"):
            raise SchemaMismatchError("names that begin with _ are the format's; rename the column", column=name)
    for field in schema:
        if _depth(field.type, DEEPEST_TYPE) > DEEPEST_TYPE:
            raise SchemaMismatchError(
                "a column's type is nested too deep for readers of Delta tables; flatten it",
                column=shown(field.name),
                most_levels=DEEPEST_TYPE,
            )
    _check_names(list(schema), "")
    columns = []
    for field in schema:
        column = canonical_field(field)
        if column is None:
            part = unsupported_part(field.type)
            raise SchemaMismatchError(
                "a column's type cannot be stored; cast it to the nearest one that can",
                column=field.name,
                found=str(part),
                nearest=nearest_type(part),
            )
        columns.append(column)
    return pa.schema(columns)


def _depth(kind: pa.DataType, most: int) -> int:
    """Return how many structs, lists and maps are around a type's innermost value; beyond `most` it is not looked."""
    if pa.types.is_dictionary(kind):
        return _depth(kind.value_type, most)
    if not pa.types.is_nested(kind) or most < 0:
        return 0
    return 1 + max((_depth(field.type, most - 1) for field in inner_fields(kind)), default=0)


def _check_names(fields: list[pa.Field], parent: str) -> None:
    for field in fields:
        path = f"{parent}{field.name}"
        forbidden = [character for character in FORBIDDEN_CHARACTERS if character in field.name]
        if forbidden or not field.name or CONTROL.search(field.name):
            raise SchemaMismatchError(
                "a column's name is empty or has a control character, or one that Delta forbids; rename the column",
                column=shown(path),
                forbidden=shown(FORBIDDEN_CHARACTERS),
            )
        for struct in _structs_in(field.type):
            _check_names(struct.fields, f"{path}.")
    lowered = Counter(field.name.lower() for field in fields)
    twice = sorted(field.name for field in fields if lowered[field.name.lower()] > 1)
    if twice:
        raise SchemaMismatchError(
            "two columns have the same name, or differ by case only; rename one", columns=f"{parent}{','.join(twice)}"
        )
    structs = tuple(f"{field.name.lower()}." for field in fields if pa.types.is_struct(field.type))
    for name in sorted(lowered):
        if name.startswith(structs):
            raise SchemaMismatchError(
                "a column is named like a field of the struct beside it, as filters name what is inside; add a field to"
                " the struct (`--inside` on the command line), or rename the column",
                column=f"{parent}{name}",
            )


def _structs_in(kind: pa.DataType) -> Iterator[pa.StructType]:
    """Yield the outermost structs in a type."""
    if pa.types.is_dictionary(kind):
        yield from _structs_in(kind.value_type)
    elif pa.types.is_struct(kind):
        yield kind
    else:
        for field in inner_fields(kind):
            yield from _structs_in(field.type)


def to_delta_schema(schema: pa.Schema) -> str:
    """Return a schema as Delta's ``schemaString``.

    Raises
    ------
    ValueError
        A type cannot be stored; :func:`check_topic_schema` says so to users.
    """
    fields = []
    for field in schema:
        kind = canonical_type(field.type)
        if kind is None:
            raise ValueError(f"no Delta type for {field.type}")
        fields.append({"name": field.name, "type": to_delta_type(kind), "nullable": field.nullable, "metadata": {}})
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def from_delta_schema(text: str) -> pa.Schema:
    """Return the schema that a ``schemaString`` (or Spark's JSON of a schema) says; comments are ignored.

    Raises
    ------
    ValueError, KeyError, TypeError
        It cannot be read, or has a type that this version does not know.
    """
    return pa.schema([from_delta_field(field) for field in parse_json(text)["fields"]])


def needs_timestamp_ntz(schema: pa.Schema) -> bool:
    """Return whether a zone-less timestamp is anywhere in a schema: such a topic needs Delta's ``timestampNtz``."""
    return any(_holds_ntz(field.type) for field in schema)


def _holds_ntz(kind: pa.DataType) -> bool:
    return bool(kind == TIMESTAMP_NTZ) or any(_holds_ntz(field.type) for field in inner_fields(kind))


def all_nullable(schema: pa.Schema) -> pa.Schema:
    """Return a schema of canonical types with every column, and everything in it, nullable."""
    return pa.schema([pa.field(field.name, nullable_type(field.type)) for field in schema])


def segment_schema(columns: pa.Schema) -> pa.Schema:
    """Return the columns of a segment's file: the topic's, all nullable, and the record's own."""
    return pa.schema([*all_nullable(columns), *_RECORD_COLUMNS])


def segments_schema(settings: TopicSettings) -> pa.Schema:
    """Return the columns of S, with its partition columns."""
    return pa.schema([*segment_schema(settings.schema), *SEGMENTS_PARTITION_COLUMNS])


def public_schema(settings: TopicSettings) -> pa.Schema:
    """Return the columns of P, with its partition columns and the user's nullability."""
    return pa.schema([*settings.schema, *_RECORD_COLUMNS, *PUBLIC_PARTITION_COLUMNS])
