"""What a compaction is to do: decided by the planner, worked on by a rewriter, registered by the executor.

The rules are those of PROTOCOL.md §5.8.

Owns the values that travel between the three; a rewriter may run in another process, so that a task
holds all that it needs.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from txntable.partition.rewriting import Rewrite
from txntable.segments.segment_columns import PlannedSegment

# Of one rewrite: a commit of S bears 10,000 actions and more, and each source is one.
MOST_SOURCES = 5_000


@dataclass(frozen=True, slots=True)
class KeyCleaning:
    """Of each key only the latest record stays.

    Attributes
    ----------
    through : int
        Every offset below it is looked at.
    tombstones_through : int
        Tombstones below this offset have been there for ``delete.retention.ms`` and go, too.
    with_tombstones : frozenset of str
        Paths of sources that may hold such tombstones.
    memory_bytes : int
        How much memory the keys of one pass may take; with more keys there are more passes.
    """

    through: int
    tombstones_through: int
    with_tombstones: frozenset[str]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Segments of one partition that are written anew, by one worker.

    Attributes
    ----------
    partition : int
        From 0.
    sources : tuple of PlannedSegment
        Visible segments of S in offset order, next to each other; `start` cuts what is below the log start.
    by_key : KeyCleaning or None
        ``None``: every record stays, and the sources become as few segments as ``segment.bytes`` allows.
    """

    partition: int
    sources: tuple[PlannedSegment, ...]
    by_key: KeyCleaning | None = None

    @property
    def size(self) -> int:
        """Bytes of the sources."""
        return sum(source.size for source in self.sources)


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """What became of a task.

    Attributes
    ----------
    rewrites : tuple of Rewrite
        In offset order; sources that stay as they are, are in none.
    read_records, dropped_records : int
        Of the sources; and those that are in no output.
    failure : str or None
        Why the task cannot be done: a source is damaged.  The topic's other tasks can.
    """

    rewrites: tuple[Rewrite, ...] = ()
    read_records: int = 0
    dropped_records: int = 0
    failure: str | None = None

    @property
    def written_bytes(self) -> int:
        """Bytes of the outputs."""
        return sum(output.segment.size for rewrite in self.rewrites for output in rewrite.outputs)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """All that a topic's compaction is to do.

    Attributes
    ----------
    topic_id : str
        The topic as it was read.
    tasks : tuple of RewriteTask
        By partition, in offset order.
    aborted : tuple of str
        Paths of segments of aborted transactions.
    settled : tuple of str
        Paths of committed segments that stay, and are to carry their decision themselves.
    young : int
        How many visible segments are too young to be looked at.
    """

    topic_id: str
    tasks: tuple[RewriteTask, ...] = ()
    aborted: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    young: int = 0

    @property
    def size(self) -> int:
        """Bytes that are to be rewritten."""
        return sum(task.size for task in self.tasks)


@dataclass(frozen=True, slots=True)
class TopicReport:
    """What a topic's compaction did, or (a dry run) would do; ``None``: only the work itself tells.

    Attributes
    ----------
    topic : str
        Its name.
    merged_segments, written_segments : int
        Those whose place was taken, and those that took it.
    read_bytes, written_bytes : int
        Of these.
    dropped_records : int
        Older ones of their keys, and tombstones.
    aborted_segments, settled_segments : int
        Taken away; and those that carry their decision now.
    expired_segments : int
        Gone by retention.
    young_segments : int
        Left alone, since they were decided, or appended, less than ``snapshot_retention_ms`` ago.
    lost : int
        Rewrites that another compaction, a retention or a deletion had made impossible: the next run does them.
    """

    topic: str
    merged_segments: int = 0
    written_segments: int | None = 0
    read_bytes: int = 0
    written_bytes: int | None = 0
    dropped_records: int | None = 0
    aborted_segments: int = 0
    settled_segments: int = 0
    expired_segments: int = 0
    young_segments: int = 0
    lost: int = 0
    failures: tuple[str, ...] = field(default=())
