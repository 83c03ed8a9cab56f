"""Everything that can be read of a topic at one moment, in every way there is; and what a compaction may make of it.

The model of a compacted topic reads raw rows of the log, and asks nothing of the code that compacts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.simulation.ageing import Ageing
from txntable.errors import OffsetOutOfRangeError
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.format.records import TopicPartition
from txntable.log.table_state import TableState
from txntable.log.time_travel import load_version
from txntable.warehouse.warehouse import Warehouse

Row = dict[str, Any]
Place = tuple[int, int]


@dataclass(frozen=True)
class Picture:
    """What one process sees.

    Attributes
    ----------
    files : dict
        (partition, offset) -> the record, read from the public table's files without the code that reads.
    committed, uncommitted : dict
        The same, as the levels show it.
    snapshots : dict
        Position -> the same; ``None``: it cannot be read any more.
    versions : dict
        Version of the public table -> the same, from its files.
    commits : dict
        (partition, offset) -> `_commit` of the record in the public table, as SQL sees it.
    merged_through : int
        The lowest position of which ``_commit <= position`` is a snapshot.
    facts : dict
        Bounds, answers to time lookups, producers, the group's offsets.
    """

    files: Mapping[Place, Row]
    committed: Mapping[Place, Row]
    uncommitted: Mapping[Place, Row]
    snapshots: Mapping[int, Mapping[Place, Row] | None]
    versions: Mapping[int, Mapping[Place, Row]]
    commits: Mapping[Place, int]
    merged_through: int
    facts: Mapping[str, Any]

    def at(self, position: int) -> dict[Place, Row]:
        """What plain SQL takes for the snapshot at a position."""
        return {place: row for place, row in self.files.items() if self.commits[place] <= position}


@dataclass(frozen=True)
class Places:
    """Where to look: positions of snapshots, versions of each topic's public table, times to look up."""

    positions: frozenset[int] = frozenset()
    versions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    times_ms: tuple[int, ...] = ()


def picture(warehouse: Warehouse, topic: str, places: Places) -> Picture:
    """Look at a topic in every way."""
    warehouse.transactions.refresh()
    public = warehouse.topic_log(topic).public.refresh()
    files = records_in(warehouse, topic, public.next_version - 1)
    (merged_through,) = (number for name, number in public.numbers.items() if name.startswith("merged_through/"))
    return Picture(
        files=files,
        commits=commits(public, files),
        merged_through=merged_through,
        committed=records(warehouse.read_arrow(topic, isolation_level="read_committed").read_all()),
        uncommitted=records(warehouse.read_arrow(topic, isolation_level="read_uncommitted").read_all()),
        snapshots={position: snapshot(warehouse, topic, position) for position in places.positions},
        versions={version: records_in(warehouse, topic, version) for version in places.versions.get(topic, ())},
        facts=facts(warehouse, topic, places.times_ms),
    )


def commits(public: TableState, places: Iterable[Place]) -> dict[Place, int]:
    """Place -> the `_commit` of the row whose offsets it is among."""
    rows = []
    for add in public.files:
        names = ("_partition", "_base_offset", "_last_offset", "_commit")
        rows.append(tuple(int(add.partition_values[name] or "") for name in names))
    return {(p, o): commit for p, o in places for of, first, last, commit in rows if of == p and first <= o <= last}


def records(table: pa.Table) -> dict[Place, Row]:
    found = {}
    for row in table.to_pylist():
        # The decision of a merged segment is its highest: that may rise, and nothing else.
        row.pop("_commit", None)
        place = (row.pop("_partition"), row.pop("_offset"))
        assert place not in found, f"twice: {place}"
        found[place] = said(row)
    return found


def said(row: Row) -> Row:
    """A record without its nulls: of a column that was added later there is none in a file, and null to a reader."""
    return {name: value for name, value in row.items() if value is not None}


def snapshot(warehouse: Warehouse, topic: str, position: int) -> dict[Place, Row] | None:
    try:
        return records(warehouse.snapshot(position).read_arrow(topic).read_all())
    except OffsetOutOfRangeError:
        return None


def records_in(warehouse: Warehouse, topic: str, version: int) -> dict[Place, Row]:
    """What a version of the public table holds, by its rows and files alone."""
    root = warehouse.topic_log(topic).public.root
    table = load_version(warehouse.store, root, version)
    found: dict[Place, Row] = {}
    for add in table.files:
        data = warehouse.store.get(f"{root}/{add.path}")
        assert data is not None, f"dangling reference in version {version}: {add.path}"
        values = add.partition_values
        base, last = int(values["_base_offset"] or ""), int(values["_last_offset"] or "")
        rows = pq.read_table(pa.BufferReader(data.data)).to_pylist()
        deltas = [row.pop("_offset_delta") for row in rows]
        assert json.loads(add.stats or "")["numRecords"] == len(rows)
        assert (deltas[0], deltas[-1]) == (0, last - base)
        assert deltas == sorted(set(deltas))
        for delta, row in zip(deltas, rows, strict=True):
            place = (int(values["_partition"] or ""), base + delta)
            assert place not in found, f"twice: {place}"
            found[place] = said(row)
    return found


