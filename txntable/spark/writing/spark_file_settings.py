"""What Spark's own Parquet writer is told, so that its files are segments whatever the user has set (PROTOCOL.md §5.2).

Owns the settings of Parquet and of Spark on which the form of a file depends: all others of Parquet are taken away for
the job.  They are set on a session of our own; the user's is never touched.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from txntable.format.parquet_bounds import LARGEST_ROW_GROUP_BYTES
from txntable.format.schema import OFFSET_DELTA_COLUMN, segment_schema
from txntable.segments.segment import SegmentPlan
from txntable.segments.statistics import leaves

PARQUET_PREFIX = "parquet."
ENCRYPTION_SETTING = "parquet.crypto.factory.class"
MASK = (1 << 33) - 1
"""Of ``monotonically_increasing_id``: what counts the rows of a task from 0 on."""

_CODECS = {"none": "uncompressed", "lz4": "lz4_raw"}
# As Spark has it, of what is compressed already: each row group tries dictionaries anew, which smaller ones pay for.
ROW_GROUP_BYTES = 128 * 1024 * 1024
# Of what a row group decodes to, about: half of what a reader refuses.
ROW_GROUP_MEMORY = LARGEST_ROW_GROUP_BYTES // 2
# Long enough for any bound that statistics tell, short enough that two of them are in a footer.
_TRUNCATED_BYTES = 1100
_LOCAL_FILES = {
    # Without Hadoop's files of checksums beside each file.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
}
"""Spark's own, by which values and types are written."""

# Bytes that a value of a type has, about: as Spark guesses, too.
_GUESSED_BYTES = 20
_COMPRESSION = 4


def hadoop_settings(plan: SegmentPlan) -> dict[str, str]:
    """Return Parquet's settings of a job."""
    no_dictionary = [
        ".".join(leaf.path)
        for leaf in leaves(segment_schema(plan.settings.schema))
        # PROTOCOL.md §5.2: a value that is repeated inside of one record could not be told from a bomb.
        if leaf.repeated or leaf.path[0] == OFFSET_DELTA_COLUMN
    ]
    return {
        **_LOCAL_FILES,
        "parquet.writer.version": "v1",
        "parquet.enable.dictionary": "true",
        **{f"parquet.enable.dictionary#{path}": "false" for path in no_dictionary},
        "parquet.block.size": str(ROW_GROUP_BYTES),
        "parquet.block.row.count.limit": str(max(1, ROW_GROUP_MEMORY // guessed_width(plan.settings.schema))),
        "parquet.page.write-checksum.enabled": "true",
        "parquet.statistics.truncate.length": str(_TRUNCATED_BYTES),
        "parquet.compression.codec.zstd.level": "3",
    }


def write_options(plan: SegmentPlan, most_records: int) -> dict[str, str]:
    """Return the options of Spark's writer."""
    return {
        "compression": _CODECS.get(plan.codec, plan.codec),
        "maxRecordsPerFile": str(most_records),
    }


def records_per_file(schema: pa.Schema, segment_bytes: int, wanted: int) -> int:
    """Return how many records a file has at most, so that it has about ``segment.bytes``.

    Parameters
    ----------
    schema : pyarrow.Schema
        The topic's.
    segment_bytes : int
        The topic's setting.  Spark's writer counts records only, so they are guessed from the types.
    wanted : int
        The user's ``spark.sql.files.maxRecordsPerFile``; 0: none.
    """
    return wanted if wanted > 0 else max(1, segment_bytes * _COMPRESSION // guessed_width(schema))


def guessed_width(schema: pa.Schema) -> int:
    """Return how many bytes a record of a topic has in memory, about."""
    return sum(_guessed_bytes(field.type) for field in segment_schema(schema))


def _guessed_bytes(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _GUESSED_BYTES
