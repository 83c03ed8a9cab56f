"""Topics as external tables of Unity Catalog.

Owns a table's document.  The server changes no table: one that is to be changed is deleted and made again, which no
file notices and a query that comes in between does; it keeps its comment and the properties that others gave it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from txntable.catalog.catalog import Catalog
from txntable.catalog.column_types import spark_column
from txntable.catalog.table import FoundTable, WantedTable, engine_root, marks_in
from txntable.catalog.unity_server import Document, UnityServer
from txntable.format.delta_types import to_delta_field
from txntable.storage.written import Written

_NAMES = {
    "tinyint": "BYTE",
    "smallint": "SHORT",
    "bigint": "LONG",
}
"""Of types, where Unity does not have Spark SQL's."""


class UnityCatalog(Catalog):
    """A schema of a catalog.

    Parameters
    ----------
    server : UnityServer
        Has its documents.
    """

    def __init__(self, server: UnityServer) -> None:
        self._server = server

    def spell(self, column: pa.Field) -> tuple[str, str]:
        """Return name and type in Spark SQL's words."""
        return spark_column(column)

    def root(self, url: str) -> str:
        """Return the warehouse's URL."""
        return engine_root(url, s3="s3")

    def tables(self) -> Sequence[FoundTable]:
        """Return the schema's tables."""
        return [found_table(document) for document in self._server.list()]

    def table(self, name: str) -> FoundTable | None:
        """Return a table as it is now."""
        document = self._server.get(name)
        return None if document is None else found_table(document)

    def create(self, wanted: WantedTable) -> Written:
        """Create a table."""
        return self._server.create(table_document(wanted, {}))

    def update(self, wanted: WantedTable, found: FoundTable) -> Written:
        """Delete a table and make it again."""
        document = self._server.get(found.name)
        if document is None or found_table(document) != found:
            return Written.OVERTAKEN
        self._server.delete(found.name)
        return self._server.create(table_document(wanted, document))

    def drop(self, found: FoundTable) -> Written:
        """Delete a table from the catalog."""
        return self._server.delete(found.name)


def table_document(wanted: WantedTable, before: Mapping[str, Any]) -> Document:
    """Return what the server is given of a table.

    Parameters
    ----------
    wanted : WantedTable
        The topic's.
    before : Mapping
        The document that was there; empty: none.
    """
    first = len(wanted.columns) - wanted.partition_columns
    columns = [
        _column(position, field, text)
        for position, (field, (_, text)) in enumerate(zip(wanted.schema, wanted.columns, strict=True))
    ]
    for index, column in enumerate(columns[first:]):
        column["partition_index"] = index
    made: Document = {
        "name": wanted.name,
        "table_type": "EXTERNAL",
        "data_source_format": "DELTA",
        "storage_location": wanted.location,
        "columns": columns,
        "properties": {**(before.get("properties") or {}), **wanted.marks.properties()},
    }
    if before.get("comment"):
        made["comment"] = before["comment"]
    return made


def found_table(document: Mapping[str, Any]) -> FoundTable:
    """Return what a document of the server's says."""
    ordered = sorted(document.get("columns") or (), key=lambda column: column.get("position") or 0)
    columns = tuple((column["name"], column.get("type_text", "").lower()) for column in ordered)
    is_delta = (document.get("table_type"), document.get("data_source_format")) == ("EXTERNAL", "DELTA")
    version = document.get("table_id")
    return FoundTable(
        document["name"].lower(),
        document.get("storage_location"),
        marks_in(document.get("properties") or {}),
        columns,
        is_delta,
        None if version is None else str(version),
    )


def _column(position: int, field: pa.Field, text: str) -> Document:
    outer = text.partition("<")[0].partition("(")[0]
    made: Document = {
        "name": field.name,
        "type_text": text,
        "type_json": json.dumps(to_delta_field(field), separators=(",", ":")),
        "type_name": _NAMES.get(outer, outer.upper()),
        "position": position,
        "nullable": field.nullable,
    }
    if pa.types.is_decimal(field.type):
        made |= {"type_precision": field.type.precision, "type_scale": field.type.scale}
    return made
