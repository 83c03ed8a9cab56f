"""The order in which Java's hash tables hand out what is in them.

Kafka's sticky assignor walks over a ``HashMap`` of member ids and takes the first of a ``HashSet`` of partitions,
so its results depend on that order; ours must be the same ones.  A table has a power of two of buckets, and twice
as many once it is filled beyond three quarters; it is walked by bucket, in a bucket by insertion.  (Java turns
a bucket of more than eight into a tree; that no table of well spread hashes has, and it is not followed.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from txntable.coordinator.assignment import NamedPartition

ItemT = TypeVar("ItemT")

_FIRST_BUCKETS = 16


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` of `text`, as an unsigned 32-bit number."""
    units = text.encode("utf-16-be")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[place : place + 2], "big")) & 0xFFFFFFFF
    return value


def partition_hash(partition: NamedPartition) -> int:
    """Return ``TopicPartition.hashCode`` of `partition`, as an unsigned 32-bit number."""
    return (31 * (31 + partition[1]) + string_hash(partition[0])) & 0xFFFFFFFF


def hash_order(items: Iterable[ItemT], hash_of: Callable[[ItemT], int], most: int = 0) -> list[ItemT]:
    """Return `items` as a Java hash table walks over them.

    Parameters
    ----------
    items : iterable
        In the order in which they were put in.
    hash_of : callable
        Their hash, unsigned, 32 bits.
    most : int
        The most that the table ever held, where that is more than it holds: it never shrinks.
    """
    held = list(items)
    buckets = _FIRST_BUCKETS
    while max(most, len(held)) * 4 > buckets * 3:
        buckets *= 2

    def bucket(item: ItemT) -> int:
        value = hash_of(item)
        return (value ^ (value >> 16)) & (buckets - 1)

    return sorted(held, key=bucket)
