"""What must hold of everything that was ever written to the logs of a simulation, besides what the checker says.

Read from every commit that ever was, also from those that were cleaned up, and by rules of the
protocol that are spelt out here once more: nothing is asked of the code that wrote them.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.bank import SETTINGS
from tests.simulation.decoding import entry_of
from tests.simulation.turns import ManySite
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, segments_root
from txntable.log.actions import Add, Commit, Metadata, Remove, Txn
from txntable.log.fold import Fold
from txntable.log.table_state import TableState
from txntable.segments.topic_metadata import settings_of
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID

# In-commit times run ahead of the store's where many commits fall into one moment.
LEEWAY_MS = 5_000


def entries(site: ManySite, root: str) -> Sequence[Commit]:
    """Every commit that ever was, oldest first."""
    stored = site.objects.entries  # type: ignore[attr-defined]
    known = (stored.get(commit_path(root, version), b"") for version in itertools.count())
    return [
        entry_of(version, data, commit_path(root, version))
        for version, data in enumerate(itertools.takewhile(bool, known))
    ]


def folded(site: ManySite, root: str, fold: Fold) -> TableState:
    """Fold every commit that ever was, as a client that was there from the first one on."""
    whole = TableState()
    for commit in entries(site, root):
        fold.apply(commit, whole)
        whole.apply(commit)
    return whole


def check_numbers(site: ManySite, root: str) -> None:
    """No named number ever falls: offsets, positions through which a topic has its markers, producer ids."""
    numbers: dict[str, int] = {}
    for commit in entries(site, root):
        for action in commit.actions:
            if isinstance(action, Txn):
                before = numbers.get(action.app_id, 0)
                assert action.version >= before, f"a number of {root} fell from {before}: {action}"
                numbers[action.app_id] = action.version


@dataclass
class TransactionHistory:
    """The transaction log from its first entry on, checked while it is read."""

    rows: dict[str, TransactionMetadata] = field(default_factory=dict)
    batches: dict[str, dict] = field(default_factory=dict)
    times_ms: list[int] = field(default_factory=list)
    next_producer_id: int = 0
    coordinator_epoch: int = 0
    # Decided rows that had no COMPLETE of their own, with the version that came after them.
    replaced: list[tuple[int, TransactionMetadata]] = field(default_factory=list)
    # How a token's transaction ended: the operation.
    tokens: dict[str, str] = field(default_factory=dict)
    # (transactional id, batch id) -> how often it was committed, each time after it had been forgotten.
    committed_batches: dict[tuple[str, str | int], int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def read(cls, site: ManySite) -> TransactionHistory:
        history = cls()
        for commit in entries(site, TRANSACTION_LOG_ROOT):
            history.times_ms.append(commit.info.timestamp_ms)
            history._take(commit)
        return history

    def _take(self, commit: Commit) -> None:
        free = self.next_producer_id
        given = (each for each in commit.actions if isinstance(each, Txn) and each.app_id == NEXT_PRODUCER_ID)
        self.next_producer_id = max([free, *(each.version for each in given)])
        for action in commit.actions:
            match action:
                case Add(partition_values={"_kind": "id"}):
                    row = TransactionMetadata.from_json(action.partition_values["_row"] or "")
                    self._take_row(commit, row, self.rows.get(action.path), free)
                    self.rows[action.path] = row
                case Add(partition_values={"_kind": "batch"}):
                    self._take_batch(action)
                case Add(partition_values={"_kind": "lease"}):
                    claimed = json.loads(action.partition_values["_row"] or "")["coordinator_epoch"]
                    self.coordinator_epoch += 1
                    assert claimed == self.coordinator_epoch, f"a coordinator epoch that is not the next: {claimed}"
                case Remove():
                    self._take_removal(commit, action)

    def _take_row(
        self, commit: Commit, row: TransactionMetadata, before: TransactionMetadata | None, free: int
    ) -> None:
        if before is None or before.producer_id != row.producer_id:
            assert before is None, f"another producer id while the old one was known: {row}"
            assert free <= row.producer_id < self.next_producer_id, f"taken before: {row}"
        assert row.position == commit.version, f"a row that names another position than its entry's: {row}"
        if before is None:
            return
        operation, state = commit.info.operation, TransactionState
        if before.state is state.PREPARED:
            assert operation in ("COMMIT", "ABORT", "TERMINATE"), f"{operation} of {before}"
            assert before.token is not None, f"prepared without a token: {before}"
            self.tokens[before.token] = operation
        if before.state.is_decided and operation == "COMPLETE":
            assert row.decision == before.decision, f"completed, and its decision changed: {row}"
        elif before.state.is_decided:
            decided_now = row.decision is not None and row.decision.position == commit.version
            assert decided_now or row.decision == before.decision, f"{operation} changed what was decided: {row}"
            self.replaced.append((commit.version, before))
        if operation == "TIME_OUT":
            assert before.state is state.ONGOING, f"timed out, and not ongoing: {before}"
            assert before.started_position is not None, f"ongoing, and never started: {before}"
            since_ms = commit.info.timestamp_ms - self.times_ms[before.started_position]
            assert since_ms > before.timeout_ms - LEEWAY_MS, f"timed out after {since_ms} ms: {row}"

    def _take_batch(self, add: Add) -> None:
        row, before = json.loads(add.partition_values["_row"] or ""), self.batches.get(add.path)
        if isinstance(row["batch_id"], int):
            assert before is None or row["batch_id"] > before["batch_id"], f"not above {before}: {row}"
        else:
            assert before is None, f"committed twice: {row}"
        self.batches[add.path] = row
        self.committed_batches[row["transactional_id"], row["batch_id"]] += 1

    def _take_removal(self, commit: Commit, remove: Remove) -> None:
        assert commit.info.operation == "EXPIRE", f"{commit.info.operation} removed {remove.path}"
        row, batch = self.rows.pop(remove.path, None), self.batches.pop(remove.path, None)
        if row is not None:
            assert row.started_position is None, f"expired in the middle of a transaction: {row}"
            idle_ms = commit.info.timestamp_ms - self.times_ms[row.position]
            assert idle_ms > SETTINGS.transactional_id_expiration_ms - LEEWAY_MS, f"expired after {idle_ms} ms: {row}"
        if batch is not None:
            assert isinstance(batch["batch_id"], str), f"an integer is never forgotten: {batch}"
            known_ms = commit.info.timestamp_ms - batch["decided_at_ms"]
            assert known_ms > SETTINGS.batch_retention_ms - LEEWAY_MS, f"forgotten after {known_ms} ms: {batch}"


def check_completion(site: ManySite, log: TransactionHistory) -> None:
    """Where a decided row was followed by the id's next entry, all that it owed stood in P and O before.

    Told by the order in which entries came to the store, over all logs.
    """
    stored = site.objects.entries  # type: ignore[attr-defined]
    replaced = dict(log.replaced)
    shown: dict[str, int] = defaultdict(int)
    live: dict[str, str] = {}
    for path, data in stored.items():
        root, _, name = path.partition("/_delta_log/")
        if not name.endswith(".json"):
            continue
        version = int(name.removesuffix(".json"))
        if root == TRANSACTION_LOG_ROOT:
            before = replaced.get(version)
            if before is not None:
                _require_complete(before, shown, live)
            continue
        commit = entry_of(version, data, path)
        numbers = [each for each in commit.actions if isinstance(each, Txn)]
        if root == OFFSET_LOG_ROOT:
            shown.update({each.app_id: each.version for each in numbers})
        elif root.endswith("/_segments"):
            for each in commit.actions:
                if isinstance(each, Metadata):
                    settings = settings_of(root.split("/")[1], each)
                    live[root] = "" if settings.deleted else settings.topic_id
        else:
            shown.update({each.app_id: each.version for each in numbers if each.app_id.startswith("decided_through/")})


def _require_complete(before: TransactionMetadata, shown: Mapping[str, int], live: Mapping[str, str]) -> None:
    for topic_id in before.topics:
        done = shown[f"decided_through/{topic_id}"] >= before.position or topic_id not in live.values()
        assert done, f"replaced before topic {topic_id} had what it owes: {before}"
    assert not before.groups or shown["decided_through"] >= before.position, f"replaced before O settled it: {before}"


@dataclass(frozen=True)
class LiveRow:
    """A data row of the partition logs: where it stands, whose it is, and the decisions that its tag says."""

    partition: str | None
    base: int
    last: int
    records: int
    owner: tuple[int, int] | None
    transactional: bool
    decided: tuple[int, int] | None

    @classmethod
    def of(cls, add: Add) -> LiveRow:
        values, tag = add.partition_values, json.loads(add.tag or "")
        pid, epoch = values["_producer_id"], values["_producer_epoch"]
        decided = tuple(tag["decided"]) if "decided" in tag else None
        return cls(
            values["_partition"],
            int(values["_base_offset"] or ""),
            int(values["_last_offset"] or ""),
            tag["records"],
            None if pid is None else (int(pid), int(epoch or "")),
            bool(tag.get("transactional")),
            decided,
        )


@dataclass
class SegmentsHistory:
    """A topic's log S from its first entry on, checked while it is read."""

    markers: dict[tuple[str, int, int], dict] = field(default_factory=dict)
    coordinator_epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    live: dict[str, LiveRow] = field(default_factory=dict)
    # Whether records go.
    shrinks: bool = False

    @classmethod
    def read(cls, site: ManySite, topic: str, *, shrinks: bool = False) -> SegmentsHistory:
        history = cls(shrinks=shrinks)
        for commit in entries(site, segments_root(topic)):
            before = dict(history.live)
            for action in commit.actions:
                match action:
                    case Remove():
                        history.live.pop(action.path, None)
                    case Add():
                        history._take(commit, action)
            if commit.info.operation == "COMPACT":
                history._check_compaction(before, [a.path for a in commit.actions if isinstance(a, Remove)])
        return history

    def _take(self, commit: Commit, add: Add) -> None:
        control, operation = add.partition_values["_control"], commit.info.operation
        if control == "STATE":
            upkeep = operation in ("EXPIRE PRODUCERS", "COMPACT", "RETENTION", "DELETE RECORDS")
            assert upkeep, f"a producer's state was written by {operation}: {add.path}"
            return
        settled = operation == "COMPACT" and add.path in self.live
        assert settled or add.path not in self.paths, f"registered twice: {add.path}"
        self.paths.add(add.path)
        topic_id = add.path.split("/")[1].split("-")[0]
        if control is None:
            self.live[add.path] = LiveRow.of(add)
            merged = self.live[add.path].decided is not None
            assert merged == (operation == "COMPACT"), f"{operation}, and its row says decisions: {merged}: {add.path}"
        else:
            assert operation == "MARKERS", f"{operation} wrote a marker: {add.path}"
            self._take_marker(topic_id, add)

    def _check_compaction(self, before: dict[str, LiveRow], removed: list[str]) -> None:
        """What goes in comes out, between the same offsets; what is gone had an end, what is left has its marker."""
        merged = {path: row for path, row in self.live.items() if path not in before}
        sources = []
        for path in removed:
            topic_id, row = path.split("/")[1].split("-")[0], before.get(path)
            if row is None:
                _, pid, epoch = path.removesuffix(".parquet").split("/")[1].split("-")
                waiting = [at for at, left in self.live.items() if left.owner == (int(pid), int(epoch))]
                assert path.startswith("markers/"), f"compacted away, and it was not there: {path}"
                assert not waiting, f"the marker of {waiting} is gone"
                continue
            outcome = "COMMIT"
            if row.transactional and row.owner is not None:
                outcome = self.markers[topic_id, *row.owner]["control"]
            if outcome == "COMMIT":
                sources.append(row)
        for partition in {row.partition for row in (*sources, *merged.values())}:
            mine = [row for row in sources if row.partition == partition]
            theirs = [row for row in merged.values() if row.partition == partition]
            if self.shrinks:
                had, has = (sum(row.records for row in rows) for rows in (mine, theirs))
                assert had >= has, f"a merge has records from nowhere: {mine} -> {theirs}"
                continue
            whole = sum(row.records for row in mine) == sum(row.records for row in theirs)
            assert whole, f"a merge lost or doubled records: {mine} -> {theirs}"
            ends = (min(row.base for row in mine), max(row.last for row in mine))
            merged_ends = (min(row.base for row in theirs), max(row.last for row in theirs))
            assert ends == merged_ends, f"a merge moved where the offsets begin or end: {ends} -> {merged_ends}"
        for path, row in before.items():
            after = self.live.get(path)
            if after is not None and after != row:
                assert (after.partition, after.base, after.last, after.records, after.owner) == (
                    row.partition,
                    row.base,
                    row.last,
                    row.records,
                    None,
                ), f"settled, and not the same: {path}"

    def _take_marker(self, topic_id: str, add: Add) -> None:
        marker = json.loads(add.partition_values["_marker"] or "")
        marker["control"] = add.partition_values["_control"]
        self.markers[topic_id, int(add.partition_values["_producer_id"] or ""), marker["ends"]] = marker
        for partition in marker["offsets"]:
            before = self.coordinator_epochs.get((topic_id, partition), 0)
            assert marker["coordinator_epoch"] >= before, f"coordinator epoch fell below {before}: {marker}"
            self.coordinator_epochs[topic_id, partition] = marker["coordinator_epoch"]
