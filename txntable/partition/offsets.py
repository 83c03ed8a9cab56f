"""The named numbers of a topic's tables: offsets that must outlive the files (PROTOCOL.md §5.1).

They are Delta ``txn`` actions, one for each name; these are the only names.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NEXT_OFFSET = "next_offset"
LOG_START = "log_start"
HIGH_WATERMARK = "high_watermark"
LAST_STABLE = "lso"
DECIDED_THROUGH = "decided_through"
MERGED_THROUGH = "merged_through"
REFLECTS = "reflects"
# Of any topic id: a log that was used again keeps the numbers of the topic before.
_OF_TOPIC = "/[0-9a-f]{32}"
_OF_PARTITION = f"{_OF_TOPIC}/(?:0|[1-9][0-9]{{0,4}})"
_OF_BOTH = f"(?:{DECIDED_THROUGH}|{MERGED_THROUGH}){_OF_TOPIC}"
SEGMENTS_NUMBERS = re.compile(f"(?:{NEXT_OFFSET}|{LOG_START}){_OF_PARTITION}|{_OF_BOTH}")
PUBLIC_NUMBERS = re.compile(f"{REFLECTS}|(?:{HIGH_WATERMARK}|{LAST_STABLE}|{LOG_START}){_OF_PARTITION}|{_OF_BOTH}")


def per_partition(name: str, topic_id: str, partition: int) -> str:
    """Return the name of a partition's number."""
    return f"{name}/{topic_id}/{partition}"


def per_topic(name: str, topic_id: str) -> str:
    """Return the name of a topic's number."""
    return f"{name}/{topic_id}"


def partition_of(name: str) -> int | None:
    """Return the partition that a number of S bounds; ``None``: it is a topic's."""
    kind, _, rest = name.partition("/")
    return int(rest.rpartition("/")[2]) if kind in (NEXT_OFFSET, LOG_START) else None


def next_offset(numbers: Mapping[str, int], topic_id: str, partition: int) -> int:
    """Return the offset that the partition's next record or marker gets."""
    return numbers.get(per_partition(NEXT_OFFSET, topic_id, partition), 0)


def log_start(numbers: Mapping[str, int], topic_id: str, partition: int) -> int:
    """Return the partition's log start offset."""
    return numbers.get(per_partition(LOG_START, topic_id, partition), 0)


def decided_through(numbers: Mapping[str, int], topic_id: str) -> int:
    """Return the decision position up to which the topic has all its markers."""
    return numbers.get(per_topic(DECIDED_THROUGH, topic_id), 0)


def merged_through(numbers: Mapping[str, int], topic_id: str) -> int:
    """Return the highest decision position that a merged segment holds."""
    return numbers.get(per_topic(MERGED_THROUGH, topic_id), 0)
