"""What a topic's log S means: producers, open transactions, markers (PROTOCOL.md §5).

Owns the fold that turns S's commits into the state on which appends, markers and the projection
are decided.  All of it is a function of the live rows and the named numbers, so that
*state(checkpoint + tail) = state(fold from version 0)*, after any maintenance.
Must not do any I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from txntable.errors import DamagedDataError
from txntable.log.actions import Add, Commit, Metadata, Remove
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_of
from txntable.partition.markers import Control, Marker, marker_of
from txntable.partition.producer_state import ProducerEntry, after_append, after_marker
from txntable.partition.replay import replay
from txntable.partition.state_entry import Cleaning, StateEntry, state_entry_of
from txntable.topic import TopicSettings
from txntable.topic_metadata import settings_of

_JOURNAL_PATHS = 100_000

TransactionKey = tuple[int, int]


@dataclass(slots=True)
class OpenTransaction:
    """A transaction with data here that no marker has ended.

    Attributes
    ----------
    batches : dict of str to Batch
        Its live segments by path.
    """

    batches: dict[str, Batch] = field(default_factory=dict)
    # It is asked for at every append: kept, and counted anew only after a removal.
    _first_offsets: dict[int, int] | None = field(default=None, compare=False)

    @property
    def first_offsets(self) -> Mapping[int, int]:
        """Partition -> first offset of its live data there."""
        if self._first_offsets is None:
            self._first_offsets = {}
            for batch in self.batches.values():
                self._count(self._first_offsets, batch)
        return self._first_offsets

    def add(self, batch: Batch) -> None:
        """Take one more segment of the transaction."""
        self.batches[batch.path] = batch
        if self._first_offsets is not None:
            self._count(self._first_offsets, batch)

    def discard(self, path: str) -> None:
        """Take note that a segment is gone: it holds nothing back any more."""
        self.batches.pop(path, None)
        self._first_offsets = None

    @staticmethod
    def _count(first_offsets: dict[int, int], batch: Batch) -> None:
        first = first_offsets.get(batch.partition, batch.base_offset)
        first_offsets[batch.partition] = min(first, batch.base_offset)


class PartitionLogs:
    """The state of all partitions of a topic; a :class:`txntable.log.delta_log.Fold`.

    Attributes
    ----------
    settings : TopicSettings or None
        ``None`` before the topic is created.
    producers : dict
        (partition, producer id) -> :class:`ProducerEntry`.
    open : dict
        (producer id, epoch) -> :class:`OpenTransaction`.
    markers : dict
        (producer id, ended epoch) -> :class:`Marker`, as long as its row lives.
    cleanings : dict
        Partition -> its compactions by key, the oldest first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._forget()

    def _forget(self) -> None:
        self.settings: TopicSettings | None = None
        self.producers: dict[tuple[int, int], ProducerEntry] = {}
        self.open: dict[TransactionKey, OpenTransaction] = {}
        self.markers: dict[TransactionKey, Marker] = {}
        self.cleanings: dict[int, tuple[Cleaning, ...]] = {}
        # (version, paths whose visibility that commit may have changed), oldest first.
        self._journal: deque[tuple[int, list[str]]] = deque()
        self._journal_paths = 0

    # -- the fold ---------------------------------------------------------------------------

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded."""
        self._forget()
        if table.metadata is not None:
            self.settings = settings_of(self.name, table.metadata)
            replayed = replay(table.files.to_table())
            self.producers, self.markers = replayed.producers, replayed.markers
            self.cleanings = replayed.cleanings
            for producer, batch in replayed.undecided:
                self._open(producer, batch)

    def in_transaction(self, partition: int, producer_id: int) -> bool:
        """Return whether the producer has an open transaction with data in the partition."""
        return any(key[0] == producer_id and partition in t.first_offsets for key, t in self.open.items())

    def ending_of(self, batch: Batch) -> Marker | None:
        """Return the marker that ended a batch's transaction; ``None`` too when no marker decides about it."""
        if not batch.transactional or batch.producer is None:
            return None
        return self.markers.get((batch.producer.producer_id, batch.producer.epoch))

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        touched: list[str] = []
        batches: list[Batch] = []
        markers: list[Marker] = []
        states: dict[int, StateEntry] = {}
        for action in commit.actions:
            match action:
                case Metadata():
                    self._apply_metadata(action)
                case Remove():
                    self._apply_remove(action, table, touched)
                case Add() if action.partition_values["_control"] == Control.STATE.value:
                    state = state_entry_of(action.path, action.partition_values, action.tag)
                    states[state.partition] = state
                case Add():
                    self._sort_add(action, batches, markers, touched)
        self._apply_states(states)
        # A commit holds batches of producers or markers, never both; settled and merged rows are nobody's batches.
        for batch in sorted(batches, key=lambda b: (b.partition, b.base_offset)):
            self._apply_batch(batch)
        for marker in sorted(markers, key=lambda m: m.position):
            self._apply_marker(marker, touched)
        self._write_journal(commit.version, touched)

    def _apply_metadata(self, metadata: Metadata) -> None:
        settings = settings_of(self.name, metadata)
        if self.settings is not None and settings.topic_id != self.settings.topic_id:
            # A re-created topic shares the log and nothing else.
            self.producers, self.open, self.markers, self.cleanings = {}, {}, {}, {}
        self.settings = settings

    def _apply_remove(self, remove: Remove, table: TableState, touched: list[str]) -> None:
        old = table.files.get(remove.path)
        if old is None:
            return
        control = old.partition_values["_control"]
        if control in (Control.COMMIT.value, Control.ABORT.value):
            marker = marker_of(old.path, old.partition_values)
            self.markers.pop((marker.producer_id, marker.ends), None)
        elif control is None:
            touched.append(old.path)
            self._close_removed(batch_of(old))

    def _close_removed(self, batch: Batch) -> None:
        """Retention may take data of an open transaction: what is gone holds nothing back."""
        if batch.producer is None:
            return
        key = (batch.producer.producer_id, batch.producer.epoch)
        transaction = self.open.get(key)
        if transaction is not None:
            transaction.discard(batch.path)
            if not transaction.batches:
                del self.open[key]

    def _sort_add(self, add: Add, batches: list[Batch], markers: list[Marker], touched: list[str]) -> None:
        match add.partition_values["_control"]:
            case None:
                batches.append(batch_of(add))
                touched.append(add.path)
            case Control.COMMIT.value | Control.ABORT.value:
                markers.append(marker_of(add.path, add.partition_values))
            case unknown:
                raise DamagedDataError("a row has a control that this format does not have", control=unknown)

    def _apply_states(self, states: Mapping[int, StateEntry]) -> None:
        """Take entries as the whole truth below their commit: a producer that one lacks has expired."""
        if not states:
            return
        # Of all partitions at once: a compaction writes the entries of hundreds, for very many producers.
        self.producers = {key: entry for key, entry in self.producers.items() if key[0] not in states}
        for partition, state in states.items():
            self.producers.update({(partition, producer_id): entry for producer_id, entry in state.producers.items()})
            self.cleanings.pop(partition, None)
            if state.cleaned:
                self.cleanings[partition] = state.cleaned

    def _apply_batch(self, batch: Batch) -> None:
        if batch.producer is None:
            return
        key = (batch.partition, batch.producer.producer_id)
        entry = after_append(self.producers.get(key), batch)
        if entry is not None:
            self.producers[key] = entry
        if batch.transactional and (batch.producer.producer_id, batch.producer.epoch) not in self.markers:
            self._open(batch.producer, batch)

    def _open(self, producer: ProducerEpoch, batch: Batch) -> None:
        self.open.setdefault((producer.producer_id, producer.epoch), OpenTransaction()).add(batch)

    def _apply_marker(self, marker: Marker, touched: list[str]) -> None:
        key = (marker.producer_id, marker.ends)
        for partition in marker.offsets:
            entry = self.producers.get((partition, marker.producer_id))
            self.producers[partition, marker.producer_id] = after_marker(entry, marker, partition)
        self.markers[key] = marker
        ended = self.open.pop(key, None)
        if ended is not None:
            touched.extend(ended.batches)

    # -- the journal ------------------------------------------------------------------------

    def _write_journal(self, version: int, touched: list[str]) -> None:
        self._journal.append((version, touched))
        self._journal_paths += len(touched)
        while self._journal_paths > _JOURNAL_PATHS and len(self._journal) > 1:
            self._journal_paths -= len(self._journal.popleft()[1])

    def touched_since(self, version: int | None) -> set[str] | None:
        """Return the paths whose visibility may have changed after `version`.

        Returns
        -------
        set of str or None
            ``None``: not known that far back; compare everything.
        """
        if version is None or not self._journal or self._journal[0][0] > version + 1:
            return None
        return set(chain.from_iterable(paths for at, paths in self._journal if at > version))
