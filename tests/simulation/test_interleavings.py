"""Random interleavings of producers, coordinators, admins and readers, with faults, kills and jumps of time.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.  Threads that share one warehouse handle are not simulated.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict

import pytest

from coordinator.transaction_state import TransactionState
from tests.simulation.bank import MONEY, SCRATCH, SETTINGS, Fate, Ledger, Teller, check_whole, only_scratch, tags_of
from tests.simulation.exchange import Merchant, Outside
from tests.simulation.history import SegmentsHistory, TransactionHistory, check_markers, check_numbers, folded
from tests.simulation.office import Clerk
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.turns import ManySite, Process, Turns, Weather
from txntable.layout import TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.transaction_log import TransactionLogFold
from txntable.warehouse import Warehouse, create_on

# -- what is true in the end ----------------------------------------------------------------


def check_end(site: ManySite, ledger: Ledger, outside: Outside) -> None:
    heal(site, outside)
    fresh = site.open()
    assert fresh.admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []
    live = {topic: fresh.topic_log(topic).settings().topic_id for topic in fresh.admin().list_topics()}
    for topic in live:
        check_logs(site, fresh, topic)
    check_transaction_log(site, fresh)
    seen = {topic: published(fresh, topic) for topic in live}
    check_whole(ledger, {topic: seen[topic] for topic in MONEY})
    there = tags_of({topic: seen[topic] for topic in MONEY})
    for tag, promise in ledger.promises.items():
        if promise.fate is Fate.COMMITTED and tag not in only_scratch(ledger):
            assert tag in there, f"committed and lost: {tag}"
    for tag, count in Counter(row["account"] for row in seen.get(SCRATCH, [])).items():
        assert ledger.promises[tag].fate is not Fate.OPEN
        assert count <= ledger.promises[tag].rows[SCRATCH]
    log = TransactionHistory.read(site)
    check_orders(outside, log, there | only_scratch(ledger))
    visible = Counter((promise.owner, promise.batch) for promise in map(ledger.promises.__getitem__, there))
    for (owner, batch), count in visible.items():
        assert owner is None or batch is None or count <= log.committed_batches[owner, batch], (owner, batch)
    check_markers(log, {topic: SegmentsHistory.read(site, topic) for topic in (*MONEY, SCRATCH)}, set(live.values()))
    for root in (TRANSACTION_LOG_ROOT, *(root(topic) for topic in live for root in (segments_root, public_root))):
        check_numbers(site, root)


def heal(site: ManySite, outside: Outside) -> None:
    """Nobody dies any more: the coordinator job and the outside database's owners end everything."""
    site.advance_ms(61_000)
    job = site.open().coordinator()
    assert job.run_once().failures == 0
    for row in site.open().transactions.log.fold.under_way.values():
        assert row.state is TransactionState.PREPARED, row
        heir = site.open().producer(row.transactional_id)
        heir.init_transactions(keep_prepared=True)
        heir.complete_transaction(outside.tokens.get(row.transactional_id))
    assert job.run_once().failures == 0
    assert not job.run_once().did_something
    assert not site.open().transactions.log.fold.under_way


def check_orders(outside: Outside, log: TransactionHistory, there: set[str]) -> None:
    """An order arrived exactly when the outside database committed it, unless an admin aborted it meanwhile."""
    for token, operation in log.tokens.items():
        assert operation == "TERMINATE" or (operation == "COMMIT") == (token in outside.committed), token
    for token, promise in outside.committed.items():
        if log.tokens[token] == "COMMIT":
            assert promise.tag in there, f"committed outside and lost: {promise.tag}"
        else:
            assert log.tokens[token] == "TERMINATE"


def check_transaction_log(site: ManySite, fresh: Warehouse) -> None:
    """T by a fresh client is T by the whole history."""
    live = fresh.transactions.log
    fold = TransactionLogFold()
    whole = folded(site, TRANSACTION_LOG_ROOT, fold)
    live.refresh()
    assert (whole.version, whole.numbers) == (live.table.version, live.table.numbers)
    assert rows_of(whole) == rows_of(live.table)
    assert fold.under_way == live.fold.under_way == {}
    assert fold.decided_at_ms == live.fold.decided_at_ms == {}


def rows_of(table: TableState) -> dict[str, dict[str, str | None]]:
    return {add.path: dict(add.partition_values) for add in table.files}


def check_logs(site: ManySite, fresh: Warehouse, topic: str) -> None:
    """S by a fresh client is S by the whole history; every offset is taken once; P is what S says."""
    log = fresh.topic_log(topic)
    segments = log.segments.refresh()
    logs = PartitionLogs(topic)
    whole = folded(site, segments_root(topic), logs)
    assert (whole.version, whole.numbers) == (segments.version, segments.numbers)
    assert rows_of(whole) == rows_of(segments)
    live = log.segments.fold
    assert (logs.open, logs.markers, logs.producers) == ({}, live.markers, live.producers)
    assert live.open == {}
    restored = PartitionLogs(topic)
    restored.restore(whole)
    assert (restored.open, restored.markers, restored.producers) == (logs.open, logs.markers, logs.producers)
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
        elif values["_control"] != "STATE":
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


# -- the runs -------------------------------------------------------------------------------

WEATHERS = (
    Weather(),
    Weather(fault=0.02),
    Weather(fault=0.05, land=0.02, jump=0.005),
    Weather(kill=0.003, jump=0.005),
    Weather(fault=0.1, kill=0.002, jump=0.01),
    Weather(fault=0.3, jump=0.003),
    Weather(late=0.15, land=0.03, kill=0.001, jump=0.003),
)
CASTS = (
    ("teller", "teller", "merchant", "clerk"),
    ("merchant", "merchant", "merchant", "clerk"),
    ("teller", "teller", "teller", "clerk"),
)
_BASE: list[Site] = []


def base() -> Site:
    """A warehouse with its topics, made once: the probe races threads, whose order no seed gives."""
    if not _BASE:
        site = Site()
        admin = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS).admin()
        for name in (*MONEY, SCRATCH):
            admin.create_topic(name, partitions=2, schema=TWO_COLUMNS, key=["account"])
        _BASE.append(site)
    return _BASE[0]


def simulate(seed: int) -> Turns:
    ledger, outside = Ledger(), Outside()
    turns = Turns(ManySite.like(base()), seed, WEATHERS[seed % len(WEATHERS)])

    cast = CASTS[seed // len(WEATHERS) % len(CASTS)]

    def work(process: Process) -> None:
        match process.random.choice(cast):
            case "teller":
                Teller(process, ledger).run()
            case "merchant":
                Merchant(process, ledger, outside).run()
            case "clerk":
                Clerk(process, ledger).run()

    for number in range(turns.random.randint(2, 4)):
        turns.start(f"p{number}", work)
    try:
        turns.run()
        check_end(turns.site, ledger, outside)
    except BaseException as error:
        error.add_note(f"TXNTABLE_SEED={seed}")
        raise
    return turns


def seeds() -> list[int]:
    if "TXNTABLE_SEED" in os.environ:
        return [int(os.environ["TXNTABLE_SEED"])]
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-104").partition("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize("part", range(6))
def test_transactions_are_whole_and_money_is_kept_in_every_interleaving(part: int) -> None:
    for seed in seeds()[part::6]:
        simulate(seed)


def test_simulation_makes_the_same_run_of_the_same_seed() -> None:
    assert simulate(3).trace == simulate(3).trace
