"""What a topic's log S means: producers, open transactions, markers (PROTOCOL.md §5).

Owns the fold that turns S's commits into the state on which appends, markers and the projection
are decided.  All of it is a function of the live rows and the named numbers, so that
*state(checkpoint + tail) = state(fold from version 0)*, after any maintenance.
Must not do any I/O.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import chain, takewhile

from txntable.errors import DamagedDataError
from txntable.format.partition_values import check_columns
from txntable.format.topic import TopicSettings
from txntable.log.action_fields import check_number_names
from txntable.log.actions import Add, Commit, Metadata, Remove, Txn
from txntable.log.overlay import Overlay
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_of
from txntable.partition.markers import Control, Marker, marker_of
from txntable.partition.offsets import SEGMENTS_NUMBERS, partition_of
from txntable.partition.producer_state import ProducerEntry, after_append, after_marker
from txntable.partition.replay import COLUMNS, replay
from txntable.partition.state_entry import Cleaning, StateEntry, state_entry_of
from txntable.partition.unstable_offsets import TransactionKey, UnstableOffsets
from txntable.segments.topic_metadata import settings_of

_JOURNAL_PATHS = 100_000
_JOURNAL_COMMITS = 4_096


@dataclass(slots=True)
class OpenTransaction:
    """A transaction with data here that no marker has ended.

    Attributes
    ----------
    batches : Mapping of str to Batch
        Its live segments by path.
    """

    batches: MutableMapping[str, Batch] = field(default_factory=dict)
    # By partition, ascending.
    _bases: MutableMapping[int, list[int]] = field(default_factory=dict, compare=False)

    def overlay(self) -> OpenTransaction:
        """Return the same transaction, whose changes this one does not see."""
        return OpenTransaction(Overlay(self.batches), Overlay(self._bases, list))

    @property
    def first_offsets(self) -> Mapping[int, int]:
        """Partition -> first offset of its live data there."""
        return {partition: bases[0] for partition, bases in self._bases.items()}

    def first_offset(self, partition: int) -> int | None:
        """Return the first offset of its live data in a partition; ``None``: it has none there."""
        bases = self._bases.get(partition)
        return None if bases is None else bases[0]

    def add(self, batch: Batch) -> None:
        """Take one more segment of the transaction."""
        if batch.path not in self.batches:
            insort(self._bases.setdefault(batch.partition, []), batch.base_offset)
        self.batches[batch.path] = batch

    def discard(self, path: str) -> None:
        """Take note that a segment is gone: it holds nothing back any more."""
        batch = self.batches.pop(path, None)
        if batch is not None:
            bases = self._bases[batch.partition]
            del bases[bisect_left(bases, batch.base_offset)]
            if not bases:
                del self._bases[batch.partition]


class PartitionLogs:
    """The state of all partitions of a topic; a :class:`txntable.log.log_view.Fold`.

    Attributes
    ----------
    settings : TopicSettings or None
        ``None`` before the topic is created.
    open : Mapping
        (producer id, epoch) -> :class:`OpenTransaction`.
    unstable : UnstableOffsets
        Where these begin.
    markers : Mapping
        (producer id, ended epoch) -> :class:`Marker`, as long as its row lives.
    cleanings : Mapping
        Partition -> its compactions by key, the oldest first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._forget()

    def _forget(self) -> None:
        self.settings: TopicSettings | None = None
        # By partition, then by producer id: a state entry takes the place of all of its partition's at once.
        self._producers: MutableMapping[int, MutableMapping[int, ProducerEntry]] = {}
        self.open: MutableMapping[TransactionKey, OpenTransaction] = {}
        self.unstable = UnstableOffsets()
        self.markers: MutableMapping[TransactionKey, Marker] = {}
        self.cleanings: MutableMapping[int, tuple[Cleaning, ...]] = {}
        # (version, paths whose visibility that commit may have changed), oldest first.
        self._journal: deque[tuple[int, list[str]]] = deque()
        self._journal_paths = 0
        # Partition -> the last version that may have moved its bounds, the latest last; complete above `_journal_from`.
        self._journal_moved: dict[int, int] = {}
        self._journal_from: int | None = None

    # -- the fold ---------------------------------------------------------------------------

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded."""
        self._forget()
        self._journal_from = table.version
        if table.metadata is not None:
            self.settings = settings_of(self.name, table.metadata)
            check_number_names(table.numbers, SEGMENTS_NUMBERS)
            replayed = replay(table.files.to_table())
            self.markers, self.cleanings = replayed.markers, replayed.cleanings
            for (partition, producer_id), entry in replayed.producers.items():
                self._keep(partition, producer_id, entry)
            for producer, batch in replayed.undecided:
                self._open(producer, batch)

    def overlay(self) -> PartitionLogs:
        """Return a fold that stands where this one does and keeps to itself what it takes; its journal is its own."""
        over = PartitionLogs(self.name)
        over.settings = self.settings
        over._producers = Overlay(self._producers, Overlay)
        over.open = Overlay(self.open, OpenTransaction.overlay)
        over.unstable = self.unstable.overlay()
        over.markers, over.cleanings = Overlay(self.markers), Overlay(self.cleanings)
        return over

    @property
    def producers(self) -> dict[tuple[int, int], ProducerEntry]:
        """(partition, producer id) -> its entry, of all partitions: not for the steady state."""
        return {(partition, one): entry for partition, all_ in self._producers.items() for one, entry in all_.items()}

    def producers_of(self, partition: int) -> Mapping[int, ProducerEntry]:
        """Return all that a partition remembers, by producer id."""
        return self._producers.get(partition, {})

    def producer(self, partition: int, producer_id: int) -> ProducerEntry | None:
        """Return what a partition remembers of a producer."""
        known = self._producers.get(partition)
        return None if known is None else known.get(producer_id)

    def _keep(self, partition: int, producer_id: int, entry: ProducerEntry) -> None:
        self._producers.setdefault(partition, {})[producer_id] = entry

    def in_transaction(self, partition: int, producer_id: int) -> bool:
        """Return whether the producer has an open transaction with data in the partition."""
        return self.unstable.is_busy(partition, producer_id)

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
                    # Partitions may be new, or all of them another topic's.
                    self._journal_moved, self._journal_from = {}, commit.version
                case Txn():
                    check_number_names((action.app_id,), SEGMENTS_NUMBERS)
                    self._note_moved(partition_of(action.app_id), commit.version)
                case Remove():
                    self._apply_remove(action, table, touched, commit.version)
                case Add():
                    self._sort_add(action, batches, markers, states, touched)
        self._apply_states(states)
        # What a decision carried is ended by the marker beside it, and never open.
        ended = {(marker.producer_id, marker.ends) for marker in markers}
        # A batch before the marker of an earlier epoch, which then changes nothing: as in the order of their offsets.
        for batch in sorted(batches, key=lambda b: (b.partition, b.base_offset)):
            self._apply_batch(batch, ended)
        for marker in sorted(markers, key=lambda m: m.position):
            self._apply_marker(marker, touched)
        self._write_journal(commit.version, touched)

    def _apply_metadata(self, metadata: Metadata) -> None:
        settings = settings_of(self.name, metadata)
        if self.settings is not None and settings.topic_id != self.settings.topic_id:
            # A re-created topic shares the log and nothing else.
            self._producers, self.open, self.markers, self.cleanings = {}, {}, {}, {}
            self.unstable = UnstableOffsets()
        self.settings = settings

    def _apply_remove(self, remove: Remove, table: TableState, touched: list[str], version: int) -> None:
        old = table.files.get(remove.path)
        if old is None:
            return
        control = old.partition_values["_control"]
        if control in (Control.COMMIT.value, Control.ABORT.value):
            marker = marker_of(old.path, old.partition_values)
            self.markers.pop((marker.producer_id, marker.ends), None)
        elif control is None:
            touched.append(old.path)
            batch = batch_of(old)
            self._close_removed(batch)
            self._note_moved(batch.partition, version)

    def _close_removed(self, batch: Batch) -> None:
        """Retention may take data of an open transaction: what is gone holds nothing back."""
        if batch.producer is None:
            return
        key = (batch.producer.producer_id, batch.producer.epoch)
        transaction = self.open.get(key)
        if transaction is not None:
            before = transaction.first_offset(batch.partition)
            transaction.discard(batch.path)
            self._move(batch.partition, key, before, transaction.first_offset(batch.partition))
            if not transaction.batches:
                del self.open[key]

    def _sort_add(
        self,
        add: Add,
        batches: list[Batch],
        markers: list[Marker],
        states: dict[int, StateEntry],
        touched: list[str],
    ) -> None:
        check_columns(add.partition_values, COLUMNS, add.path)
        match add.partition_values["_control"]:
            case None:
                batches.append(batch_of(add))
                touched.append(add.path)
            case Control.COMMIT.value | Control.ABORT.value:
                markers.append(marker_of(add.path, add.partition_values))
            case Control.STATE.value:
                state = state_entry_of(add.path, add.partition_values, add.tag)
                states[state.partition] = state
            case unknown:
                raise DamagedDataError("a row has a control that this format does not have", control=unknown)

    def _apply_states(self, states: Mapping[int, StateEntry]) -> None:
        """Take entries as the whole truth below their commit: a producer that one lacks has expired."""
        for partition, state in states.items():
            self._producers[partition] = dict(state.producers)
            self.cleanings.pop(partition, None)
            if state.cleaned:
                self.cleanings[partition] = state.cleaned

    def _apply_batch(self, batch: Batch, ended: Collection[TransactionKey]) -> None:
        if batch.producer is None:
            return
        producer_id = batch.producer.producer_id
        entry = after_append(self.producer(batch.partition, producer_id), batch)
        if entry is not None:
            self._keep(batch.partition, producer_id, entry)
        key = (producer_id, batch.producer.epoch)
        if batch.transactional and key not in ended and key not in self.markers:
            self._open(batch.producer, batch)

    def _open(self, producer: ProducerEpoch, batch: Batch) -> None:
        key = (producer.producer_id, producer.epoch)
        transaction = self.open.setdefault(key, OpenTransaction())
        before = transaction.first_offset(batch.partition)
        transaction.add(batch)
        self._move(batch.partition, key, before, transaction.first_offset(batch.partition))

    def _move(self, partition: int, key: TransactionKey, before: int | None, after: int | None) -> None:
        """Take note of where a transaction begins in a partition from now on; ``None``: it has no data there."""
        if before == after:
            return
        if before is not None:
            self.unstable.end(partition, key, before)
        if after is not None:
            self.unstable.begin(partition, key, after)

    def _apply_marker(self, marker: Marker, touched: list[str]) -> None:
        key = (marker.producer_id, marker.ends)
        for partition in marker.offsets:
            entry = self.producer(partition, marker.producer_id)
            self._keep(partition, marker.producer_id, after_marker(entry, marker, partition))
        self.markers[key] = marker
        ended = self.open.pop(key, None)
        if ended is not None:
            touched.extend(ended.batches)
            for partition, offset in ended.first_offsets.items():
                self.unstable.end(partition, key, offset)

    # -- the journal ------------------------------------------------------------------------

    def _write_journal(self, version: int, touched: list[str]) -> None:
        self._journal.append((version, touched))
        self._journal_paths += len(touched)
        while len(self._journal) > 1 and self._is_journal_full():
            self._journal_paths -= len(self._journal.popleft()[1])

    def _is_journal_full(self) -> bool:
        return self._journal_paths > _JOURNAL_PATHS or len(self._journal) > _JOURNAL_COMMITS

    def _note_moved(self, partition: int | None, version: int) -> None:
        if partition is not None:
            self._journal_moved.pop(partition, None)
            self._journal_moved[partition] = version

    def moved_since(self, version: int | None) -> list[int] | None:
        """Return the partitions whose bounds may have moved after `version`.

        Returns
        -------
        list of int or None
            ``None``: not known that far back; look at all.
        """
        if version is None or self._journal_from is None or version < self._journal_from:
            return None
        latest = reversed(self._journal_moved.items())
        return sorted(partition for partition, _ in takewhile(lambda moved: moved[1] > version, latest))

    def touched_since(self, version: int | None) -> set[str] | None:
        """Return the paths whose visibility may have changed after `version`.

        Returns
        -------
        set of str or None
            ``None``: not known that far back; compare everything.
        """
        if version is None or not self._journal or self._journal[0][0] > version + 1:
            return None
        # From the latest on: a projection is seldom behind by more than a few.
        latest = takewhile(lambda commit: commit[0] > version, reversed(self._journal))
        return set(chain.from_iterable(paths for _, paths in latest))
