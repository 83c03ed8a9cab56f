"""``txntable produce``: its options, and which input and producer they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer

from txntable.cli.batch_option import batch_name
from txntable.cli.both_ways import both_ways
from txntable.cli.column_value import BytesForm
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.console_property import PRODUCER, with_properties
from txntable.cli.line_format import LineFormat
from txntable.cli.produce_run import BATCH_BYTES, ProduceRun
from txntable.cli.record_source import Reading, RecordFormat, format_of, read_records
from txntable.producer.producer_config import COMPRESSION_TYPES, DEFAULT_MAX_REQUEST_SIZE

STANDARD_INPUT = Path("-")

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        allow_dash=True,
        help="Default, and -: standard input.",
    ),
]
Format = Annotated[
    RecordFormat | None,
    typer.Option("--format", help="Default: by the file's suffix; of the standard input, and of .txt or none: lines."),
]
ParseKey = Annotated[bool, typer.Option("--parse-key", help="A line has a key before its value.")]
KeySeparator = Annotated[
    str, typer.Option("--key-separator", metavar="TEXT", show_default="a tab", help="Between key and value.")
]
ParseHeaders = Annotated[bool, typer.Option("--parse-headers", help="A line begins with headers.")]
HeadersDelimiter = Annotated[
    str,
    typer.Option("--headers-delimiter", metavar="TEXT", show_default="a tab", help="Between headers and what follows."),
]
HeadersSeparator = Annotated[str, typer.Option("--headers-separator", metavar="TEXT", help="Between two headers.")]
HeadersKeySeparator = Annotated[
    str, typer.Option("--headers-key-separator", metavar="TEXT", help="Between a header's name and its value.")
]
NullMarker = Annotated[
    str | None,
    typer.Option("--null-marker", metavar="TEXT", help="What stands for null in a line: a key, a tombstone."),
]
Base64 = Annotated[
    bool, typer.Option("--base64", help="Keys and values in JSON and CSV are base64, as --output json prints them.")
]
NullValue = Annotated[
    str, typer.Option("--null-value", metavar="TEXT", help="What an unquoted cell of CSV says where it is null.")
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", metavar="PARTITION", min=0, help="Where records go that name none; default: by key."),
]
TransactionalId = Annotated[
    str | None,
    typer.Option("--transactional-id", metavar="ID", help="Everything in one transaction of this id, or nothing."),
]
BatchIdOption = Annotated[
    str | None,
    typer.Option(
        "--batch-id",
        metavar="ID",
        callback=batch_name,
        help="Names the run, not by digits alone: one that has committed is not done twice.",
    ),
]
Compression = Annotated[
    str,
    typer.Option("--compression", metavar="|".join(COMPRESSION_TYPES), help="Of topics that leave it to producers."),
]
PartitionerName = Annotated[
    Literal["default", "round_robin"],
    typer.Option("--partitioner", help="By key and in turns without one; or each record to the next partition."),
]
MaxRequestSize = Annotated[
    int, typer.Option("--max-request-size", metavar="BYTES", help="Bytes of the largest record.")
]
TransactionTimeout = Annotated[
    int, typer.Option("--transaction-timeout-ms", metavar="MS", help="From the first append on, by the store's time.")
]


@both_ways("topic", "--topic")
@with_properties(PRODUCER, "--property", "--reader-property")
def produce(  # noqa: PLR0913 - the interface of a command
    connection: Connection,
    topic: Topic,
    file: File = None,
    record_format: Format = None,
    parse_key: ParseKey = False,
    key_separator: KeySeparator = "\t",
    parse_headers: ParseHeaders = False,
    headers_delimiter: HeadersDelimiter = "\t",
    headers_separator: HeadersSeparator = ",",
    headers_key_separator: HeadersKeySeparator = ":",
    null_marker: NullMarker = None,
    base64: Base64 = False,
    null_value: NullValue = "",
    partition: Partition = None,
    partitioner: PartitionerName = "default",
    compression: Compression = "zstd",
    max_request_size: MaxRequestSize = DEFAULT_MAX_REQUEST_SIZE,
    transactional_id: TransactionalId = None,
    batch_id: BatchIdOption = None,
    transaction_timeout_ms: TransactionTimeout = 60_000,
) -> None:
    """Send records from a file or the standard input: lines, JSON lines, CSV or Parquet.

    With --transactional-id and --batch-id a command that runs again does nothing; without them it sends everything
    again, and the records are there twice.
    """
    _check_batch(transactional_id, batch_id)
    marks = (key_separator if parse_key else None, headers_delimiter if parse_headers else None)
    line_format = _line_format(*marks, headers_separator, headers_key_separator, null_marker)
    bytes_form = BytesForm.BASE64 if base64 else None
    reading = Reading(_format(file, record_format, line_format), bytes_form, line_format, null_value)
    warehouse = connection.open()
    producer = warehouse.producer(
        transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        batch_size=BATCH_BYTES,
        max_request_size=max_request_size,
        partitioner=partitioner,
        compression_type=compression,
    )
    run = ProduceRun(warehouse, producer, topic, partition, batch_id)
    with _opened(file) as stream:
        run.execute(lambda settings: read_records(stream, settings, reading))
    connection.output.facts(run.facts())


def _check_batch(transactional_id: str | None, batch_id: str | None) -> None:
    if batch_id is not None and transactional_id is None:
        raise typer.BadParameter("needs --transactional-id", param_hint="--batch-id")


def _line_format(
    key_separator: str | None,
    headers_delimiter: str | None,
    headers_separator: str,
    headers_key_separator: str,
    null_marker: str | None,
) -> LineFormat:
    return LineFormat(
        None if key_separator is None else key_separator.encode(),
        None if headers_delimiter is None else headers_delimiter.encode(),
        headers_separator.encode(),
        headers_key_separator.encode(),
        None if null_marker is None else null_marker.encode(),
    )


def _format(file: Path | None, said: RecordFormat | None, line_format: LineFormat) -> RecordFormat:
    found = said or (RecordFormat.LINES if file is None or file == STANDARD_INPUT else format_of(file))
    if found is not RecordFormat.LINES and line_format.divides:
        raise typer.BadParameter(
            "only lines have --parse-key, --parse-headers and --null-marker", param_hint="--format"
        )
    return found


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO]:
    if file is None or file == STANDARD_INPUT:
        yield typer.get_binary_stream("stdin")
        return
    with file.open("rb") as stream:
        yield stream


command = on_warehouse(produce)
