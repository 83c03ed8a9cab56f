"""What lets a run of seconds meet rules of days: small segments are large, and what vacuum takes may be young."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from unittest.mock import patch

import txntable.format.topic_config
from txntable.partition.append import LARGEST_COMMIT_SEGMENTS


@contextmanager
def small_limits(vacuum_age_ms: int, most_completed: int = LARGEST_COMMIT_SEGMENTS) -> Iterator[None]:
    """Let a few records make a large segment, vacuum take what is so old, and a completer write so much at once."""
    known = txntable.format.topic_config.TOPIC_CONFIG
    small = MappingProxyType({**known, "segment.bytes": replace(known["segment.bytes"], lowest=1)})
    with (
        patch("txntable.format.topic_config.TOPIC_CONFIG", small),
        patch("txntable.compaction.vacuum.SMALLEST_AGE_MS", vacuum_age_ms),
        patch("txntable.partition.completion.LARGEST_COMMIT_SEGMENTS", most_completed),
    ):
        yield
