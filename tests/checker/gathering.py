"""Evidence of a store, read by nothing that the product wrote: JSON lines, Parquet files, and PROTOCOL.md.

Owns the independent reading of logs and segments.  Must not import the product: what both misunderstand in the same
way is found by nobody.  It is strict: what it does not expect is an error, not a guess.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.checker.evidence import Batch, Decision, Entry, Epoch, Evidence, Marker, Record, Recreated, Reference
from tests.checker.operations import Bounds, Place

_ENTRY = re.compile(r"(.+)/_delta_log/(\d{20})\.json")
_T = "system/transaction_log"
_S = re.compile(r"topics/([^/]+)/_segments")
_DECIDED = {"PREPARE_COMMIT": True, "PREPARE_ABORT": False, "COMPLETE_COMMIT": True, "COMPLETE_ABORT": False}

Row = Mapping[str, Any]


def value_of(row: Row) -> str:
    """The value that tells a record from all others: `tag` or `value`; of a tombstone by its time."""
    value = row["value"] if "value" in row else row["tag"]
    if value is None:
        return f"dead@{round(row['_timestamp'].timestamp() * 1000)}"
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True)
class Stored:
    """What is looked at.

    Attributes
    ----------
    objects : mapping of str to bytes
        What is there.
    entries : mapping of str to bytes
        Log entries that were there once; those that are there need not be among them.
    recreated : sequence of (str, bytes, int)
        Slots that had other bytes before, what landed there, and how many ms after these.
    ages_ms : mapping of str to int
        How old objects are, where that is known.
    value_of : callable
        What tells a record from all others.
    """

    objects: Mapping[str, bytes]
    entries: Mapping[str, bytes] = field(default_factory=dict)
    recreated: Sequence[tuple[str, bytes, int]] = ()
    ages_ms: Mapping[str, int] = field(default_factory=dict)
    value_of: Callable[[Row], str] = value_of


class Folder(Mapping[str, bytes]):
    """The objects of a warehouse in a local folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*")) if p.is_file()}

    def __getitem__(self, path: str) -> bytes:
        return self._paths[path].read_bytes()

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass
class Table:
    """One log, folded from its first entry on."""

    root: str
    entries: list[Entry] = field(default_factory=list)
    commits: list[list[dict[str, Any]]] = field(default_factory=list)
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    configuration: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, root: str, versions: Mapping[int, bytes]) -> Table:
        """Fold the entries; every version from 0 on must be known."""
        table, below = cls(root), None
        for version in range(len(versions)):
            data = versions.get(version)
            if data is None:
                raise ValueError(f"a log entry is not known: {_slot(root, version)}")
            table._take(version, data, below)
            below = data
        return table

    def _take(self, version: int, data: bytes, below: bytes | None) -> None:
        said, actions = _commit(data)
        computed = None if below is None else hashlib.sha256(below).hexdigest()
        self.entries.append(
            Entry(
                self.root,
                version,
                said["commitId"],
                said["previous"],
                said["operation"],
                chain=said.get("chain"),
                computed=computed if "chain" in said else None,
            )
        )
        self.commits.append(actions)
        for action in actions:
            ((kind, body),) = action.items()
            if kind == "add":
                self.live[body["path"]] = body
                self.named.add(body["path"])
            elif kind == "remove":
                self.live.pop(body["path"], None)
                self.named.add(body["path"])
            elif kind == "txn":
                self.numbers[body["appId"]] = body["version"]
            elif kind == "metaData":
                self.configuration = body["configuration"]


