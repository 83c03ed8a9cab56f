"""The columns that input for a topic can have: the topic's, and what else a record has.

Owns what may be left out (nullable columns), and the names of a record's own parts: ``timestamp``
(ms since 1970) and ``partition`` beside Kafka's columns, ``_timestamp`` beside others.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txntable.cli.column_value import BytesForm, Reader, headers_reader, shown, value_reader
from txntable.format.conform import TIMESTAMP_COLUMN, check_names
from txntable.format.delta_types import TIMESTAMP
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings

PARTITION = "partition"
TIMESTAMP_MS = "timestamp"
_LARGEST_MS = (1 << 63) // 1000 - 1
_US_PER_MS = 1000


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """What input for one topic can have.

    Attributes
    ----------
    topic : TopicSettings
        The topic.
    schema : pyarrow.Schema
        The topic's columns, then the record's own parts.
    readers : Mapping[str, Reader]
        For each of them, what reads its JSON.
    are_kafkas : bool
        Whether the topic has Kafka's default columns.
    bytes_form : BytesForm
        How binary columns stand in text.
    """

    topic: TopicSettings
    schema: pa.Schema
    readers: Mapping[str, Reader]
    are_kafkas: bool
    bytes_form: BytesForm

    def table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Return records whose values were read as a table, without parts that none of them has."""
        return self._trimmed(pa.Table.from_pylist(rows, self.schema))

    def completed(self, table: pa.Table, absent: Sequence[pa.Field]) -> pa.Table:
        """Return a table with columns of nulls for those that the input leaves out."""
        for column in absent:
            table = table.append_column(column, pa.nulls(table.num_rows, column.type))
        return self._trimmed(table)

    def _trimmed(self, table: pa.Table) -> pa.Table:
        if TIMESTAMP_MS in table.column_names and self.are_kafkas:
            micros = pc.multiply(table.column(TIMESTAMP_MS), _US_PER_MS).cast(TIMESTAMP)
            table = table.drop_columns([TIMESTAMP_MS]).append_column(pa.field(TIMESTAMP_COLUMN, TIMESTAMP), micros)
        own = [name for name in (TIMESTAMP_COLUMN, PARTITION) if name not in self.topic.schema.names]
        unused = [
            name for name in own if name in table.column_names and table.column(name).null_count == table.num_rows
        ]
        return table.drop_columns(unused)

    def absent(self, found: Sequence[str]) -> list[pa.Field]:
        """Return the nullable columns of the topic that input with these columns leaves out.

        Raises
        ------
        SchemaMismatchError
            A required one is missing, or one is unknown or there twice.
        """
        own = {TIMESTAMP_MS, PARTITION} if self.are_kafkas else set()
        twice = [name for name in own if list(found).count(name) > 1]
        check_names([*(name for name in found if name not in own), *twice * 2], self.topic)
        return [column for column in self.topic.schema if column.name not in found]


def columns_of(topic: TopicSettings, bytes_form: BytesForm | None) -> RecordColumns:
    """Return what input for a topic can have.

    Parameters
    ----------
    topic : TopicSettings
        The topic.
    bytes_form : BytesForm or None
        How binary columns stand in text; ``None``: Kafka's columns as text, others as base64.
    """
    if topic.schema == KAFKA_SCHEMA:
        form = bytes_form or BytesForm.TEXT
        own = [pa.field(TIMESTAMP_MS, pa.int64()), pa.field(PARTITION, pa.int32())]
        readers = {column.name: value_reader(column, form) for column in KAFKA_SCHEMA}
        readers["headers"] = headers_reader(form)
        readers[TIMESTAMP_MS] = _number_reader(_LARGEST_MS)
        readers[PARTITION] = _number_reader(topic.partitions - 1)
        return RecordColumns(topic, pa.schema([*KAFKA_SCHEMA, *own]), readers, True, form)
    form = bytes_form or BytesForm.BASE64
    schema = pa.schema([*topic.schema, pa.field(TIMESTAMP_COLUMN, TIMESTAMP)])
    return RecordColumns(topic, schema, {column.name: value_reader(column, form) for column in schema}, False, form)


def _number_reader(largest: int) -> Reader:
    def read(value: Any) -> int | None:
        if value is not None and (type(value) is not int or not 0 <= value <= largest):
            raise ValueError(f"expected an integer between 0 and {largest}, found {shown(value)}")
        return value

    return read
