"""Topics as tables of AWS Glue's Data Catalog, which Athena, EMR, Glue's jobs and Trino read.

Owns a table's document: Athena goes by ``table_type``, Spark by ``spark.sql.sources.provider`` and the SerDe's
``path``, Glue's own tools by ``classification``; all read columns and files from the Delta log, but what governs access
(Lake Formation) and views go by the columns that stand here.  The formats are those that Spark writes for a table that
Hive cannot read: an engine that knows no Delta fails, where Parquet's would let it read files that no log shows.
What others gave the table (a comment, parameters, comments of columns) stays at an update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from txntable.catalog.catalog import Catalog
from txntable.catalog.column_types import hive_column
from txntable.catalog.table import Columns, FoundTable, WantedTable, marks_in
from txntable.errors import InvalidRequestError
from txntable.storage.glue_tables import Document, GlueTables
from txntable.storage.written import Written

EXTERNAL_TABLE = "EXTERNAL_TABLE"
READ_BY = {
    "EXTERNAL": "TRUE",
    "classification": "delta",
    "spark.sql.sources.provider": "delta",
    "table_type": "DELTA",
}
"""Parameters by which engines know a Delta table."""

_FORMAT = {
    "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
}
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_KEPT = ("Description", "Owner", "Retention", "ViewOriginalText", "ViewExpandedText", "TargetTable")
"""What a table's document has beside what is ours, and its input takes back."""


class GlueCatalog(Catalog):
    """A database of Glue's.

    Parameters
    ----------
    tables : GlueTables
        Its documents.
    """

    def __init__(self, tables: GlueTables) -> None:
        self._tables = tables

    def spell(self, column: pa.Field) -> tuple[str, str]:
        """Return name and type in Hive's words."""
        return hive_column(column)

    def root(self, url: str) -> str:
        """Return the warehouse's URL; its engines read S3 only."""
        return s3_root(url)

    def tables(self) -> Sequence[FoundTable]:
        """Return the database's tables."""
        return [found_table(document) for document in self._tables.list()]

    def table(self, name: str) -> FoundTable | None:
        """Return a table as it is now."""
        document = self._tables.get(name)
        return None if document is None else found_table(document)

    def create(self, wanted: WantedTable) -> Written:
        """Create a table."""
        return self._tables.create(table_input(wanted, {}))

    def update(self, wanted: WantedTable, found: FoundTable) -> Written:
        """Change a table, if it is still what was found."""
        document = self._tables.get(found.name)
        if document is None or found_table(document) != found:
            return Written.OVERTAKEN
        return self._tables.update(table_input(wanted, document), found.version)

    def drop(self, found: FoundTable) -> Written:
        """Delete a table from Glue."""
        return self._tables.delete(found.name)


def s3_root(url: str) -> str:
    """Return a warehouse's URL as Glue's engines read it.

    Raises
    ------
    InvalidRequestError
        It is not in S3.
    """
    scheme, _, rest = url.rstrip("/").partition("://")
    if scheme not in {"s3", "s3a"}:
        raise InvalidRequestError("glue's engines read s3 only; sync a warehouse that is there", warehouse=url)
    return f"s3://{rest}"


def table_input(wanted: WantedTable, before: Mapping[str, Any]) -> Document:
    """Return what Glue is given of a table.

    Parameters
    ----------
    wanted : WantedTable
        The topic's.
    before : Mapping
        The document that is there; empty: none.
    """
    storage = before.get("StorageDescriptor", {})
    serde = storage.get("SerdeInfo", {})
    known = {column["Name"].lower(): column for column in _columns_in(before)}
    split = len(wanted.columns) - wanted.partition_columns
    columns = [_column(column, known) for column in wanted.columns]
    return {
        **{name: before[name] for name in _KEPT if name in before},
        "Name": wanted.name,
        "TableType": EXTERNAL_TABLE,
        "Parameters": {**before.get("Parameters", {}), **READ_BY, **wanted.marks.properties()},
        # Glue takes no parameters of these.
        "PartitionKeys": [{key: each[key] for key in each if key != "Parameters"} for each in columns[split:]],
        "StorageDescriptor": {
            **storage,
            **_FORMAT,
            "Columns": columns[:split],
            "Location": wanted.location,
            "SerdeInfo": {
                **serde,
                "SerializationLibrary": _SERDE,
                "Parameters": {**serde.get("Parameters", {}), "serialization.format": "1", "path": wanted.location},
            },
        },
    }


def found_table(document: Mapping[str, Any]) -> FoundTable:
    """Return what a document of Glue's says."""
    storage, parameters = document.get("StorageDescriptor", {}), document.get("Parameters", {})
    serde = storage.get("SerdeInfo", {})
    columns: Columns = tuple((each["Name"].lower(), each.get("Type", "").lower()) for each in _columns_in(document))
    location = storage.get("Location")
    is_delta = (
        document.get("TableType") == EXTERNAL_TABLE
        and READ_BY.items() <= parameters.items()
        and _FORMAT.items() <= storage.items()
        and serde.get("SerializationLibrary") == _SERDE
        and serde.get("Parameters", {}).get("path") == location
    )
    return FoundTable(
        document["Name"].lower(), location, marks_in(parameters), columns, is_delta, document.get("VersionId")
    )


def _columns_in(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*document.get("StorageDescriptor", {}).get("Columns", ()), *document.get("PartitionKeys", ())]


def _column(column: tuple[str, str], known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    name, kind = column
    return {**known.get(name, {}), "Name": name, "Type": kind}
