"""What upkeep may never do, whoever it races: read from every entry that was ever written (PROTOCOL.md §5.7 to §5.9).

As in ``raw_history`` nothing is asked of the code that wrote them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.simulation.raw_history import Entry, Rule
from tests.simulation.turns import ManySite

_SEGMENTS = "/_segments"
# By a producer, or by who completes what a decision carries.
_APPENDING = ("APPEND", "MARKERS")
_BY_AGE_OR_OFFSET = ("RETENTION", "DELETE RECORDS")


def check_upkeep(site: ManySite) -> None:
    """Every rule of this module, on everything that was ever written."""
    rules: list[Rule] = [Starts(), Overlaps(), Shown()]
    for entry in Entry.read(site):
        for rule in rules:
            rule.take(entry)


class Starts:
    """A log start only rises, in the partition logs and in the public table (§5.9)."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], int] = {}

    def take(self, entry: Entry) -> None:
        for number in entry.each("txn"):
            if number["appId"].startswith("log_start/"):
                name, start = (entry.root, number["appId"]), number["version"]
                assert start >= self._starts.get(name, 0), f"the log start falls: {entry.root} {entry.version}"
                self._starts[name] = start


class Overlaps:
    """The segments of a partition that a table shows do not overlap (§10): no record is there twice."""

    def __init__(self) -> None:
        self._live: dict[str, dict[str, tuple[str, int, int]]] = defaultdict(dict)

    def take(self, entry: Entry) -> None:
        if not entry.root.startswith("topics/"):
            return
        live = self._live[entry.root]
        for remove in entry.each("remove"):
            live.pop(remove["path"], None)
        for add in entry.each("add"):
            values = add["partitionValues"]
            if values.get("_control") is None:
                place = values["_partition"], int(values["_base_offset"]), int(values["_last_offset"])
                live[add["path"]] = place
        seen = sorted(live.values())
        for (partition, _, last), (other, first, _) in pairwise(seen):
            assert partition != other or last < first, f"offset {first} is there twice: {entry.root} {entry.version}"


class Shown:
    """What was appended without a transaction goes only once the public table has had it (§5.9)."""

    def __init__(self) -> None:
        self._plain: set[str] = set()
        self._shown: set[str] = set()

    def take(self, entry: Entry) -> None:
        if entry.root.endswith(_SEGMENTS):
            if entry.info["operation"] == "APPEND":
                self._plain |= {add["path"] for add in entry.each("add") if not _tag(add).get("transactional")}
            if entry.info["operation"] in _BY_AGE_OR_OFFSET:
                gone = {remove["path"] for remove in entry.each("remove")} & self._plain
                assert gone <= self._shown, f"taken away before it was shown: {sorted(gone - self._shown)}"
        else:
            self._shown |= {add["path"].removeprefix("_segments/") for add in entry.each("add")}


# -- the latest record of each key --------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Latest:
    """The committed record of a key with the highest offset, whatever became of it."""

    offset: int
    value: bytes | None
    appended_ms: int


def latest_of_keys(site: ManySite, topic: str) -> dict[bytes, Latest]:
    """Return it for each key of a topic of one partition, from the segments as they were appended."""
    entries = [entry for entry in Entry.read(site) if entry.root == f"topics/{topic}{_SEGMENTS}"]
    markers = (add["partitionValues"] for entry in entries for add in entry.each("add"))
    committed = {
        (values["_producer_id"], int(values["_producer_epoch"]) - 1)
        for values in markers
        if values["_control"] == "COMMIT"
    }
    found: dict[bytes, Latest] = {}
    for entry in entries:
        for add in entry.each("add") if entry.info["operation"] in _APPENDING else ():
            values = add["partitionValues"]
            if values["_control"] is not None:
                continue
            ended = values["_producer_id"], int(values["_producer_epoch"] or 0)
            if not _tag(add).get("transactional") or ended in committed:
                for key, record in _records(site, entry, add):
                    found[key] = max(record, found.get(key, record))
    return found


def _records(site: ManySite, entry: Entry, add: dict[str, Any]) -> Iterator[tuple[bytes, Latest]]:
    stored = site.objects.snapshot()[f"{entry.root}/{add['path']}"]
    for row in pq.read_table(pa.BufferReader(stored.data)).to_pylist():
        offset = int(add["partitionValues"]["_base_offset"]) + row["_offset_delta"]
        yield row["key"], Latest(offset, row["value"], entry.info["inCommitTimestamp"])


def _tag(add: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((add.get("tags") or {}).get("txntable", "{}"))
    return found
