"""Where a consumer stands in one partition: the next offset that it wants, or where it is to begin.

Owns Kafka's rule for an offset that cannot be read: it is one only below the log start or beyond all
that was appended.  Between the bound of an isolation level and the high watermark it is fine, and waits.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txntable.partition.topic_view import Bounds


class AutoOffsetReset(Enum):
    """Where a consumer begins that has no offset, or one that cannot be read; the value is Kafka's name."""

    EARLIEST = "earliest"
    """At the log start."""
    LATEST = "latest"
    """At the end: the last stable offset, or the high watermark."""
    NONE = "none"
    """Nowhere: it is an error."""


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """A position in one partition.

    Attributes
    ----------
    offset : int or None
        The next offset that is wanted; ``None``: `reset` says where it is, once that is asked.
    reset : AutoOffsetReset
        Where it begins, and again where the offset cannot be read.
    paused : bool
        Whether nothing is wanted for now.
    awaits_committed : bool
        Whether its group's committed offset is to be looked for first; until then nothing is wanted.
    sought : bool
        Whether the user chose it.
    """

    offset: int | None
    reset: AutoOffsetReset
    paused: bool = False
    awaits_committed: bool = False
    sought: bool = False

    def begins_at(self, bounds: Bounds) -> int | None:
        """Return the offset at which reading begins; ``None``: there is none, the offset cannot be read.

        An offset beyond the high watermark is none, as far as `bounds` know: who knows more decides.
        """
        if self.offset is None:
            return beginning(self.reset, bounds)
        return self.offset if bounds.start <= self.offset <= bounds.high_watermark else None


def beginning(reset: AutoOffsetReset, bounds: Bounds) -> int | None:
    """Return the offset at which a partition begins by a reset policy; ``None``: the policy names none."""
    return {AutoOffsetReset.EARLIEST: bounds.start, AutoOffsetReset.LATEST: bounds.end, AutoOffsetReset.NONE: None}[
        reset
    ]
