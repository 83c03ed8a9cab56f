"""Bounds of the product that a run of a minute could not meet, lowered in every process of the run alike.

Owns which bounds there are, and that they keep the order that the protocol needs: a log is kept for ten guards at
least, what no log names is older than the longest upload before it goes.  Only the sizes are others: a day is seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from unittest.mock import patch

from txntable.format.topic_config import TOPIC_CONFIG
from txntable.log.log_view import LogContext

_GUARDS = 10
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What is lowered; the defaults are for a run in which no log is cleaned up.

    Attributes
    ----------
    guard_ms : int
        The age beyond which a view is not trusted.
    day_ms : int
        The least retention of logs, of removed files and of batch names.
    segments_ms : int
        How long partition logs remember what they have removed; an upload takes half of it at most.
    minute_ms : int
        The least retention of snapshots.
    unnamed_ms : int
        The age at which vacuum takes what no log names.
    checkpoint_entries : int
        After so many entries of a log comes a checkpoint, at least.
    """

    guard_ms: int = 300_000
    day_ms: int = _DAY_MS
    segments_ms: int = 3 * _DAY_MS
    minute_ms: int = 1_000
    unnamed_ms: int = 4_000
    checkpoint_entries: int = 100

    def times(self, factor: int) -> Limits:
        """Return bounds that are so many times longer, where they are short at all."""
        return replace(
            self,
            **{
                name: getattr(self, name) * factor
                for name in ("guard_ms", "day_ms", "segments_ms", "unnamed_ms")
                if self.day_ms < _DAY_MS
            },
        )

    def __post_init__(self) -> None:
        if self.day_ms < _GUARDS * self.guard_ms:
            raise ValueError("a log is kept for ten guards at least")


@contextmanager
def shortened(limits: Limits) -> Iterator[None]:
    """Let this process, and what judges in it, go by these bounds; a segment of a few records is large."""
    small = replace(TOPIC_CONFIG["segment.bytes"], lowest=1)
    with ExitStack() as stack:
        for name, value in (
            ("txntable.format.topic_config.TOPIC_CONFIG", MappingProxyType({**TOPIC_CONFIG, "segment.bytes": small})),
            ("txntable.warehouse.warehouse.LogContext", partial(LogContext, guard_ms=limits.guard_ms)),
            ("txntable.format.warehouse_settings._MINUTE_MS", limits.minute_ms),
            ("txntable.format.warehouse_settings._DAY_MS", limits.day_ms),
            ("txntable.log.cleanup.SMALLEST_RETENTION_MS", limits.day_ms),
            ("txntable.upkeep.coordinator_round.SMALLEST_RETENTION_MS", limits.day_ms),
            ("txntable.segments.topic_metadata.SEGMENTS_RETENTION_MS", limits.segments_ms),
            ("txntable.partition.tombstoning.LONGEST_UPLOAD_MS", limits.segments_ms // 2),
            ("txntable.coordinator.transaction_shard.LONGEST_UPLOAD_MS", limits.segments_ms // 2),
            ("txntable.compaction.compactor.LONGEST_UPLOAD_MS", limits.segments_ms // 2),
            ("txntable.compaction.vacuum.SMALLEST_AGE_MS", limits.unnamed_ms),
            ("txntable.log.checkpoint.SMALLEST_INTERVAL", limits.checkpoint_entries),
            ("tests.checker.logs.SMALLEST_RETENTION_MS", limits.day_ms),
        ):
            stack.enter_context(patch(name, value))
        yield
