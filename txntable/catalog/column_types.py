"""Columns in the words of catalogs: Hive's names of types, which Glue, Athena and a metastore have, and Spark's.

Owns both tables.  Hive knows no difference of case: names are in lower case there, and types in both, so that what is
read back compares.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from txntable.format.delta_types import TIMESTAMP, TIMESTAMP_NTZ, inner_fields

_HIVE: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    # Hive has one type of both; engines that tell them apart read the Delta log.
    TIMESTAMP_NTZ: "timestamp",
}
_SPARK: Mapping[pa.DataType, str] = {**_HIVE, TIMESTAMP_NTZ: "timestamp_ntz"}


def hive_column(column: pa.Field) -> tuple[str, str]:
    """Return name and type of a column of canonical type as Hive has them."""
    return column.name.lower(), _spelled(column.type, _HIVE).lower()


def spark_column(column: pa.Field) -> tuple[str, str]:
    """Return name and type of a column of canonical type as Spark SQL has them."""
    return column.name, _spelled(column.type, _SPARK).lower()


def _spelled(kind: pa.DataType, names: Mapping[pa.DataType, str]) -> str:
    if kind in names:
        return names[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    inner = [(field.name, _spelled(field.type, names)) for field in inner_fields(kind)]
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{name}:{text}' for name, text in inner)}>"
    outer = "map" if pa.types.is_map(kind) else "array"
    return f"{outer}<{','.join(text for _, text in inner)}>"
