"""Bringing rows into the shape of a topic: by name, in order, with its types, nulls only where allowed.

Owns what counts as the same type: Arrow's encodings of one Delta type do; wider, narrower or
rounded types do not, so that nothing a user wrote changes on the way.  Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import MissingKeyError, SchemaMismatchError
from txntable.format.delta_types import TIMESTAMP, canonical_type, inner_fields, nullable_type
from txntable.format.topic import TopicSettings
from txntable.format.topic_policy import required_key_column

TIMESTAMP_COLUMN = "_timestamp"


def conform(rows: pa.Table | pa.RecordBatch, settings: TopicSettings) -> pa.Table | pa.RecordBatch:
    """Return `rows` in the shape of the topic's segments.

    Parameters
    ----------
    rows : pyarrow.Table or pyarrow.RecordBatch
        All of the topic's columns, in any order, and optionally ``_timestamp``.
    settings : TopicSettings
        The topic.

    Returns
    -------
    pyarrow.Table or pyarrow.RecordBatch
        As was given: the topic's columns in the topic's order, ``_timestamp`` last if it was
        there.  Every column is declared nullable; that the user's nullability holds was checked.

    Raises
    ------
    SchemaMismatchError
        A column is missing, unknown, named twice, of another type, or null where it may not be.
    MissingKeyError
        The topic is compacted, and a record has no key.
    """
    wanted = check_columns(rows.schema, settings)
    columns = [_conformed(rows.column(rows.schema.get_field_index(field.name)), field, settings) for field in wanted]
    schema = pa.schema([pa.field(field.name, nullable_type(field.type)) for field in wanted])
    conformed = type(rows).from_arrays(columns, schema=schema)
    key = required_key_column(settings)
    if key is not None and conformed.column(key).null_count:
        raise MissingKeyError(
            "the topic is compacted and takes no record without a key; fill its key column, or leave the record out",
            topic=settings.name,
            column=key,
            cleanup_policy=settings.config.get("cleanup.policy"),
        )
    return conformed


def check_columns(found: pa.Schema, settings: TopicSettings) -> list[pa.Field]:
    """Return the columns of the topic that rows with a schema have, in order; ``_timestamp`` only if it is there.

    Nullability is not looked at: only values can be null.

    Raises
    ------
    SchemaMismatchError
        See :func:`conform`; nulls aside.
    """
    wanted = [*settings.schema]
    if TIMESTAMP_COLUMN in found.names:
        wanted.append(pa.field(TIMESTAMP_COLUMN, TIMESTAMP, nullable=False))
    check_names(found.names, settings)
    for field in wanted:
        kind = found.field(field.name).type
        if not pa.types.is_null(kind) and not is_same_type(kind, field.type):
            raise SchemaMismatchError(
                "a column has another type than the topic's; cast it",
                topic=settings.name,
                column=field.name,
                expected=str(field.type),
                found=str(kind),
            )
    return wanted


def check_names(found: Iterable[str], settings: TopicSettings) -> None:
    """Refuse rows whose column names are not exactly the topic's, with or without ``_timestamp``.

    Raises
    ------
    SchemaMismatchError
        Names are missing, unknown or there twice; the message lists them.
    """
    counts = Counter(found)
    missing = [name for name in settings.schema.names if name not in counts]
    unknown = [name for name in counts if name not in settings.schema.names and name != TIMESTAMP_COLUMN]
    twice = [name for name, count in counts.items() if count > 1]
    if missing or unknown or twice:
        raise SchemaMismatchError(
            "the columns are not the topic's; give each of them once, by name (a nullable one may be all null)",
            topic=settings.name,
            missing=",".join(missing) or None,
            unknown=",".join(unknown) or None,
            twice=",".join(twice) or None,
            expected=",".join(settings.schema.names),
        )


def is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two types are Arrow's encodings of one Delta type, nullability inside aside."""
    kind = canonical_type(found)
    return kind is not None and bool(nullable_type(kind) == nullable_type(wanted))


def _conformed(
    column: pa.Array | pa.ChunkedArray, field: pa.Field, settings: TopicSettings
) -> pa.Array | pa.ChunkedArray:
    path = _null_where_required(column, field, field.name)
    if path is not None:
        raise SchemaMismatchError(
            "a column that must not be null has a null; fill it, or leave the record out",
            topic=settings.name,
            column=path,
            expected=f"{field.type} not null",
            found="null",
        )
    kind = nullable_type(field.type)
    return column if column.type == kind else column.cast(kind)


def _null_where_required(column: pa.Array | pa.ChunkedArray, field: pa.Field, path: str) -> str | None:
    """Return the path of the first part of a column that is null though it must not be."""
    if not field.nullable and column.null_count:
        return path
    if not _requires_inside(field.type):
        return None
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        for part, inner in _parts(chunk, field.type):
            found = _null_where_required(part, inner, f"{path}.{inner.name}")
            if found is not None:
                return found
    return None


def _requires_inside(kind: pa.DataType) -> bool:
    """Return whether something inside a type must not be null (a map's keys never are)."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or _requires_inside(kind.item_type) or _requires_inside(kind.key_type)
    return any(not inner.nullable or _requires_inside(inner.type) for inner in inner_fields(kind))


def _parts(array: pa.Array, kind: pa.DataType) -> list[tuple[pa.Array, pa.Field]]:
    """Return the parts of an array, only where the whole is not null: a null struct has no null fields."""
    present = array.drop_null() if array.null_count else array
    if pa.types.is_struct(kind):
        return [(pc.struct_field(present, index), field) for index, field in enumerate(kind.fields)]
    if pa.types.is_map(kind):
        # A slice of a map still shows the items of the whole.
        first, last = (present.offsets[0].as_py(), present.offsets[-1].as_py()) if len(present) else (0, 0)
        keys, items = (part.slice(first, last - first) for part in (present.keys, present.items))
        return [(keys, kind.key_field), (items, kind.item_field)]
    return [(present.flatten(), kind.field(0))]
