"""A topic's table in a catalog: as it should be there, as it was found there, and whose it is.

Owns the names of tables, and the marks by which a table says which warehouse registered it: properties, since every
catalog has these.  A table is ours when its marks *and* its location say so: a copy of a warehouse has the same id.
Pure; must not know of any one catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from txntable.errors import InvalidRequestError
from txntable.format.layout import TRANSACTION_LOG_ROOT, public_root
from txntable.format.schema import PUBLIC_PARTITION_COLUMNS, public_schema
from txntable.format.topic import TopicSettings

LONGEST_NAME = 255
"""Characters of a table's name: Glue's and Unity's limit, and a Hive metastore's column has one more."""
WAREHOUSE_MARK = "txntable.warehouse_id"
PREFIX_MARK = "txntable.prefix"
TOPIC_MARK = "txntable.topic"
TOPIC_ID_MARK = "txntable.topic_id"
TRANSACTIONS = "txntable_transactions"
"""The table of the transaction log T, which tells the position of a snapshot (PROTOCOL.md §10)."""

_PREFIX = re.compile(r"[a-z0-9_]*")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_]")

Columns: TypeAlias = tuple[tuple[str, str], ...]
"""Name and type of each column, in a catalog's words, in order."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who registers tables.

    Attributes
    ----------
    warehouse_id : str
        The warehouse's.
    root : str
        Its URL as the catalog's engines know it, without a slash at its end.
    prefix : str
        Of the names of all its tables; another prefix is another owner.
    """

    warehouse_id: str
    root: str
    prefix: str = ""

    def location(self, topic: str) -> str:
        """Return where a topic's public table lies, or T, which is marked by its own path: no topic is called so."""
        return f"{self.root}/{topic if topic == TRANSACTION_LOG_ROOT else public_root(topic)}"


@dataclass(frozen=True, slots=True)
class Marks:
    """What a table that we registered says of itself.

    Attributes
    ----------
    warehouse_id, prefix : str
        Its owner's.
    topic, topic_id : str
        The topic's name and id; a topic that was deleted and made again has another id.
    """

    warehouse_id: str
    prefix: str
    topic: str
    topic_id: str

    def properties(self) -> dict[str, str]:
        """Return the marks as properties of a table."""
        return {
            WAREHOUSE_MARK: self.warehouse_id,
            PREFIX_MARK: self.prefix,
            TOPIC_MARK: self.topic,
            TOPIC_ID_MARK: self.topic_id,
        }


def marks_in(properties: Mapping[str, str]) -> Marks | None:
    """Return the marks that a table's properties have; ``None``: it was not registered by us."""
    warehouse_id, topic = properties.get(WAREHOUSE_MARK), properties.get(TOPIC_MARK)
    if not warehouse_id or not topic:
        return None
    return Marks(warehouse_id, properties.get(PREFIX_MARK, ""), topic, properties.get(TOPIC_ID_MARK, ""))


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A topic as the catalog should have it.

    Attributes
    ----------
    name : str
        The table's.
    location : str
        The topic's folder.
    marks : Marks
        Whose it is.
    schema : pyarrow.Schema
        Of the public table, with its partition columns at the end.
    columns : Columns
        The same in the catalog's words.
    partition_columns : int
        How many of them, at the end, are partition columns.
    is_published : bool
        Whether there is a public table yet: without one, engines would find nothing to read.
    """

    name: str
    location: str
    marks: Marks
    schema: pa.Schema
    columns: Columns
    partition_columns: int
    is_published: bool = True


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table, or a view, that the catalog has.

    Attributes
    ----------
    name : str
        In lower case.
    location : str or None
        ``None``: it has none.
    marks : Marks or None
        ``None``: not registered by us.
    columns : Columns or None
        In the catalog's words; ``None``: it keeps none, engines read them from the Delta log.
    is_delta : bool
        Whether engines take it for the Delta table that it is.
    version : str or None
        By which a catalog that can tell refuses a change of what somebody else has changed since.
    """

    name: str
    location: str | None
    marks: Marks | None
    columns: Columns | None
    is_delta: bool = True
    version: str | None = None


