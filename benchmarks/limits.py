"""The limits of a warehouse, as the code has them, for the table of ``infra/REQUESTS.md``.

Owns the words; each number is the one that its module enforces.
"""

from __future__ import annotations

from collections.abc import Iterator

from txntable.compaction.spec import MOST_SOURCES
from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT
from txntable.coordinator.group import LARGEST_ROW_BYTES as LARGEST_GROUP_BYTES
from txntable.coordinator.group_request import DEFAULT_MAX_SIZE
from txntable.coordinator.offset_request import MAX_METADATA_BYTES
from txntable.coordinator.row_json import LARGEST_NUMBER, LONGEST_NAME_BYTES
from txntable.coordinator.transaction import LARGEST_ROW_BYTES
from txntable.format.layout import LONGEST_PATH
from txntable.log.keyed_log import LARGEST_COMMIT_ROWS
from txntable.partition.append import (
    LARGEST_COMMIT_BYTES,
    LARGEST_COMMIT_SEGMENTS,
    LARGEST_TRANSACTION_BYTES,
    LARGEST_TRANSACTION_SEGMENTS,
)
from txntable.partition.tombstoning import LARGEST_TOMBSTONING
from txntable.producer.producer_config import DEFAULT_MAX_REQUEST_SIZE, LARGEST_BATCH_SIZE
from txntable.segments.statistics import LARGEST_LEAVES, LARGEST_STRING
from txntable.warehouse.warehouse_creation import LONGEST_KEY_BYTES

_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
# Kafka's rule; the pattern of a topic's name says it.
_LONGEST_TOPIC_NAME = 249


def limits() -> Iterator[tuple[str, str, str]]:
    """Yield what is limited, to what, and what happens beyond."""
    yield "name of a topic", f"{_LONGEST_TOPIC_NAME} characters of `a-z A-Z 0-9 . _ -`", "`INVALID_TOPIC_EXCEPTION`"
    names = "transactional id, group, batch name, member id, instance id"
    yield names, f"{LONGEST_NAME_BYTES:,} bytes of UTF-8", "`INVALID_REQUEST`"
    yield "partitions of a topic", f"{LARGEST_PARTITION_COUNT:,}", "`INVALID_PARTITIONS`"
    room = f"keys have {LONGEST_KEY_BYTES:,}, the longest path {LONGEST_PATH}"
    prefix = f"{LONGEST_KEY_BYTES - 1 - LONGEST_PATH} bytes ({room})"
    yield "path of the warehouse's url", prefix, "`INVALID_REQUEST` at the creation"
    bounds = f"{_size(DEFAULT_MAX_REQUEST_SIZE)} by default, {_size(LARGEST_BATCH_SIZE)} at most"
    yield (
        "a record: key, value, headers, all columns",
        f"`max_request_size` ({bounds}), and the topic's `max.message.bytes`",
        "`MESSAGE_TOO_LARGE`; abort",
    )
    yield "records of a segment, headers of a record, columns of a topic", "none of their own", ""
    yield (
        "statistics of a segment",
        f"{LARGEST_LEAVES} columns, {LARGEST_STRING} characters of a text",
        "the rest is left out",
    )
    yield from _limits_of_commits()


def _limits_of_commits() -> Iterator[tuple[str, str, str]]:
    yield (
        "segments in one commit of a topic",
        f"{LARGEST_COMMIT_SEGMENTS:,}, or {_size(LARGEST_COMMIT_BYTES)} of actions",
        "several commits, of one transaction",
    )
    yield (
        "segments of one transaction in one topic",
        f"{LARGEST_TRANSACTION_SEGMENTS:,}, or {_size(LARGEST_TRANSACTION_BYTES)} of actions",
        "`MESSAGE_TOO_LARGE`; abort",
    )
    yield (
        "what one transaction enrols: topics, partitions, groups",
        f"{_size(LARGEST_ROW_BYTES)} of its row: about 14,000 topics of one partition",
        "`MESSAGE_TOO_LARGE`; abort",
    )
    yield "transactions completed in one commit", f"{LARGEST_COMMIT_ROWS:,}", "the rest in the next ones"
    yield "members of a group", f"{DEFAULT_MAX_SIZE:,}", "`GROUP_MAX_SIZE_REACHED`"
    yield "a group's row: members, what they own", _size(LARGEST_GROUP_BYTES), "`GROUP_MAX_SIZE_REACHED`"
    yield "metadata beside a committed offset", f"{MAX_METADATA_BYTES:,} bytes", "`OFFSET_METADATA_TOO_LARGE`"
    yield "segments merged into one", f"{MOST_SOURCES:,}", "more than one"
    yield "names tombstoned in one commit by vacuum", f"{LARGEST_TOMBSTONING:,}", "several commits"
    yield "offsets, sequences, epochs, positions", f"{LARGEST_NUMBER:,}", "they never wrap"


def _size(number: int) -> str:
    if number % _GIB == 0:
        return f"{number // _GIB} GiB"
    return f"{number // _MIB} MiB" if number % _MIB == 0 else f"{number // _KIB} KiB"
