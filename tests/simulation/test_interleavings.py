"""Random interleavings of producers, bystanders, cleaners and readers, with faults, kills and jumps of time.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.  Money only moves: all amounts always sum up to nothing.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator.transaction import TransactionMetadata
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.turns import ManySite, Process, Turns, Weather
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    DamagedDataError,
    RetriableError,
    TxnTableError,
)
from txntable.layout import commit_path, public_root, segments_root
from txntable.log.actions import Add, Txn, decode_commit
from txntable.log.cleanup import clean_up
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.testing.read_only_store import ReadOnlyStore
from txntable.warehouse import Warehouse, open_on

MONEY = ("debit", "credit")
SCRATCH = "scratch"
TRIES = 5
DAY_MS = 86_400_000
T_ROOT = "system/transaction_log"


class Fate(Enum):
    """What a writer knows of its records."""

    OPEN = "commit was not asked for, or did not happen: never visible"
    ASKED = "no answer: whole or nothing"
    COMMITTED = "visible, whole"


@dataclass
class Promise:
    """One transaction, or one plain flush."""

    tag: str
    fate: Fate = Fate.OPEN
    rows: Counter[str] = field(default_factory=Counter)
    batch: str | None = None


@dataclass
class Ledger:
    """What was promised to whom."""

    promises: dict[str, Promise] = field(default_factory=dict)

    def promise(self, tag: str, batch: str | None = None) -> Promise:
        self.promises[tag] = Promise(tag, batch=batch)
        return self.promises[tag]

    def committed(self) -> set[str]:
        return {tag for tag, promise in self.promises.items() if promise.fate is Fate.COMMITTED}


def stubbornly(call: Callable[[], object]) -> bool:
    """Make a call again for as long as that is what its error says; whether it ended well."""
    for _ in range(TRIES):
        try:
            call()
        except RetriableError:
            continue
        return True
    return False


# -- programs -------------------------------------------------------------------------------


class Actor:
    """A process that does a few things that a user does."""

    def __init__(self, process: Process, ledger: Ledger) -> None:
        self.process, self.random, self.ledger = process, process.random, ledger
        self.site = process.turns.site
        self.tags = 0

    def run(self) -> None:
        while True:
            try:
                self.warehouse = open_on(self.process.store(), self.site.environment())
                break
            except RetriableError:
                continue
        actions = [self.transfer] * 6 + [self.plain] * 2 + [self.complete] * 2 + [self.look] * 2
        actions += [self.checkpoint, self.clean, self.scratch, self.sleep]
        for _ in range(self.random.randint(2, 6)):
            try:
                self.random.choice(actions)()
            except DamagedDataError:
                raise
            except TxnTableError:
                # What it said was not known is in the ledger; a user goes on with something else.
                continue

    def tag(self) -> str:
        self.tags += 1
        return f"{self.process.name}-{self.tags}"

    def transfer(self) -> None:
        producer = self.warehouse.producer(self.random.choice(["x", "x", "y"]), transaction_timeout_ms=60_000)
        if not stubbornly(producer.init_transactions):
            return
        for _ in range(self.random.randint(1, 3)):
            batch = self.random.choice([None, None, "monday", "tuesday"])
            promise = self.ledger.promise(self.tag(), batch)
            try:
                producer.begin_transaction(batch)
                self.fill(producer, promise)
                if self.random.random() < 0.2:
                    raise BatchAlreadyCommittedError("changed its mind")
                self.commit(producer, promise)
            except DamagedDataError:
                raise
            except TxnTableError:
                if self.random.random() < 0.1 or not stubbornly(producer.abort_transaction):
                    return
            if self.random.random() < 0.1:
                self.site.advance_ms(self.random.choice([61_000, 310_000]))

    def fill(self, producer, promise: Promise) -> None:
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            amount = self.random.randint(1, 99)
            for topic, sign in zip(MONEY, (1, -1), strict=True):
                rows = [{"account": promise.tag, "amount": sign * amount}]
                producer.send(topic, rows=pa.Table.from_pylist(rows, TWO_COLUMNS), partition=self.random.randrange(2))
                promise.rows[topic] += 1
            if self.random.random() < 0.15:
                producer.send(SCRATCH, row={"account": promise.tag, "amount": 1})
                promise.rows[SCRATCH] += 1
            if self.random.random() < 0.3 and not stubbornly(producer.flush):
                producer.flush()

    def commit(self, producer, promise: Promise) -> None:
        for attempt in range(TRIES):
            before, promise.fate = promise.fate, Fate.ASKED
            try:
                producer.commit_transaction()
            except CommitStateUnknownError:
                if attempt == TRIES - 1:
                    return
            except TxnTableError as error:
                # A definite no, unless an earlier answer was unknown.
                promise.fate = before
                if not isinstance(error, RetriableError):
                    raise
            else:
                promise.fate = Fate.COMMITTED
                return

    def plain(self) -> None:
        producer = self.warehouse.producer(enable_idempotence=self.random.random() < 0.7)
        for _ in range(self.random.randint(1, 2)):
            promise = self.ledger.promise(self.tag())
            promise.fate = Fate.ASKED
            topic = self.random.choice(MONEY)
            for amount in [self.random.randint(1, 99) for _ in range(self.random.choice([1, 1, 4]))]:
                for sign in (1, -1):
                    rows = [{"account": promise.tag, "amount": sign * amount}]
                    table = pa.Table.from_pylist(rows, TWO_COLUMNS)
                    producer.send(topic, rows=table, partition=self.random.randrange(2))
                    promise.rows[topic] += 1
            if not stubbornly(producer.flush):
                return
            promise.fate = Fate.COMMITTED

    def complete(self) -> None:
        self.warehouse.complete()

    def checkpoint(self) -> None:
        self.any_log().write_checkpoint()

    def clean(self) -> None:
        clean_up(self.warehouse.context, self.any_log().root, DAY_MS)

    def any_log(self):
        topic = self.warehouse.topic_log(self.random.choice([*MONEY, SCRATCH]))
        return self.random.choice([self.warehouse.transactions.log, topic.segments, topic.public])

    def scratch(self) -> None:
        """Delete a topic in the middle of whatever goes on, or create it again."""
        admin = self.warehouse.admin()
        if SCRATCH in admin.list_topics():
            admin.delete_topic(SCRATCH)
        else:
            admin.create_topic(SCRATCH, partitions=self.random.randint(1, 3), schema=TWO_COLUMNS, exist_ok=True)

    def sleep(self) -> None:
        self.site.advance_ms(self.random.choice([61_000, 310_000, 2 * DAY_MS]))

    def look(self) -> None:
        """Read a snapshot, like anybody or with a reader's credentials."""
        read_only = self.random.random() < 0.3
        before = self.ledger.committed()
        warehouse = self.warehouse
        if read_only:
            warehouse = open_on(ReadOnlyStore(self.process.store()), self.site.environment())
        snapshot = warehouse.snapshot()
        seen = {topic: rows_at(warehouse, topic, snapshot.version(topic), snapshot.position) for topic in MONEY}
        check_whole(self.ledger, seen)
        if not read_only:
            missing = {tag for tag in before if self.ledger.promises[tag].rows} - tags_of(seen)
            assert not missing - only_scratch(self.ledger), f"committed, and not in a snapshot: {missing}"