def check_prefix(prefix: str) -> str:
    """Return a prefix of tables' names that every catalog takes.

    Raises
    ------
    InvalidRequestError
        Some would not, or would change it: take lower-case letters, digits and underscores.
    """
    if not _PREFIX.fullmatch(prefix):
        raise InvalidRequestError("a prefix has lower-case letters, digits and _ only; take another", prefix=prefix)
    return prefix


def table_name(topic: str, prefix: str = "") -> str:
    """Return the name of a topic's table: in lower case, and ``_`` for ``.`` and ``-``, which names in SQL lack."""
    return prefix + _NOT_IN_NAMES.sub("_", topic.lower())


def wanted_table(
    topic: TopicSettings, owner: Owner, spell: Callable[[pa.Field], tuple[str, str]], *, is_published: bool
) -> WantedTable:
    """Return a topic as the catalog should have it.

    Parameters
    ----------
    topic : TopicSettings
        Of a topic that is not deleted.
    owner : Owner
        The warehouse.
    spell : callable
        A column -> its name and type in the catalog's words.
    is_published : bool
        Whether there is a public table.
    """
    schema = public_schema(topic)
    marks = Marks(owner.warehouse_id, owner.prefix, topic.name, topic.topic_id)
    columns, partitioning = tuple(map(spell, schema)), len(PUBLIC_PARTITION_COLUMNS)
    name = table_name(topic.name, owner.prefix)
    return WantedTable(name, owner.location(topic.name), marks, schema, columns, partitioning, is_published)


def wanted_transactions(owner: Owner, schema: pa.Schema, spell: Callable[[pa.Field], tuple[str, str]]) -> WantedTable:
    """Return the transaction log as the catalog should have it.

    Parameters
    ----------
    owner : Owner
        The warehouse.
    schema : pyarrow.Schema
        Of T: a data column, then partition columns.
    spell : callable
        See :func:`wanted_table`.
    """
    marks = Marks(owner.warehouse_id, owner.prefix, TRANSACTION_LOG_ROOT, "")
    name, columns = f"{owner.prefix}{TRANSACTIONS}", tuple(map(spell, schema))
    return WantedTable(name, owner.location(TRANSACTION_LOG_ROOT), marks, schema, columns, len(schema) - 1)


def is_of(table: FoundTable, owner: Owner) -> bool:
    """Return whether a table that was found is the owner's: by its marks, and by where it points to."""
    marks = table.marks
    return (
        marks is not None
        and (marks.warehouse_id, marks.prefix) == (owner.warehouse_id, owner.prefix)
        and plain_location(table.location) == plain_location(owner.location(marks.topic))
    )


def plain_location(location: str | None) -> str | None:
    """Return a location as it compares: catalogs and engines write the same place in several ways."""
    if location is None:
        return None
    scheme, colon, rest = location.rstrip("/").partition(":")
    if not colon or "/" in scheme:
        return f"file:/{location.strip('/')}"
    if scheme == "file":
        return f"file:/{rest.strip('/')}"
    return f"{'s3' if scheme in {'s3a', 's3n'} else scheme}:{rest}"


def engine_root(url: str, *, s3: str) -> str:
    """Return a warehouse's URL as engines of the JVM read it.

    Parameters
    ----------
    url : str
        The warehouse's.
    s3 : str
        The scheme by which they know S3.

    Raises
    ------
    InvalidRequestError
        They do not: it lacks the storage account, or is in a process's memory.
    """
    scheme, colon, rest = url.rstrip("/").partition("://")
    if not colon:
        return Path(url).resolve().as_uri()
    if scheme in {"s3", "s3a"}:
        return f"{s3}://{rest}"
    if scheme in {"az", "memory"}:
        raise InvalidRequestError("engines cannot read this url; open the warehouse by an abfss:// one", warehouse=url)
    return f"{scheme}://{rest}"


def by_name(tables: Sequence[WantedTable]) -> dict[str, list[WantedTable]]:
    """Return tables by their names; of several with one name, at most one can be had."""
    found: dict[str, list[WantedTable]] = {}
    for table in tables:
        found.setdefault(table.name, []).append(table)
    return found
