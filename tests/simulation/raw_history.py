"""What must be true of every log at every moment of a run: read from the stored bytes, in the order of their creation.

Nothing is asked of the code that wrote them, nor of the code that reads them: entries are JSON, and the rules are
those of PROTOCOL.md, spelt out once more.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.simulation.turns import ManySite
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT

_ENTRY = re.compile(r"(.+)/_delta_log/(\d{20})\.json")
_SEGMENTS = "/_segments"
_TAKES_AWAY = ("RETENTION", "DELETE RECORDS", "DELETE TOPIC")

Transaction = tuple[int, int]
"""Producer id and epoch."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of one log."""

    root: str
    version: int
    info: dict[str, Any]
    actions: list[dict[str, Any]]

    @classmethod
    def read(cls, site: ManySite) -> Iterator[Entry]:
        """Every commit of every log, in the order in which they were made."""
        for path, data in site.objects.entries.items():  # type: ignore[attr-defined]
            if (match := _ENTRY.fullmatch(path)) is not None:
                first, *others = [json.loads(line) for line in data.decode().splitlines()]
                yield cls(match[1], int(match[2]), first["commitInfo"], others)

    def each(self, kind: str) -> Iterator[dict[str, Any]]:
        """The actions of one kind."""
        return (action[kind] for action in self.actions if kind in action)


class Rule(Protocol):
    """Is told every entry, and fails at the first that breaks it."""

    def take(self, entry: Entry) -> None:
        """Look at one more entry."""


def check_history(site: ManySite) -> None:
    """Every rule of this module, on everything that was ever written."""
    rules: list[Rule] = [Times(), Publication(), Streams(), Topics(), Offsets()]
    for entry in Entry.read(site):
        for rule in rules:
            rule.take(entry)


class Times:
    """The in-commit time of an entry is above that of the version below (PROTOCOL.md §4.1)."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def take(self, entry: Entry) -> None:
        time_ms = entry.info["inCommitTimestamp"]
        assert time_ms > self._last.get(entry.root, 0), f"no later than the version below: {entry.root} {entry.version}"
        self._last[entry.root] = time_ms


@dataclass
class _Decided:
    """A decision, and what it is about."""

    position: int
    committed: bool
    topics: frozenset[str]


class Publication:
    """What is committed at or below the published position is shown, in every topic (§6.4, §10); nothing aborted is."""

    def __init__(self) -> None:
        self._decided: dict[Transaction, _Decided] = {}
        self._unchecked: set[Transaction] = set()
        self._incomplete: dict[str, int] = {}
        self._segments: dict[tuple[str, Transaction], set[str]] = defaultdict(set)
        self._shown: set[str] = set()
        self._gone: set[str] = set()
        self._marked: set[tuple[str, Transaction]] = set()

    def take(self, entry: Entry) -> None:
        if entry.root == TRANSACTION_LOG_ROOT:
            self._take_rows(entry)
        elif entry.root.endswith(_SEGMENTS):
            self._take_segments(entry)
        elif entry.root.startswith("topics/"):
            self._take_shown(entry)

    def _take_rows(self, entry: Entry) -> None:
        for add in entry.each("add"):
            values = add["partitionValues"]
            if values["_kind"] == "id":
                self._take_row(json.loads(values["_row"]))
        published = min([entry.version, *(position - 1 for position in self._incomplete.values())])
        for transaction in sorted(self._unchecked):
            decided = self._decided[transaction]
            if decided.position <= published:
                self._unchecked.discard(transaction)
                self._check(transaction, decided)

    def _take_row(self, row: dict[str, Any]) -> None:
        self._incomplete.pop(row["transactional_id"], None)
        if row["state"] in ("PREPARE_COMMIT", "PREPARE_ABORT"):
            decision = row["decision"]
            self._incomplete[row["transactional_id"]] = decision["position"]
            transaction = (row["producer_id"], decision["epoch"])
            committed = decision["outcome"] == "COMMIT"
            self._decided[transaction] = _Decided(decision["position"], committed, frozenset(row.get("partitions", ())))
            self._unchecked.add(transaction)

    def _check(self, transaction: Transaction, decided: _Decided) -> None:
        for topic_id in decided.topics if decided.committed else ():
            hidden = self._segments[topic_id, transaction] - self._shown - self._gone
            assert not hidden, f"complete, and not in the public table: {transaction} {sorted(hidden)}"

    def _take_segments(self, entry: Entry) -> None:
        taken_away = entry.info["operation"] in _TAKES_AWAY
        for remove in entry.each("remove"):
            path = remove["path"]
            if taken_away and entry.info["operation"] != "DELETE TOPIC":
                assert path in self._shown or not self._is_committed(path), f"taken away before it was shown: {path}"
            if taken_away:
                self._gone.add(path)
        for add in entry.each("add"):
            values = add["partitionValues"]
            if values["_control"] == "COMMIT":
                ended = (int(values["_producer_id"]), int(values["_producer_epoch"]) - 1)
                self._marked.add((_topic_id(add["path"]), ended))
            if values["_control"] is None and values["_producer_id"] is not None:
                self._segments[_topic_id(add["path"]), _owner(values)].add(add["path"])

    def _is_committed(self, path: str) -> bool:
        """Whether the topic has its marker: before, it may go, and its transaction commits without it."""
        match = re.fullmatch(r"p\d+/([0-9a-f]{32})-(\d+)-(\d+)-[0-9a-f]{32}\.parquet", path)
        return match is not None and (match[1], (int(match[2]), int(match[3]))) in self._marked

    def _take_shown(self, entry: Entry) -> None:
        for add in entry.each("add"):
            path = add["path"].removeprefix("_segments/")
            self._shown.add(path)
            for (_, transaction), paths in self._segments.items():
                if path in paths and transaction in self._decided:
                    assert self._decided[transaction].committed, f"aborted, and in the public table: {path}"


class Streams:
    """Whoever follows a public table by its data changes gets every offset once (§7)."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)

    def take(self, entry: Entry) -> None:
        if not entry.root.startswith("topics/") or entry.root.endswith(_SEGMENTS):
            return
        assert not any(remove["dataChange"] for remove in entry.each("remove")), "a removal stops a stream"
        for add in entry.each("add"):
            if add["dataChange"]:
                values = add["partitionValues"]
                first, last = int(values["_base_offset"]), int(values["_last_offset"])
                given = self._given[_topic_id(add["path"].removeprefix("_segments/")), values["_partition"]]
                assert all(last < low or high < first for low, high in given), f"given twice: {add['path']}"
                given.append((first, last))


