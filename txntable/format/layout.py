"""Where everything lies in a warehouse (PROTOCOL.md §2): every path is built here.

Pure.  Paths are relative to the warehouse's root unless the function's name says otherwise.
No path contains ``=``: readers would take it for a partition folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import encode_key
from txntable.coordinator.topic_name import is_topic_name
from txntable.errors import InvalidTopicError
from txntable.format.object_path import TEMPORARY_PREFIX

WAREHOUSE_FILE = "_warehouse.json"
CLOCK_PATH = "system/clock"
PROBE_FOLDER = "system/probe"
TRANSACTION_LOG_ROOT = "system/transaction_log"
OFFSET_LOG_ROOT = "system/offset_log"
HEARTBEATS_FOLDER = "system/heartbeats"
TOPICS_FOLDER = "topics"
LONGEST_PATH = 387
"""Characters, all of them ASCII: of a segment of a topic with the longest name."""

_SEGMENT = re.compile(r"p\d{5}/[0-9a-f]{32}-(?:x-x|(\d+)-(\d+))-[0-9a-f]{32}\.parquet")
_SPARK_SEGMENT = re.compile(
    r"parts/(?:x-x|(\d+)-(\d+))/part-(\d{5,8})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-c(\d{3,6})"
    r"(?:\.[a-z0-9]{2,6})?\.parquet"
)
_PATTERN = re.compile(r"[*?\[\]()|^$+\\]")
_MARKER = re.compile(r"markers/[0-9a-f]{32}-(\d+)-(\d+)\.parquet")
_STATE = re.compile(r"state/p\d{5}\.parquet")


class FileKind(Enum):
    """What a file that S may name is."""

    SEGMENT = "segment"
    MARKER = "marker"
    STATE = "state entry"


_KINDS = (
    (FileKind.SEGMENT, _SEGMENT),
    (FileKind.SEGMENT, _SPARK_SEGMENT),
    (FileKind.MARKER, _MARKER),
    (FileKind.STATE, _STATE),
)


@dataclass(frozen=True, slots=True)
class FileName:
    """What the name of a file below S's root says.

    Attributes
    ----------
    kind : FileKind
        Which of the three.
    producer : tuple of int or None
        Producer id and epoch; ``None``: of no producer.
    """

    kind: FileKind
    producer: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SparkFileName:
    """What the name of a segment that Spark's own writer made says.

    Attributes
    ----------
    task : int
        Which of the job's tasks made it, from 0.
    number : int
        Which of the task's files it is, from 0.
    """

    task: int
    number: int


SNAPSHOT_VIEW = "txntable_snapshot"
"""The view that tells the position of a snapshot in SQL; no topic is called so."""


def check_topic_name(name: str) -> str:
    """Return `name` when Kafka would accept it as a topic's name.

    Raises
    ------
    InvalidTopicError
        Kafka's rule: 1 to 249 of ASCII letters, digits, ``.``, ``_`` and ``-``; not ``.`` or ``..``.  And ours: what
        begins with ``.unfinished-`` is no object of a store.
    """
    if not is_topic_name(name) or name.startswith(TEMPORARY_PREFIX):
        raise InvalidTopicError(
            "a topic's name has 1 to 249 characters of a-z A-Z 0-9 . _ -, and is neither . nor .., nor a reserved name"
            + ("; there are no patterns here: name one topic" if _PATTERN.search(str(name)) else ""),
            name=shown(name),
        )
    return name


def check_new_topic_name(name: str) -> str:
    """Return `name` when a new topic may have it.

    Raises
    ------
    InvalidTopicError
        As :func:`check_topic_name`; or it ends with what SQL calls the position's view: take another name.
    """
    if check_topic_name(name).lower().endswith(SNAPSHOT_VIEW):
        raise InvalidTopicError(
            "a name that ends so is reserved for a view of SQL; take another name", name=name, reserved=SNAPSHOT_VIEW
        )
    return name


def twins(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that differ from one by case only: SQL takes them for one, and so do some file systems."""
    return [other for other in names if other != name and other.lower() == name.lower()]


