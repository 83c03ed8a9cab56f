"""What the store itself shows in the end: every entry that any log ever had, and the objects that are there.

Gathered by readers that share no code with the writers (JSON lines and Parquet footers); see ``gathering``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.checker.operations import Bounds, Place


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a log.

    Attributes
    ----------
    log : str
        The table's root.
    chain, computed : str, optional
        The hash of the entry below that it carries, and what that entry's bytes really give.
    """

    log: str
    version: int
    commit_id: str
    previous: str | None
    operation: str
    chain: str | None = None
    computed: str | None = None


@dataclass(frozen=True, slots=True)
class Recreated:
    """Other bytes that landed in a slot whose entry had been cleaned up.

    Attributes
    ----------
    log : str
        The table's root.
    commit_id : str
        Theirs.
    previous : str, optional
        What they were made on.
    after_ms : int
        How long after the entry itself.
    """

    log: str
    version: int
    commit_id: str
    previous: str | None
    after_ms: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """A producer id and epoch as the transaction log gave them, at a version."""

    transactional_id: str
    producer_id: int
    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A decided transaction: of the transaction log.

    Attributes
    ----------
    epoch : int
        The transaction's.
    enrolled : frozenset of (str, Place)
        Topic id, and topic and partition.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    position: int
    enrolled: frozenset[tuple[str, Place]] = frozenset()
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Batch:
    """A segment's registration in the partition logs, by a producer (not by a compaction)."""

    place: Place
    topic_id: str
    path: str
    version: int
    base: int
    records: int
    transactional: bool
    producer_id: int | None = None
    epoch: int | None = None
    first_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction in one partition."""

    place: Place
    topic_id: str
    producer_id: int
    epoch: int
    committed: bool
    position: int
    offset: int
    version: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record of any live segment, committed or not, with whose it is by its row (``None`` once settled or merged)."""

    place: Place
    offset: int
    value: str
    producer_id: int | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that a live version names, and the size of the object (``None``: there is none)."""

    path: str
    named_size: int
    found_size: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything, after the heal.

    Attributes
    ----------
    entries : tuple of Entry
        Of all logs, oldest first within each.
    recreated : tuple of Recreated
        What landed in slots that were free again.
    orphans : mapping of str to int
        Files that no live version names, with their age in ms.
    orphan_age_ms : int
        How old one may become before it must be gone; 0: not judged.
    undecided : frozenset of (Place, int, int)
        Place, producer id and epoch of transactions that are still open.
    bounds : mapping of Place to Bounds
        Of each partition of each live topic.
    whole : bool
        Every log is in here from its first entry on: what is not in here never was.
    """

    entries: tuple[Entry, ...] = ()
    recreated: tuple[Recreated, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    decisions: tuple[Decision, ...] = ()
    batches: tuple[Batch, ...] = ()
    markers: tuple[Marker, ...] = ()
    records: tuple[Record, ...] = ()
    references: tuple[Reference, ...] = ()
    orphans: Mapping[str, int] = field(default_factory=dict)
    orphan_age_ms: int = 0
    undecided: frozenset[tuple[Place, int, int]] = frozenset()
    bounds: Mapping[Place, Bounds] = field(default_factory=dict)
    whole: bool = False