def facts(warehouse: Warehouse, topic: str, times_ms: Sequence[int]) -> dict[str, Any]:
    admin = warehouse.admin()
    places = [TopicPartition(topic, p) for p in range(warehouse.topic_log(topic).settings().partitions)]
    found: dict[str, Any] = {"offsets of the group": admin.list_consumer_group_offsets("group")}
    for level in ("read_committed", "read_uncommitted"):
        for spec in ("earliest", "latest"):
            found[f"{spec} {level}"] = admin.list_offsets(dict.fromkeys(places, spec), level)
    found["producers"] = {
        place: sorted(map(repr, states)) for place, states in admin.describe_producers(places).items()
    }
    consumer = warehouse.consumer(isolation_level="read_committed")
    found["times"] = [consumer.offsets_for_times(dict.fromkeys(places, time_ms)) for time_ms in times_ms]
    return found


# -- what a compaction may do -------------------------------------------------------------------


@dataclass
class RawSegment:
    """A data row of the partition logs, as it stands there."""

    base: int
    last: int
    decided_ms: int | None
    visible: bool
    open: bool
    max_timestamp_ms: int


@dataclass
class CleanedTopic:
    """A topic with ``compact`` in its policy: which of its records must be there, by the rules as they are said."""

    config: Mapping[str, str]
    # By partition: (offset through which it was compacted, when).
    cleanings: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def after(self, ageing: Ageing, topic: str, before: Mapping[Place, Row], retention_ms: int) -> dict[Place, Row]:
        """What must be left once a compaction has run now."""
        now_ms = ageing.site.time.instant().wall_ms
        left = dict(before)
        warehouse = ageing.fresh()
        for partition, segments in raw_segments(warehouse, topic).items():
            log = warehouse.topic_log(topic).segments.table
            (highest,) = (
                n for name, n in log.numbers.items() if name[:5] == "next_" and name.endswith(f"/{partition}")
            )
            end = min(self._end(segments, now_ms, retention_ms), highest)
            cleanings = self.cleanings.setdefault(partition, [])
            cleaned = cleanings[-1][0] if cleanings else 0
            if not any(segment.visible and segment.base < end and segment.last >= cleaned for segment in segments):
                continue
            delete_ms = int(self.config["delete.retention.ms"])
            first_over = {o: next((at for to, at in cleanings if to > o), None) for p, o in before if p == partition}
            latest = {
                key_of(row): offset for (p, offset), row in sorted(before.items()) if p == partition and offset < end
            }
            for place in [place for place in before if place[0] == partition and place[1] < end]:
                at_ms = first_over[place[1]]
                ended = is_dead(before[place]) and at_ms is not None and at_ms + delete_ms <= now_ms
                if latest[key_of(before[place])] != place[1] or ended:
                    del left[place]
            if end > cleaned:
                cleanings.append((end, now_ms))
        return left

    def _end(self, segments: list[RawSegment], now_ms: int, retention_ms: int) -> int:
        """The first offset that may not be compacted yet."""
        lag_ms = int(self.config["min.compaction.lag.ms"])
        for segment in segments:
            if not segment.open and not segment.visible:
                continue
            old = segment.decided_ms is None or segment.decided_ms <= now_ms - retention_ms
            if segment.open or not old or segment.max_timestamp_ms > now_ms - lag_ms:
                return segment.base
        return 1 << 40


def raw_segments(warehouse: Warehouse, topic: str) -> dict[int, list[RawSegment]]:
    """The data rows by partition, in offset order."""
    table = warehouse.topic_log(topic).segments.refresh()
    markers: dict[tuple[str | None, str | None], tuple[str, int]] = {}
    for add in table.files:
        if add.partition_values["_control"] in ("COMMIT", "ABORT"):
            marker = json.loads(add.partition_values["_marker"] or "")
            key = (add.partition_values["_producer_id"], str(marker["ends"]))
            markers[key] = (add.partition_values["_control"] or "", marker["decided_at"])
    found: dict[int, list[RawSegment]] = {}
    for add in table.files:
        values, tag = add.partition_values, json.loads(add.tag or "{}")
        if values["_control"] is not None:
            continue
        outcome, decided_ms = "COMMIT", None if "decided" in tag else add.modification_time
        if tag.get("transactional"):
            outcome, decided_ms = markers.get((values["_producer_id"], values["_producer_epoch"]), ("OPEN", None))
        segment = RawSegment(
            int(values["_base_offset"] or ""),
            int(values["_last_offset"] or ""),
            decided_ms,
            outcome == "COMMIT",
            outcome == "OPEN",
            tag["max_timestamp"],
        )
        found.setdefault(int(values["_partition"] or ""), []).append(segment)
    return {partition: sorted(segments, key=lambda s: s.base) for partition, segments in sorted(found.items())}


def key_of(row: Row) -> str:
    return str(row.get("account") or row["key"].decode())


def is_dead(row: Row) -> bool:
    """Whether a record says that its key has no value any more."""
    return "amount" not in row if "account" in row else "value" not in row


def living(rows: Mapping[Place, Row]) -> dict[tuple[int, str], tuple[int, Row]]:
    """(partition, key) -> the offset and the record of its latest value; without the keys that have none."""
    latest = {}
    for (partition, offset), row in sorted(rows.items()):
        latest[partition, key_of(row)] = (offset, row)
    return {key: found for key, found in latest.items() if not is_dead(found[1])}


def retained_positions(warehouse: Warehouse, now_ms: int, retention_ms: int) -> Iterator[int]:
    """The positions that were the newest at some moment within the retention."""
    head = warehouse.transactions.refresh()
    for position in range(head + 1):
        data = None if position == head else warehouse.store.get(commit_path(TRANSACTION_LOG_ROOT, position + 1))
        until_ms = now_ms if data is None else json.loads(data.data.splitlines()[0])["commitInfo"]["inCommitTimestamp"]
        if until_ms > now_ms - retention_ms:
            yield position