# -- reading --------------------------------------------------------------------------------


def rows_at(warehouse: Warehouse, topic: str, version: int, position: int) -> list[dict]:
    """The rows of a public table at one version, committed at or below a position."""
    log = warehouse.topic_log(topic).public
    assert log.table.version == version
    rows = []
    for add in log.table.files:
        if int(add.partition_values["_commit"] or "") <= position:
            data = warehouse.store.get(f"{log.root}/{add.path}")
            assert data is not None, f"dangling reference: {add.path}"
            rows.extend(pq.read_table(pa.BufferReader(data.data)).to_pylist())
    return rows


def tags_of(seen: dict[str, list[dict]]) -> set[str]:
    return {row["account"] for rows in seen.values() for row in rows}


def only_scratch(ledger: Ledger) -> set[str]:
    return {tag for tag, promise in ledger.promises.items() if not any(promise.rows[topic] for topic in MONEY)}


def check_whole(ledger: Ledger, seen: dict[str, list[dict]]) -> None:
    """Every transaction is there whole or not at all, and no money is made or lost."""
    assert sum(row["amount"] for rows in seen.values() for row in rows) == 0
    for tag in tags_of(seen):
        promise = ledger.promises[tag]
        assert promise.fate is not Fate.OPEN, f"visible, and never committed: {tag}"
        for topic in MONEY:
            assert sum(row["account"] == tag for row in seen[topic]) == promise.rows[topic], f"torn: {tag}"


