"""A record as one line of output: as Kafka's console consumer prints it, or as a JSON object.

Owns which parts of a record are printed, and in which order.  What is printed as JSON is what `txntable produce
--format json` reads, as long as no parts were asked for that only a stored record has.  Pure; must not know of files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from txntable.cli.column_value import BytesForm
from txntable.cli.output import instant_text, json_value
from txntable.cli.record_columns import PARTITION, TIMESTAMP_MS
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.errors import InvalidRequestError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.control_characters import escaped, escaped_in_json
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.segments.segment_reader import COMMIT_COLUMN, OFFSET_COLUMN, PARTITION_COLUMN

RecordLine = Callable[[ConsumerRecord], bytes]


@dataclass(frozen=True, slots=True)
class PrintedParts:
    """What is printed of a record beside its value or columns, and what stands between the parts.

    Attributes
    ----------
    timestamp, partition, offset, headers, key : bool
        Whether each of them is printed.
    key_separator : bytes
        Between the parts of a line.
    headers_separator : bytes
        Between two headers.
    null_literal : bytes
        What stands for null.
    """

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    headers: bool = False
    key: bool = False
    key_separator: bytes = b"\t"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"

    def line(self, record: ConsumerRecord) -> bytes:
        """Return a record with Kafka's columns as Kafka prints it, without the line's end."""
        parts = []
        if self.timestamp:
            parts.append(b"CreateTime:%d" % record.timestamp_ms)
        if self.partition:
            parts.append(b"Partition:%d" % record.partition)
        if self.offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.headers:
            parts.append(self._headers(record))
        if self.key:
            parts.append(self._or_null(record.key))
        return self.key_separator.join([*parts, self._or_null(record.value)])

    def _headers(self, record: ConsumerRecord) -> bytes:
        pairs = (name.encode() + b":" + self._or_null(value) for name, value in record.headers)
        return self.headers_separator.join(pairs) or b"NO_HEADERS"

    def _or_null(self, part: bytes | None) -> bytes:
        return self.null_literal if part is None else part


def record_line(
    topic: TopicSettings, parts: PrintedParts, bytes_form: BytesForm | None, *, as_json: bool
) -> RecordLine:
    """Return what prints the records of a topic.

    Parameters
    ----------
    topic : TopicSettings
        The topic.
    parts : PrintedParts
        What is printed.
    bytes_form : BytesForm or None
        How bytes stand in JSON; ``None``: Kafka's columns as text, others as base64.
    as_json : bool
        Whether a line is a JSON object; topics with a schema of their own have no other form.

    Returns
    -------
    callable
        Record -> its line, without an end.  Raises :class:`InvalidRequestError` where bytes are no text.
    """
    if topic.schema != KAFKA_SCHEMA:
        return lambda record: _json(_own_columns(record, parts))
    if not as_json:
        return parts.line
    form = bytes_form or BytesForm.TEXT
    return lambda record: _json(_kafkas_columns(record, parts, form))


def _json(document: dict[str, Any]) -> bytes:
    return escaped_in_json(json.dumps(document, ensure_ascii=False)).encode()


def _own_columns(record: ConsumerRecord, parts: PrintedParts) -> dict[str, Any]:
    document: dict[str, Any] = {name: json_value(value) for name, value in record.row.items()}
    document[TIMESTAMP_COLUMN] = instant_text(record.timestamp_ms)
    if parts.partition:
        document[PARTITION_COLUMN] = record.partition
    if parts.offset:
        document[OFFSET_COLUMN] = record.offset
        document[COMMIT_COLUMN] = record.commit
    return document


def _kafkas_columns(record: ConsumerRecord, parts: PrintedParts, form: BytesForm) -> dict[str, Any]:
    document: dict[str, Any] = {TIMESTAMP_MS: record.timestamp_ms}
    if parts.partition:
        document[PARTITION] = record.partition
    if parts.offset:
        document["offset"] = record.offset
        document["commit"] = record.commit
    try:
        headers = [[name, _in_json(value, form)] for name, value in record.headers]
        document |= {"key": _in_json(record.key, form), "value": _in_json(record.value, form)}
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            "a record has bytes that are no text; say --base64",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
        ) from error
    return {**document, "headers": headers} if headers else document


def _in_json(data: bytes | None, form: BytesForm) -> Any:
    if data is None or form is BytesForm.BASE64:
        return json_value(data)
    return data.decode()


def for_terminal(line: bytes) -> bytes:
    """Return a line as a terminal may have it: only text and tabs, whatever a record holds."""
    return escaped(line.decode(errors="backslashreplace"), keep="\t").encode()
