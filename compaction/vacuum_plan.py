"""Which objects of a warehouse may be deleted, and why; which stay, and why (PROTOCOL.md §5.7).

Owns the policy: ages and epochs.  Safety rests on none of it: what S names is live, and what is to go
is tombstoned first, so that nothing can name it later (``txntable.compaction.vacuum``).  Everything is judged as
of the moment at which the vacuum began: what came since is too young to go.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from txntable.format.layout import FileKind, FileName, parse_file_name
from txntable.log.table_state import TableState
from txntable.partition.projection import SEGMENTS_PREFIX
from txntable.partition.tombstoning import was_tombstoned
from txntable.partition.unstable_offsets import TransactionKey

SMALLEST_AGE_MS = 7 * 86_400_000
"""Of what no log names: whoever is about to name it has long been refused (half of S's retention)."""

# What a refused write of Spark or of another Delta writer leaves: it makes the files first, then tries to commit.
_DELTA_DATA = r"\.?(part|cdc)-\d+-[^/]*\.parquet(\.crc)?"
_DELTA_FOLDER = r"(_change_data|[^/=]+=[^/]*|[A-Za-z0-9]{2})"
_REFUSED_WRITE = re.compile(rf"(_segments/)?({_DELTA_FOLDER}/)*({_DELTA_DATA}|\.?deletion_vector_[^/]*\.bin(\.crc)?)")


class Reason(Enum):
    """Why an object stays, or goes; see :attr:`goes`."""

    LOG = "part of a log"
    LIVE = "a log names it"
    RETAINED = "removed, and not longer ago than the table's retention"
    YOUNG = "younger than seven days"
    CURRENT_EPOCH = "an upload of an epoch that may still append, or of a commit that is not complete"
    TRANSACTION = "a marker of a transaction that may still need it"
    UNKNOWN = "not of this format"
    REMOVED = "removed longer ago than the table's retention"
    TOMBSTONED = "tombstoned by a vacuum that did not finish"
    UNNAMED = "an upload or a marker that no log names"
    REFUSED_WRITE = "left by a refused write of other software"
    HEARTBEAT = "the heartbeat of nobody"
    PROBE = "left by a probe of the store"
    UNFINISHED = "left by a writer that was killed"

    @property
    def goes(self) -> bool:
        """Whether an object is deleted for this reason."""
        return self in _GOING


_GOING = frozenset(
    {
        Reason.REMOVED,
        Reason.TOMBSTONED,
        Reason.UNNAMED,
        Reason.REFUSED_WRITE,
        Reason.HEARTBEAT,
        Reason.PROBE,
        Reason.UNFINISHED,
    }
)


@dataclass(frozen=True, slots=True)
class Horizons:
    """Before which times of the store (ms since 1970) something is old enough to go.

    Attributes
    ----------
    unnamed : int
        Created: what no log names.
    segments, public : int
        Removed from S, and from P.
    """

    unnamed: int
    segments: int
    public: int


@dataclass(frozen=True, slots=True)
class TopicStates:
    """What the logs say of a topic's files.

    Attributes
    ----------
    segments, public : TableState
        Of S and of P.
    open : Collection of TransactionKey
        (producer id, epoch) of the transactions with data in S that no marker has ended.
    producers : Mapping[int, int]
        The epoch of each producer id that a transactional id has; of a decision that is not complete, the one that it
        ended.  Lower ones never append again, and nothing is owed of them.
    next_producer_id : int
        The first one that T had not given out yet: who has got it since may be at work.
    horizons : Horizons
        What is old.
    """

    segments: TableState
    public: TableState
    open: Collection[TransactionKey]
    producers: Mapping[int, int]
    next_producer_id: int
    horizons: Horizons


def judge_file(states: TopicStates, path: str, modified_ms: int) -> Reason:
    """Return why a file of a topic stays, or goes.

    Parameters
    ----------
    states : TopicStates
        The topic's.
    path : str
        Relative to P's root.
    modified_ms : int
        The store's time at which it was created.
    """
    below = path.removeprefix(SEGMENTS_PREFIX)
    if below.startswith("_delta_log/"):
        return Reason.LOG
    name = parse_file_name(below) if below != path else None
    if name is None:
        return judge_left_over(path, modified_ms, states.horizons.unnamed)
    if name.kind is FileKind.STATE:
        return Reason.LOG
    if below in states.segments.files or path in states.public.files:
        return Reason.LIVE
    return _judge_removed(states, below) or _judge_unnamed(states, name, modified_ms)


def _judge_removed(states: TopicStates, path: str) -> Reason | None:
    published = states.public.tombstones.get(SEGMENTS_PREFIX + path)
    if published is not None and published.deletion_ms >= states.horizons.public:
        return Reason.RETAINED
    appended = states.segments.tombstones.get(path)
    if appended is not None and was_tombstoned(appended):
        return Reason.TOMBSTONED
    # Nobody travels in time on S, but a scan of everything appended may be reading it.
    if appended is not None and appended.deletion_ms >= states.horizons.segments:
        return Reason.RETAINED
    return None if appended is None and published is None else Reason.REMOVED


def _judge_unnamed(states: TopicStates, name: FileName, modified_ms: int) -> Reason:
    if modified_ms >= states.horizons.unnamed:
        return Reason.YOUNG
    if name.producer is None:
        return Reason.UNNAMED
    producer_id, epoch = name.producer
    current = states.producers.get(producer_id)
    if producer_id >= states.next_producer_id or (current is not None and epoch >= current):
        return Reason.CURRENT_EPOCH
    # Whoever ends what hangs here writes this name.
    is_open = name.kind is FileKind.MARKER and name.producer in states.open
    return Reason.TRANSACTION if is_open else Reason.UNNAMED


def judge_left_over(path: str, modified_ms: int, horizon_ms: int) -> Reason:
    """Return why an object in a topic's folder that has none of this format's names stays, or goes.

    Parameters
    ----------
    path : str
        Relative to P's root.
    modified_ms : int
        The store's time at which it was created.
    horizon_ms : int
        What is younger stays.
    """
    if _REFUSED_WRITE.fullmatch(path) is None:
        return Reason.UNKNOWN
    return Reason.YOUNG if modified_ms >= horizon_ms else Reason.REFUSED_WRITE


def judge_heartbeat(members: Collection[str], path: str, modified_ms: int, horizon_ms: int) -> Reason:
    """Return why a heartbeat object stays, or goes.

    Parameters
    ----------
    members : collection of str
        The paths of the heartbeats of all members of all groups.
    path : str
        Relative to the warehouse's root.
    modified_ms : int
        The store's time of it.
    horizon_ms : int
        What is younger stays: its member may be about to join.
    """
    if path in members:
        return Reason.LIVE
    return Reason.YOUNG if modified_ms >= horizon_ms else Reason.HEARTBEAT