# -- what is true in the end ----------------------------------------------------------------


def check_end(site: ManySite, ledger: Ledger) -> None:
    site.advance_ms(61_000)
    site.open().complete()
    fresh = site.open()
    assert not fresh.transactions.log.fold.under_way
    topics = [*MONEY, *({SCRATCH} & set(fresh.admin().list_topics()))]
    for topic in topics:
        check_logs(site, fresh, topic)
    seen = {topic: published(fresh, topic) for topic in topics}
    check_whole(ledger, {topic: seen[topic] for topic in MONEY})
    there = tags_of({topic: seen[topic] for topic in MONEY})
    for tag, promise in ledger.promises.items():
        if promise.fate is Fate.COMMITTED and tag not in only_scratch(ledger):
            assert tag in there, f"committed and lost: {tag}"
    for tag, count in Counter(row["account"] for row in seen.get(SCRATCH, [])).items():
        assert ledger.promises[tag].fate is not Fate.OPEN
        assert count <= ledger.promises[tag].rows[SCRATCH]
    batches = Counter(ledger.promises[tag].batch for tag in there) - Counter({None: len(there)})
    per_id = defaultdict(set)
    for row in committed_batches(site):
        per_id[row["_key"]].add(row["_position"])
    assert all(len(positions) == 1 for positions in per_id.values()), per_id
    assert all(count <= 2 for count in batches.values()), "two transactional ids, so at most two of one name"
    check_history(site)


def entries(site: ManySite, root: str):
    """Every commit that ever was, oldest first."""
    version = 0
    while (data := site.objects.entries.get(commit_path(root, version))) is not None:  # type: ignore[attr-defined]
        yield decode_commit(version, data, commit_path(root, version))
        version += 1


def committed_batches(site: ManySite):
    for commit in entries(site, T_ROOT):
        for action in commit.actions:
            if isinstance(action, Add) and action.partition_values["_kind"] == "batch":
                yield dict(action.partition_values)


def check_logs(site: ManySite, fresh: Warehouse, topic: str) -> None:
    """S by a fresh client is S by the whole history; every offset is taken once; P is what S says."""
    log = fresh.topic_log(topic)
    segments = log.segments.refresh()
    whole, logs = TableState(), PartitionLogs(topic)
    for commit in entries(site, segments_root(topic)):
        logs.apply(commit, whole)
        whole.apply(commit)
    assert (whole.version, whole.numbers) == (segments.version, segments.numbers)
    assert {add.path: dict(add.partition_values) for add in whole.files} == {
        add.path: dict(add.partition_values) for add in segments.files
    }
    live = log.segments.fold
    assert (logs.open, logs.markers, logs.producers) == ({}, live.markers, live.producers)
    assert live.open == {}
    check_offsets(segments, live)
    assert naive_public(segments) == {
        add.path.removeprefix("_segments/"): add.partition_values["_commit"] for add in log.public.refresh().files
    }
    assert log.public.table.number("reflects") == segments.version