class Topics:
    """No partition starts above its end (§5.9); keys are mapped to the partitions that there are (§5.2)."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._partitions: dict[str, int] = {}

    def take(self, entry: Entry) -> None:
        if not entry.root.endswith(_SEGMENTS):
            return
        for metadata in entry.each("metaData"):
            self._partitions[entry.root] = int(metadata["configuration"]["txntable.topic.partitions"])
        self._numbers |= {txn["appId"]: txn["version"] for txn in entry.each("txn")}
        for name, start in self._numbers.items():
            if name.startswith("log_start/"):
                end = self._numbers.get(name.replace("log_start", "next_offset"), 0)
                assert start <= end, f"starts after its end: {entry.root} {entry.version} {name}"
        for add in entry.each("add"):
            tag = json.loads((add.get("tags") or {}).get("txntable", "{}"))
            mapped = tag.get("partition_count")
            if entry.info["operation"] == "APPEND" and mapped is not None:
                assert mapped == self._partitions[entry.root], f"mapped to {mapped} partitions: {add['path']}"
            if entry.info["operation"] == "MARKERS" and mapped is not None:
                # What a decision carries is taken where it was mapped, also when the topic has grown since.
                assert mapped <= self._partitions[entry.root], f"mapped to {mapped} partitions: {add['path']}"


@dataclass
class Offsets:
    """Of the offsets that count the one counts that was asked for last (§8.1)."""

    outcomes: dict[Transaction, str] = field(default_factory=dict)
    asked: dict[str, dict[int, tuple[Transaction | None, int]]] = field(default_factory=lambda: defaultdict(dict))

    def take(self, entry: Entry) -> None:
        if entry.root == TRANSACTION_LOG_ROOT:
            for add in entry.each("add"):
                row = json.loads(add["partitionValues"]["_row"])
                if "decision" in row:
                    decision = row["decision"]
                    self.outcomes[row["producer_id"], decision["epoch"]] = decision["outcome"]
        elif entry.root == OFFSET_LOG_ROOT:
            for remove in entry.each("remove"):
                if entry.info["operation"] != "SETTLE":
                    self.asked.pop(remove["path"], None)
            for add in entry.each("add"):
                if add["partitionValues"]["_kind"] == "offset":
                    self._take_row(entry, add["path"], json.loads(add["partitionValues"]["_row"]))

    def _take_row(self, entry: Entry, path: str, row: dict[str, Any]) -> None:
        asked, committed = self.asked[path], row.get("committed")
        for one in row.get("pending", ()):
            asked[one["request"]] = ((one["producer_id"], one["epoch"]), one["offset"])
        if committed is not None and committed["position"] == 0:
            asked[committed["request"]] = (None, committed["offset"])
        if entry.info["operation"] != "SETTLE":
            return
        waiting = {(one["producer_id"], one["epoch"]) for one in row.get("pending", ())}
        counts = {
            request: offset
            for request, (owner, offset) in asked.items()
            if owner is None or (owner not in waiting and self.outcomes.get(owner) == "COMMIT")
        }
        expected = counts[max(counts)] if counts else None
        found = None if committed is None else committed["offset"]
        assert found == expected, f"settled {found}, and {expected} counts: {row}"


def _topic_id(path: str) -> str:
    return path.split("/")[1].split("-")[0]


def _owner(values: dict[str, str]) -> Transaction:
    return int(values["_producer_id"]), int(values["_producer_epoch"])