def topic_names(folders: Iterable[str]) -> list[str]:
    """Return those of the folders in :data:`TOPICS_FOLDER` that can be topics'; the others are somebody else's."""
    return [folder for folder in folders if is_topic_name(folder)]


def public_root(topic: str) -> str:
    """Return the root of the topic's public table P."""
    return f"{TOPICS_FOLDER}/{topic}"


def segments_root(topic: str) -> str:
    """Return the root of the topic's partition logs S."""
    return f"{TOPICS_FOLDER}/{topic}/_segments"


def segment_path(topic_id: str, partition: int, producer: tuple[int, int] | None, unique: str) -> str:
    """Return a new segment's path, relative to S's root.

    Parameters
    ----------
    topic_id : str
        32 hex digits.
    partition : int
        From 0.
    producer : tuple of int, optional
        Producer id and epoch; ``None`` for an at-least-once producer.
    unique : str
        32 hex digits that no other segment has.
    """
    return f"p{partition:05d}/{topic_id}-{_owner(producer)}-{unique}.parquet"


def _owner(producer: tuple[int, int] | None) -> str:
    return "x-x" if producer is None else f"{producer[0]}-{producer[1]}"


def spark_segments_folder(producer: tuple[int, int] | None) -> str:
    """Return the folder, relative to S's root, of the segments that Spark's own writer makes for a producer.

    Their partition is chosen when the files are there, so no path says it.
    """
    return f"parts/{_owner(producer)}"


def parse_spark_name(path: str) -> SparkFileName | None:
    """Return what the path of a segment of Spark's own writer says, relative to S's root; ``None``: it is none."""
    match = _SPARK_SEGMENT.fullmatch(path)
    return None if match is None else SparkFileName(int(match[3]), int(match[5]))


def segment_name(path: str) -> str:
    """Return what no other segment's path has, its 32 hex digits: a batch that is tried again is the same file."""
    match = _SPARK_SEGMENT.fullmatch(path)
    return path.removesuffix(".parquet").rpartition("-")[2] if match is None else match[4].replace("-", "")


def marker_path(topic_id: str, producer_id: int, epoch: int) -> str:
    """Return the path of a transaction's marker row, relative to S's root."""
    return f"markers/{topic_id}-{producer_id}-{epoch}.parquet"


def state_path(partition: int) -> str:
    """Return the path of a partition's state entry, relative to S's root."""
    return f"state/p{partition:05d}.parquet"


def parse_file_name(path: str) -> FileName | None:
    """Return what a path relative to S's root says; ``None``: it is none that this module makes."""
    for kind, pattern in _KINDS:
        match = pattern.fullmatch(path)
        if match is not None:
            owner = match.groups()[:2]
            return FileName(kind, (int(owner[0]), int(owner[1])) if owner and owner[0] is not None else None)
    return None


def key_path(kind: str, key: str) -> str:
    """Return the path of a keyed table's row, relative to the table's root.

    The first 32 hex digits of SHA-256 over the UTF-8 bytes of `kind` followed by `key`
    (`key` is a JSON array): nothing to escape, one path for one key for ever.
    """
    return f"k/{_hashed(kind + key)}.parquet"


def heartbeat_path(group: str, member_id: str) -> str:
    """Return the path of a group member's heartbeat; the names are hashed as those of keys are."""
    folder, member = _hashed("group" + encode_key(group)), _hashed("member" + encode_key(group, member_id))
    return f"{HEARTBEATS_FOLDER}/{folder}/{member}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def commit_path(root: str, version: int) -> str:
    """Return the path of one entry of the Delta log at `root`."""
    return f"{root}/_delta_log/{version:020d}.json"


def checkpoint_path(root: str, version: int) -> str:
    """Return the path of the checkpoint of one version of the Delta log at `root`."""
    return f"{root}/_delta_log/{version:020d}.checkpoint.parquet"


def last_checkpoint_path(root: str) -> str:
    """Return the path of the hint that names the newest checkpoint."""
    return f"{root}/_delta_log/_last_checkpoint"


def log_folder(root: str) -> str:
    """Return the folder of the Delta log at `root`."""
    return f"{root}/_delta_log"