def check_offsets(segments: TableState, logs: PartitionLogs) -> None:
    taken: dict[int, list[int]] = defaultdict(list)
    for add in segments.files:
        values = add.partition_values
        if values["_control"] is None:
            offsets = range(int(values["_base_offset"] or ""), int(values["_last_offset"] or "") + 1)
            taken[int(values["_partition"] or "")].extend(offsets)
        else:
            for partition, offset in json.loads(values["_marker"] or "")["offsets"].items():
                taken[int(partition)].append(offset)
    assert logs.settings is not None
    for partition in range(logs.settings.partitions):
        end = segments.number(f"next_offset/{logs.settings.topic_id}/{partition}")
        assert sorted(taken[partition]) == list(range(end)), f"partition {partition}"


def naive_public(segments: TableState) -> dict[str, str | None]:
    """The definition of P, spelt out."""
    adds = list(segments.files)
    commits = {
        (add.partition_values["_producer_id"], json.loads(add.partition_values["_marker"] or "")["ends"]): json.loads(
            add.partition_values["_marker"] or ""
        )["position"]
        for add in adds
        if add.partition_values["_control"] == "COMMIT"
    }
    visible = {}
    for add in adds:
        values = add.partition_values
        if values["_control"] is None:
            if not json.loads(add.tag or "").get("transactional"):
                visible[add.path] = "0"
            elif (key := (values["_producer_id"], int(values["_producer_epoch"] or ""))) in commits:
                visible[add.path] = str(commits[key])
    return visible


def check_history(site: ManySite) -> None:
    """Epochs and named numbers only rise; a (producer id, epoch) is decided once."""
    epochs: dict[tuple[str, int], int] = {}
    decided: dict[tuple[int, int], tuple[str, int]] = {}
    for commit in entries(site, T_ROOT):
        for action in commit.actions:
            if isinstance(action, Add) and action.partition_values["_kind"] == "id":
                row = TransactionMetadata.from_json(action.partition_values["_row"] or "")
                key = (row.transactional_id, row.producer_id)
                assert row.producer_epoch >= epochs.get(key, 0), row
                epochs[key] = row.producer_epoch
                if row.decision is not None:
                    told = (row.decision.outcome.value, row.decision.position)
                    assert decided.setdefault((row.producer_id, row.decision.epoch), told) == told, row
    for topic in (*MONEY, SCRATCH):
        for root in (segments_root(topic), public_root(topic)):
            numbers: dict[str, int] = {}
            for commit in entries(site, root):
                for action in commit.actions:
                    if isinstance(action, Txn):
                        assert action.version >= numbers.get(action.app_id, 0), (root, action)
                        numbers[action.app_id] = action.version


# -- the runs -------------------------------------------------------------------------------

WEATHERS = (
    Weather(),
    Weather(fault=0.02),
    Weather(fault=0.05, land=0.02, jump=0.005),
    Weather(kill=0.003, jump=0.005),
    Weather(fault=0.1, kill=0.002, jump=0.01),
    Weather(fault=0.3, jump=0.003),
)
_BASE: list[Site] = []


def base() -> Site:
    """A warehouse with its topics, made once: the probe races threads, whose order no seed gives."""
    if not _BASE:
        site = Site()
        admin = site.create().admin()
        for name in (*MONEY, SCRATCH):
            admin.create_topic(name, partitions=2, schema=TWO_COLUMNS, key=["account"])
        _BASE.append(site)
    return _BASE[0]


def simulate(seed: int) -> Turns:
    ledger = Ledger()
    turns = Turns(ManySite.like(base()), seed, WEATHERS[seed % len(WEATHERS)])
    for number in range(turns.random.randint(2, 4)):
        turns.start(f"p{number}", lambda process: Actor(process, ledger).run())
    try:
        turns.run()
        check_end(turns.site, ledger)
    except BaseException as error:
        error.add_note(f"TXNTABLE_SEED={seed}")
        raise
    return turns


def seeds() -> list[int]:
    if "TXNTABLE_SEED" in os.environ:
        return [int(os.environ["TXNTABLE_SEED"])]
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-239").partition("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize("part", range(6))
def test_transactions_are_whole_and_money_is_kept_in_every_interleaving(part: int) -> None:
    for seed in seeds()[part::6]:
        simulate(seed)


def test_simulation_makes_the_same_run_of_the_same_seed() -> None:
    assert simulate(3).trace == simulate(3).trace
