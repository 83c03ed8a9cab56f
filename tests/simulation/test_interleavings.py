"""Random interleavings of producers, bystanders, cleaners and readers, with faults, kills and jumps of time.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.  Threads that share one warehouse handle are not simulated.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict

import pytest

from coordinator.transaction import TransactionMetadata
from tests.simulation.bank import MONEY, SCRATCH, Actor, Fate, Ledger, check_whole, only_scratch, tags_of
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.turns import ManySite, Turns, Weather
from txntable.layout import TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.log.actions import Add, Txn, decode_commit
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.warehouse import Warehouse

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
    positions = defaultdict(set)
    for row in committed_batches(site):
        positions[row["_key"]].add(row["_position"])
    assert all(len(found) == 1 for found in positions.values()), positions
    visible = Counter((batch, ledger.promises[tag].owner) for tag in there if (batch := ledger.promises[tag].batch))
    assert set(visible.values()) <= {1}, visible
    check_history(site)


def entries(site: ManySite, root: str):
    """Every commit that ever was, oldest first."""
    version = 0
    while (data := site.objects.entries.get(commit_path(root, version))) is not None:  # type: ignore[attr-defined]
        yield decode_commit(version, data, commit_path(root, version))
        version += 1


def committed_batches(site: ManySite):
    for commit in entries(site, TRANSACTION_LOG_ROOT):
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
    visible: dict[str, str | None] = {}
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
    for commit in entries(site, TRANSACTION_LOG_ROOT):
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
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-119").partition("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize("part", range(6))
def test_transactions_are_whole_and_money_is_kept_in_every_interleaving(part: int) -> None:
    for seed in seeds()[part::6]:
        simulate(seed)


def test_simulation_makes_the_same_run_of_the_same_seed() -> None:
    assert simulate(3).trace == simulate(3).trace
