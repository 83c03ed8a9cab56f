"""What the entries of S must keep (PROTOCOL.md §5).

Owns that offsets follow one another without a hole or an overlap, sequences continue, paths say what their rows say,
and a decision's segments stand beside its marker.  It remembers the markers that it saw, for who holds them against T.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from txntable.coordinator.manifest import ManifestSegment
from txntable.errors import TxnTableError
from txntable.format.layout import (
    FileKind,
    marker_path,
    parse_file_name,
    parse_spark_name,
    segment_name,
    segment_path,
    spark_segments_folder,
    state_path,
)
from txntable.format.topic import TopicSettings
from txntable.log.actions import Add, Commit, Metadata, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_of
from txntable.partition.markers import Control, Marker, marker_of
from txntable.partition.offsets import DECIDED_THROUGH, NEXT_OFFSET, next_offset, per_partition, per_topic
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.producer_state import IncomingBatch, ProducerEntry, after_append, check_append
from txntable.segments.topic_metadata import settings_of
from txntable.verification.damage import DamageKind
from txntable.verification.decision_record import DecisionRecord
from txntable.verification.keyed_rules import check_constant_rows
from txntable.verification.log_replay import Problem

Stand = Callable[[TableState, PartitionLogs], None]


class SegmentRules:
    """The rules of one topic's S.

    Parameters
    ----------
    name : str
        The topic's.
    decisions : DecisionRecord
        Of T, read before.
    stand : callable
        Is shown the state after each entry: who holds P against S waits for the version that P reflects.

    Attributes
    ----------
    markers : dict
        (topic id, producer id, epoch) -> its marker, of all that were ever there.
    complete_above : dict of str to int
        Topic id -> the decision position above which all its markers must have been seen.
    topic_ids : set of str
        Of the topics that had the name, as far as the entries tell.
    """

    def __init__(self, name: str, decisions: DecisionRecord, stand: Stand) -> None:
        self._name, self._decisions, self._stand = name, decisions, stand
        self.markers: dict[tuple[str, int, int], Marker] = {}
        self.complete_above: dict[str, int] = {}
        self.topic_ids: set[str] = set()

    def begin(self, table: TableState, fold: PartitionLogs) -> Iterable[Problem]:
        """Take the rows of the checkpoint that the entries begin with."""
        settings = fold.settings
        if settings is None:
            return
        self.topic_ids.add(settings.topic_id)
        self.complete_above[settings.topic_id] = table.number(per_topic(DECIDED_THROUGH, settings.topic_id))
        for marker in fold.markers.values():
            self.markers[settings.topic_id, marker.producer_id, marker.ends] = marker
        for add in table.files:
            yield from _path(add, settings, is_new=False)

    def observe(self, commit: Commit, table: TableState, fold: PartitionLogs) -> Iterable[Problem]:
        """Judge the rows of an entry."""
        changed = [settings_of(self._name, one) for one in commit.actions if isinstance(one, Metadata)]
        settings = changed[-1] if changed else fold.settings
        if settings is None:
            return
        self.topic_ids.add(settings.topic_id)
        adds = [one for one in commit.actions if isinstance(one, Add)]
        data = [batch_of(one) for one in adds if one.partition_values["_control"] is None]
        # A row that is merged or settled takes no offset.
        appended = [one for one in data if one.decided is None]
        markers = [
            marker_of(one.path, one.partition_values)
            for one in adds
            if one.partition_values["_control"] in (Control.COMMIT.value, Control.ABORT.value)
        ]
        yield from check_constant_rows(one for one in adds if one.partition_values["_control"] is not None)
        for add in adds:
            yield from _path(add, settings, is_new=True)
        numbers = {one.app_id: one.version for one in commit.actions if isinstance(one, Txn)}
        yield from _offsets(settings, table, numbers, (appended, markers))
        yield from _sequences(fold, appended)
        for twice in (one.path for one in appended if one.path in table.files):
            yield DamageKind.OFFSETS, f"{twice} is appended a second time"
        for marker in markers:
            self.markers[settings.topic_id, marker.producer_id, marker.ends] = marker
            yield from self._carried(settings.topic_id, marker, adds)

    def stand(self, table: TableState, fold: PartitionLogs) -> Iterable[Problem]:
        """Show the state to who waits for it."""
        self._stand(table, fold)
        return ()

    def _carried(self, topic_id: str, marker: Marker, adds: Sequence[Add]) -> Iterator[Problem]:
        decided = self._decisions.of_epoch(marker.producer_id, marker.ends)
        if decided is None or decided.position != marker.position or marker.control is not Control.COMMIT:
            return
        rows = {add.path: add for add in adds}
        owner = (marker.producer_id, marker.ends)
        for segment in decided.segments.get(topic_id, ()):
            add = rows.get(segment_path(topic_id, segment.partition, owner, segment.name))
            if add is None or not _is_as_carried(add, segment):
                carried = f"the decision at {marker.position} carries segment {segment.name}"
                yield DamageKind.CARRIED, f"{carried}, and the entry with its marker has no such row"


def _is_as_carried(add: Add, segment: ManifestSegment) -> bool:
    batch = batch_of(add)
    found = (add.size, add.stats, batch.digest, batch.records, batch.first_sequence)
    return found == (segment.size, segment.stats, segment.digest, segment.records, segment.first_sequence)


def _path(add: Add, settings: TopicSettings, *, is_new: bool) -> Iterator[Problem]:
    """Judge whether the path of a row is the one that its columns make (§2)."""
    control, partition = add.partition_values["_control"], add.partition_values["_partition"]
    if partition is not None and int(partition) >= settings.partitions:
        yield DamageKind.ROW, f"{add.path} is of partition {partition}, of {settings.partitions}"
    if control == Control.STATE.value:
        is_right = partition is not None and add.path == state_path(int(partition))
    elif control is not None:
        marker = marker_of(add.path, add.partition_values)
        is_right = add.path == marker_path(settings.topic_id, marker.producer_id, marker.ends)
    else:
        is_right = _is_segment_path(batch_of(add), settings.topic_id, is_new=is_new)
    if not is_right:
        yield DamageKind.ROW, f"{add.path} is not the path of its row"


def _is_segment_path(batch: Batch, topic_id: str, *, is_new: bool) -> bool:
    name = parse_file_name(batch.path)
    if name is None or name.kind is not FileKind.SEGMENT:
        return False
    # A settled row has no producer any more, and the path that it always had.
    owner = name.producer if batch.decided is not None else _owner(batch)
    if parse_spark_name(batch.path) is not None:
        # The partition is in the row only (§2).
        return batch.path.startswith(f"{spark_segments_folder(owner)}/")
    return batch.path == segment_path(topic_id, batch.partition, owner, segment_name(batch.path))


def _owner(batch: Batch) -> tuple[int, int] | None:
    return None if batch.producer is None else (batch.producer.producer_id, batch.producer.epoch)


def _offsets(
    settings: TopicSettings, table: TableState, numbers: Mapping[str, int], new: tuple[list[Batch], list[Marker]]
) -> Iterator[Problem]:
    """Judge whether what an entry appends fills each partition from its next offset to the new one."""
    batches, markers = new
    taken = [(one.partition, one.base_offset, one.last_offset) for one in batches]
    taken += [(partition, offset, offset) for one in markers for partition, offset in one.offsets.items()]
    for partition, ranges in groupby(sorted(taken), key=lambda each: each[0]):
        expected = next_offset(table.numbers, settings.topic_id, partition)
        for _, base, last in ranges:
            if base != expected:
                yield DamageKind.OFFSETS, f"partition {partition} goes on at offset {base}, not at {expected}"
            expected = last + 1
        said = numbers.get(per_partition(NEXT_OFFSET, settings.topic_id, partition))
        if said != expected:
            yield DamageKind.OFFSETS, f"partition {partition} ends at offset {expected}, and its entry says {said}"
    for batch in batches:
        if batch.last_offset - batch.base_offset + 1 != batch.records:
            yield DamageKind.OFFSETS, f"{batch.path} has {batch.records} records in a range of another length"


def _sequences(fold: PartitionLogs, appended: Iterable[Batch]) -> Iterator[Problem]:
    """Judge whether each producer goes on where it was (§5.4)."""
    known: dict[tuple[int, int], ProducerEntry | None] = {}
    for batch in sorted(appended, key=lambda one: (one.partition, one.base_offset)):
        if batch.producer is None or batch.first_sequence is None:
            continue
        place = (batch.partition, batch.producer.producer_id)
        before = known.get(place) or fold.producer(*place)
        incoming = IncomingBatch(
            batch.producer.producer_id,
            batch.producer.epoch,
            batch.first_sequence,
            batch.records,
            batch.transactional,
            segment_name(batch.path),
        )
        try:
            check_append(before, incoming, in_transaction=fold.in_transaction(*place))
        except TxnTableError as error:
            yield DamageKind.SEQUENCE, f"{batch.path}: {error}"
        known[place] = after_append(before, batch)
