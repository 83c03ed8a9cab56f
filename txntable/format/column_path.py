"""Columns inside of columns: how a condition names them, and every text that a batch holds at any depth.

Owns the spelling: a name of the schema, or the names on the way through structs with dots between them.  What is inside
of a list or a map has no name that one record could be found by.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc


def path_of(columns: Iterable[pa.Field], name: str) -> tuple[str, ...] | None:
    """Return the names on the way to a column; ``None``: there is no such column.

    Parameters
    ----------
    columns : iterable of pyarrow.Field
        A schema, or a struct's type.
    name : str
        As a condition says it; a name that has dots itself is taken for what it is first, and none begins like a
        struct's beside it.
    """
    fields = list(columns)
    if any(field.name == name for field in fields):
        return (name,)
    for field in fields:
        if pa.types.is_struct(field.type) and name.startswith(f"{field.name}."):
            below = path_of(field.type, name.removeprefix(f"{field.name}."))
            if below is not None:
                return (field.name, *below)
    return None


def field_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field:
    """Return the column at the end of a path."""
    field = schema.field(path[0])
    for name in path[1:]:
        field = field.type.field(name)
    return field


def array_at(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """Return the values at the end of a path, null where something on the way is."""
    array = batch.column(path[0])
    return array if len(path) == 1 else pc.struct_field(array, list(path[1:]))


def names_in(columns: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield what a condition may name, parents before what is inside of them."""
    for field in columns:
        yield above + field.name
        if pa.types.is_struct(field.type):
            yield from names_in(field.type, f"{above}{field.name}.")


def has_texts(kind: pa.DataType) -> bool:
    """Return whether a column of a type holds texts or bytes, at any depth."""
    if pa.types.is_dictionary(kind):
        return has_texts(kind.value_type)
    return _is_text(kind) or any(has_texts(kind.field(index).type) for index in range(kind.num_fields))


def texts_in(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the texts and bytes of a column, those of its structs, lists and maps too, each with its dotted name."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        yield from texts_in(name, array.dictionary_decode())
    elif _is_text(kind):
        yield name, array
    elif pa.types.is_struct(kind):
        for field, part in zip(kind, array.flatten(), strict=True):
            yield from texts_in(f"{name}.{field.name}", part)
    elif pa.types.is_map(kind):
        yield from texts_in(f"{name}.key", array.keys)
        yield from texts_in(f"{name}.value", array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from texts_in(name, array.flatten())


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )
