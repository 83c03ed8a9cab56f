"""Column types: Arrow's and Delta's, and which of them a topic can have.

Owns the one table of both.  Each Delta type has exactly one *canonical* Arrow type; others that
mean the same (large or viewed strings, dictionaries, another display zone) are brought to it.
Pure; must not know of topics.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_CANONICAL = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_DELTA_NAMES = {kind: name for name, kind in _CANONICAL.items()}
_SAME = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_NEAREST = {
    pa.null(): "string",
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.uint64(): "decimal128(20, 0)",
    pa.float16(): "float",
    pa.date64(): "date32",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
LARGEST_PRECISION = 38


def canonical_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type by which the project stores `kind`; ``None``: it cannot be stored."""
    if kind in _DELTA_NAMES:
        return kind
    if kind in _SAME:
        return _SAME[kind]
    if pa.types.is_dictionary(kind):
        return canonical_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.unit == "us" else None
    if pa.types.is_decimal128(kind):
        return kind if 0 <= kind.scale <= kind.precision else None
    return _canonical_nested(kind)


def _canonical_nested(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        fields = [canonical_field(field) for field in kind.fields]
        return None if not fields or any(field is None for field in fields) else pa.struct(fields)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = canonical_field(kind.value_field.with_name("element"))
        return None if element is None else pa.list_(element)
    if pa.types.is_map(kind):
        key = canonical_field(pa.field("key", kind.key_type, nullable=False))
        value = canonical_field(kind.item_field.with_name("value"))
        return None if key is None or value is None else pa.map_(key, value)
    return None


def canonical_field(field: pa.Field) -> pa.Field | None:
    """Return a field with its canonical type and without metadata; ``None``: it cannot be stored."""
    kind = canonical_type(field.type)
    return None if kind is None else pa.field(field.name, kind, nullable=field.nullable)


def unsupported_part(kind: pa.DataType) -> pa.DataType | None:
    """Return the innermost type that keeps `kind` from being stored, or ``None``."""
    if canonical_type(kind) is not None:
        return None
    parts = (unsupported_part(field.type) for field in inner_fields(kind))
    return next((part for part in parts if part is not None), kind)


def inner_fields(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, the element of a list, or key and value of a map; of other types none."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(index) for index in range(kind.num_fields)]


def nearest_type(kind: pa.DataType) -> str:
    """Return the name of a type that can be stored and comes nearest to one that cannot."""
    if kind in _NEAREST:
        return _NEAREST[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp[us]" if kind.tz is None else "timestamp[us, tz=UTC]"
    if pa.types.is_decimal(kind):
        scale = min(max(kind.scale, 0), LARGEST_PRECISION)
        return f"decimal128({min(max(kind.precision, scale, 1), LARGEST_PRECISION)}, {scale})"
    if pa.types.is_nested(kind) and kind.num_fields == 1:
        return f"list<{kind.field(0).type}>"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return "int64" if pa.types.is_time(kind) or pa.types.is_duration(kind) else "string"


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """Return a canonical type with everything in it nullable (except a map's keys)."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, nullable_type(field.type)) for field in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", nullable_type(kind.value_type)))
    if pa.types.is_map(kind):
        key = pa.field("key", nullable_type(kind.key_type), nullable=False)
        return pa.map_(key, pa.field("value", nullable_type(kind.item_type)))
    return kind


def has_grown(found: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a type has become another, at most by structs that got more fields; nullability aside.

    Parameters
    ----------
    found : pyarrow.DataType
        A canonical type, as a file has it.
    kind : pyarrow.DataType
        The same, as the topic has it now.
    """
    if pa.types.is_struct(found) and pa.types.is_struct(kind):
        # A field that is added is nullable and stands last: else it is another struct.
        return (
            [field.name for field in found.fields] == [field.name for field in kind.fields][: found.num_fields]
            and all(has_grown(old.type, new.type) for old, new in zip(found.fields, kind.fields, strict=False))
            and all(field.nullable for field in kind.fields[found.num_fields :])
        )
    if pa.types.is_list(found) and pa.types.is_list(kind):
        return has_grown(found.value_type, kind.value_type)
    return bool(nullable_type(found) == nullable_type(kind))


def to_delta_type(kind: pa.DataType) -> str | dict[str, Any]:
    """Return a canonical type as the JSON of a Delta schema has it.

    Raises
    ------
    ValueError
        The type is not canonical.
    """
    if kind in _DELTA_NAMES:
        return _DELTA_NAMES[kind]
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [to_delta_field(field) for field in kind.fields]}
    if pa.types.is_list(kind):
        element = to_delta_type(kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": kind.value_field.nullable}
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": to_delta_type(kind.key_type),
            "valueType": to_delta_type(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    raise ValueError(f"no Delta type for {kind}")


def to_delta_field(field: pa.Field) -> dict[str, Any]:
    """Return a field with a canonical type as the JSON of a Delta schema has it."""
    return {"name": field.name, "type": to_delta_type(field.type), "nullable": field.nullable, "metadata": {}}


def from_delta_type(found: str | dict[str, Any]) -> pa.DataType:
    """Return the canonical type that the JSON of a Delta schema says.

    Raises
    ------
    ValueError, KeyError, TypeError
        It is none that this version knows.
    """
    if isinstance(found, str):
        if found in _CANONICAL:
            return _CANONICAL[found]
        if matched := _DECIMAL.fullmatch(found):
            return pa.decimal128(int(matched[1]), int(matched[2]))
        raise ValueError(f"no such type: {found}")
    match found["type"]:
        case "struct":
            return pa.struct([from_delta_field(field) for field in found["fields"]])
        case "array":
            element = from_delta_type(found["elementType"])
            return pa.list_(pa.field("element", element, nullable=bool(found["containsNull"])))
        case "map":
            key = pa.field("key", from_delta_type(found["keyType"]), nullable=False)
            value = from_delta_type(found["valueType"])
            return pa.map_(key, pa.field("value", value, nullable=bool(found["valueContainsNull"])))
    raise ValueError(f"no such type: {found['type']}")


def from_delta_field(found: dict[str, Any]) -> pa.Field:
    """Return the field that the JSON of a Delta schema says; see :func:`from_delta_type`."""
    return pa.field(found["name"], from_delta_type(found["type"]), nullable=bool(found["nullable"]))