def gather(stored: Stored, orphan_age_ms: int = 0) -> Evidence:
    """Read everything.

    Parameters
    ----------
    stored : Stored
        The store.
    orphan_age_ms : int
        How old a file may become that no log names; 0: not judged.

    Raises
    ------
    ValueError
        A log has a gap, or something in it is not as PROTOCOL.md says.
    """
    tables = tables_of(stored)
    segments = {found[1]: table for root, table in tables.items() if (found := _S.fullmatch(root))}
    markers = [marker for topic, table in segments.items() for marker in _markers(topic, table)]
    batches = [batch for topic, table in segments.items() for batch in _batches(topic, table)]
    live = {topic: table for topic, table in segments.items() if _is_live(table)}
    still_open = {topic: _open(topic, table) for topic, table in live.items()}
    return Evidence(
        entries=tuple(entry for table in tables.values() for entry in table.entries),
        recreated=tuple(_recreated(stored)),
        epochs=tuple(_epochs(tables[_T])),
        decisions=tuple(_decisions(tables[_T])),
        batches=tuple(batches),
        markers=tuple(markers),
        records=tuple(record for topic, table in live.items() for record in _records(topic, table, stored)),
        references=tuple(reference for table in tables.values() for reference in _references(table, stored)),
        orphans=_orphans(tables, stored),
        orphan_age_ms=orphan_age_ms,
        undecided=frozenset(key for found in still_open.values() for key in found),
        bounds={place: b for topic, t in live.items() for place, b in _bounds(topic, t, still_open[topic])},
        whole=True,
    )


def tables_of(stored: Stored) -> dict[str, Table]:
    """Every log, folded."""
    versions: dict[str, dict[int, bytes]] = defaultdict(dict)
    for path in sorted({*stored.entries, *stored.objects}):
        if found := _ENTRY.fullmatch(path):
            data = stored.entries.get(path)
            versions[found[1]][int(found[2])] = stored.objects[path] if data is None else data
    return {root: Table.read(root, of_root) for root, of_root in versions.items()}


def _slot(root: str, version: int) -> str:
    return f"{root}/_delta_log/{version:020}.json"


