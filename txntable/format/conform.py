"""Bringing rows into the shape of a topic: by name, in order, with its types, nulls only where allowed.

Owns the one rule of what may be written, at every depth, for Python and Spark alike: names are the topic's, a nullable
column may be left out and is null, a type may be another encoding of the column's or one that it only widens
(:mod:`txntable.format.widening`).  Nothing else is converted, so that nothing a user wrote changes on the way.  Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import MissingKeyError, SchemaMismatchError
from txntable.format.delta_types import TIMESTAMP, canonical_type, inner_fields, nullable_type
from txntable.format.near_names import column_hint
from txntable.format.topic import TopicSettings
from txntable.format.topic_policy import required_key_column
from txntable.format.widening import widens

TIMESTAMP_COLUMN = "_timestamp"


def conform(rows: pa.Table | pa.RecordBatch, settings: TopicSettings) -> pa.Table | pa.RecordBatch:
    """Return `rows` in the shape of the topic's segments.

    Parameters
    ----------
    rows : pyarrow.Table or pyarrow.RecordBatch
        The topic's columns, in any order, and optionally ``_timestamp``.  Nullable ones may be left out.
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
        A column is missing, unknown, named twice, of a type that does not fit, or null where it may not be.
    MissingKeyError
        The topic is compacted, and a record has no key.
    """
    wanted = check_columns(rows.schema, settings)
    names = set(rows.schema.names)
    columns = [
        _conformed(
            rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type), field, settings
        )
        for field in wanted
    ]
    schema = pa.schema([pa.field(field.name, nullable_type(field.type)) for field in wanted])
    conformed = type(rows).from_arrays(columns, schema=schema)
    key = required_key_column(settings)
    if key is not None and conformed.column(key).null_count:
        raise _without_key(key, settings)
    return conformed


def check_null_counts(nulls: Mapping[str, int], settings: TopicSettings) -> None:
    """Refuse written rows for nulls where none may be, by how many each column has; inside of columns it is not looked.

    Raises
    ------
    SchemaMismatchError, MissingKeyError
        See :func:`conform`.
    """
    required = {field.name: str(field.type) for field in settings.schema if not field.nullable}
    for name, kind in {**required, TIMESTAMP_COLUMN: str(TIMESTAMP)}.items():
        if nulls.get(name):
            raise _null_refused(name, kind, settings)
    key = required_key_column(settings)
    if key is not None and nulls.get(key):
        raise _without_key(key, settings)


def check_columns(found: pa.Schema, settings: TopicSettings) -> list[pa.Field]:
    """Return the columns of the topic, in order, that rows with a schema fill; ``_timestamp`` only if it is there.

    Nullability is not looked at: only values can be null.

    Raises
    ------
    SchemaMismatchError, MissingKeyError
        See :func:`conform`; nulls aside.
    """
    check_names(found.names, settings)
    if not set(found.names) & set(settings.schema.names):
        raise SchemaMismatchError(
            "rows without any of the topic's columns would be rows of nulls, which nobody means; give some of them",
            topic=settings.name,
            expected=",".join(settings.schema.names),
        )
    key = required_key_column(settings)
    if key is not None and key not in found.names:
        raise _without_key(key, settings)
    wanted = [*settings.schema]
    if TIMESTAMP_COLUMN in found.names:
        wanted.append(pa.field(TIMESTAMP_COLUMN, TIMESTAMP, nullable=False))
    for field in wanted:
        if field.name in found.names:
            _check_type(found.field(field.name).type, field.type, field.name, settings)
    return wanted


def check_names(found: Iterable[str], settings: TopicSettings) -> None:
    """Refuse rows whose column names are not the topic's, with or without ``_timestamp`` and nullable ones.

    Raises
    ------
    SchemaMismatchError
        Names are unknown or there twice, or a required one is missing; the message lists them.
    """
    _check_fields([name for name in found if name != TIMESTAMP_COLUMN], list(settings.schema), "", settings)


def _check_fields(found: Sequence[str], fields: Sequence[pa.Field], parent: str, settings: TopicSettings) -> None:
    counts = Counter(found)
    names = [field.name for field in fields]
    missing = [field.name for field in fields if field.name not in counts and not field.nullable]
    unknown = [name for name in counts if name not in names]
    twice = [name for name, count in counts.items() if count > 1]
    if missing or unknown or twice:
        raise SchemaMismatchError(
            "the columns are not the topic's; give each of them once, by name (only a nullable one may be left out)"
            + column_hint(unknown, names)
            + _place_hint(unknown, parent),
            topic=settings.name,
            missing=_listed(missing, parent),
            unknown=_listed(unknown, parent),
            twice=_listed(twice, parent),
            expected=_listed(names, parent),
        )


def _place_hint(unknown: Iterable[str], parent: str) -> str:
    # No column of a topic begins so: the rows were read from one.
    if parent or not any(name.startswith("_") for name in unknown):
        return ""
    return "; rows that were read from a topic say where each stood, too: select only the columns to be written"


def _listed(names: Sequence[str], parent: str) -> str | None:
    return ",".join(f"{parent}{name}" for name in names) or None


def _check_type(found: pa.DataType, wanted: pa.DataType, path: str, settings: TopicSettings) -> None:
    """Refuse a type that does not become the column's without loss, by the path of the part that does not."""
    kind = found.value_type if pa.types.is_dictionary(found) else found
    if pa.types.is_null(kind) or is_same_type(kind, wanted) or widens(kind, wanted):
        return
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        _check_fields([field.name for field in kind.fields], wanted.fields, f"{path}.", settings)
        for field in kind.fields:
            _check_type(field.type, wanted.field(field.name).type, f"{path}.{field.name}", settings)
    elif (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_list(wanted):
        _check_type(kind.value_type, wanted.value_type, f"{path}.element", settings)
    elif pa.types.is_map(kind) and pa.types.is_map(wanted):
        _check_type(kind.key_type, wanted.key_type, f"{path}.key", settings)
        _check_type(kind.item_type, wanted.item_type, f"{path}.value", settings)
    else:
        raise SchemaMismatchError(
            "a column has another type than the topic's, and it is only widened for you; cast it",
            topic=settings.name,
            column=path,
            expected=str(wanted),
            found=str(found),
        )


def _without_key(key: str, settings: TopicSettings) -> MissingKeyError:
    return MissingKeyError(
        "the topic is compacted and takes no record without a key; fill its key column, or leave the record out",
        topic=settings.name,
        column=key,
        cleanup_policy=settings.config.get("cleanup.policy"),
    )


def is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two types are Arrow's encodings of one Delta type, nullability inside aside."""
    kind = canonical_type(found)
    return kind is not None and bool(nullable_type(kind) == nullable_type(wanted))


def _conformed(
    column: pa.Array | pa.ChunkedArray, field: pa.Field, settings: TopicSettings
) -> pa.Array | pa.ChunkedArray:
    kind = nullable_type(field.type)
    try:
        # By name inside of structs, and what is left out there is null.
        values = column if column.type == kind else column.cast(kind)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"a column has a value that its type in the topic cannot hold: {str(error).lower()}; leave the record out",
            topic=settings.name,
            column=field.name,
            expected=str(field.type),
            found=str(column.type),
        ) from error
    path = _null_where_required(values, field, field.name)
    if path is not None:
        raise _null_refused(path, str(field.type), settings)
    return values


def _null_refused(path: str, kind: str, settings: TopicSettings) -> SchemaMismatchError:
    return SchemaMismatchError(
        "a column that must not be null has a null; fill it, or leave the record out",
        topic=settings.name,
        column=path,
        expected=f"{kind} not null",
        found="null",
    )


def _null_where_required(column: pa.Array | pa.ChunkedArray, field: pa.Field, path: str) -> str | None:
    """Return the path of the first part of a column that is null though it must not be."""
    if not field.nullable and column.null_count:
        return path
    if not requires_inside(field.type):
        return None
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        for part, inner in _parts(chunk, field.type):
            found = _null_where_required(part, inner, f"{path}.{inner.name}")
            if found is not None:
                return found
    return None


def requires_inside(kind: pa.DataType) -> bool:
    """Return whether something inside a type must not be null (a map's keys never are)."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or requires_inside(kind.item_type) or requires_inside(kind.key_type)
    return any(not inner.nullable or requires_inside(inner.type) for inner in inner_fields(kind))


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