def _commit(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    info, *actions = [json.loads(line) for line in data.splitlines()]
    return info["commitInfo"], actions


def _recreated(stored: Stored) -> Iterator[Recreated]:
    for path, data, after_ms in stored.recreated:
        found = _ENTRY.fullmatch(path)
        if found is None:
            raise ValueError(f"not the slot of a log: {path}")
        said, _ = _commit(data)
        yield Recreated(found[1], int(found[2]), said["commitId"], said["previous"], after_ms)


# -- the transaction log --------------------------------------------------------------------


def _id_rows(table: Table) -> Iterator[tuple[int, dict[str, Any]]]:
    for version, actions in enumerate(table.commits):
        for action in actions:
            if "add" in action and action["add"]["partitionValues"]["_kind"] == "id":
                yield version, json.loads(action["add"]["partitionValues"]["_row"])


def _epochs(table: Table) -> Iterator[Epoch]:
    known: dict[str, tuple[int, int]] = {}
    for version, row in _id_rows(table):
        identity = (row["producer_id"], row["producer_epoch"])
        if known.get(row["transactional_id"]) != identity:
            known[row["transactional_id"]] = identity
            yield Epoch(row["transactional_id"], *identity, version)


def _decisions(table: Table) -> Iterator[Decision]:
    for version, row in _id_rows(table):
        # What had nothing to complete is complete in the entry that decides it.
        if row["state"] in _DECIDED and row["decision"]["position"] == version:
            enrolled = frozenset(
                (topic_id, (topic["name"], partition))
                for topic_id, topic in row.get("partitions", {}).items()
                for partition in _numbers(topic["partitions"])
            )
            yield Decision(
                row["transactional_id"],
                row["producer_id"],
                row["decision"]["epoch"],
                _DECIDED[row["state"]],
                version,
                enrolled,
                frozenset(row.get("groups", ())),
            )


def _numbers(text: str) -> Iterator[int]:
    """The numbers of ``0-99,101``."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


# -- the partition logs ---------------------------------------------------------------------


def _is_live(table: Table) -> bool:
    return table.configuration["txntable.topic.state"] == "live"


def _topic_id(table: Table) -> str:
    return table.configuration["txntable.topic.id"]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


# By a producer, or by whoever completes a decision that carries segments.
_APPENDING = ("APPEND", "MARKERS", "ABORT HANGING")


def _batches(topic: str, table: Table) -> Iterator[Batch]:
    for version, (entry, actions) in enumerate(zip(table.entries, table.commits, strict=True)):
        appended = actions if entry.operation in _APPENDING else ()
        for add in (action["add"] for action in appended if "add" in action):
            values = add["partitionValues"]
            if values["_control"] is not None:
                continue
            tag = json.loads(add["tags"]["txntable"])
            yield Batch(
                (topic, int(values["_partition"])),
                add["path"].split("/")[1].split("-")[0],
                add["path"],
                version,
                int(values["_base_offset"]),
                tag["records"],
                bool(tag.get("transactional")),
                _number(values["_producer_id"]),
                _number(values["_producer_epoch"]),
                tag.get("first_sequence"),
            )


def _markers(topic: str, table: Table) -> Iterator[Marker]:
    for version, actions in enumerate(table.commits):
        for add in (action["add"] for action in actions if "add" in action):
            values = add["partitionValues"]
            if values["_control"] in ("COMMIT", "ABORT"):
                said = json.loads(values["_marker"])
                for partition, offset in said["offsets"].items():
                    yield Marker(
                        (topic, int(partition)),
                        add["path"].split("/")[1].split("-")[0],
                        int(values["_producer_id"]),
                        said["ends"],
                        values["_control"] == "COMMIT",
                        said["position"],
                        offset,
                        version,
                    )


def _data_rows(table: Table) -> Iterator[dict[str, Any]]:
    return (add for add in table.live.values() if add["partitionValues"]["_control"] is None)


def _open(topic: str, table: Table) -> dict[tuple[Place, int, int], int]:
    """Transactions without their markers, by place, with their first offsets there."""
    ended = {(marker.producer_id, marker.epoch) for marker in _markers(topic, table)}
    found: dict[tuple[Place, int, int], int] = {}
    for add in _data_rows(table):
        values, tag = add["partitionValues"], json.loads(add["tags"]["txntable"])
        if tag.get("transactional") and "decided" not in tag:
            owner = (int(values["_producer_id"]), int(values["_producer_epoch"]))
            if owner not in ended:
                key = ((topic, int(values["_partition"])), *owner)
                found[key] = min(found.get(key, 1 << 62), int(values["_base_offset"]))
    return found


def _bounds(
    topic: str, table: Table, still_open: Mapping[tuple[Place, int, int], int]
) -> Iterator[tuple[Place, Bounds]]:
    topic_id = _topic_id(table)
    for partition in range(int(table.configuration["txntable.topic.partitions"])):
        high = table.numbers.get(f"next_offset/{topic_id}/{partition}", 0)
        start = table.numbers.get(f"log_start/{topic_id}/{partition}", 0)
        first = min([high, *(at for key, at in still_open.items() if key[0] == (topic, partition))])
        yield (topic, partition), Bounds(start, max(start, first), high)


def _records(topic: str, table: Table, stored: Stored) -> Iterator[Record]:
    topic_id = _topic_id(table)
    for add in _data_rows(table):
        values, data = add["partitionValues"], stored.objects.get(f"{table.root}/{add['path']}")
        if data is None:
            # The references tell.
            continue
        partition, base = int(values["_partition"]), int(values["_base_offset"])
        start = table.numbers.get(f"log_start/{topic_id}/{partition}", 0)
        for row in pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist():
            if base + row["_offset_delta"] >= start:
                yield Record(
                    (topic, partition),
                    base + row["_offset_delta"],
                    stored.value_of(row),
                    _number(values["_producer_id"]),
                    _number(values["_producer_epoch"]),
                )


# -- objects --------------------------------------------------------------------------------


def _references(table: Table, stored: Stored) -> Iterator[Reference]:
    for path, add in table.live.items():
        data = stored.objects.get(f"{table.root}/{path}")
        yield Reference(f"{table.root}/{path}", add["size"], None if data is None else len(data))


def _orphans(tables: Mapping[str, Table], stored: Stored) -> dict[str, int]:
    """Files of topics that no entry of any log ever named, with their ages."""
    named = {f"{table.root}/{path}" for table in tables.values() for path in table.named}
    return {
        path: age_ms
        for path, age_ms in stored.ages_ms.items()
        if path.startswith("topics/") and "/_delta_log/" not in path and path not in named
    }
