"""Random interleavings of writers and readers with compactions, vacuum, checkpoints, and jumps of time.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType

import pytest

from compaction.compactor import CompactionOptions, compact
from compaction.vacuum import vacuum
from tests.simulation.bank import (
    DAY_MS,
    MONEY,
    SCRATCH,
    SETTINGS,
    Actor,
    Fate,
    Ledger,
    Teller,
    check_whole,
    only_scratch,
    tags_of,
)
from tests.simulation.exchange import Merchant, Outside
from tests.simulation.history import SegmentsHistory, TransactionHistory, check_markers, check_numbers, folded
from tests.simulation.office import Clerk
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.test_interleavings import check_orders, check_transaction_log, heal, rows_of
from tests.simulation.turns import ManySite, Process, Turns, Weather
from txntable.layout import TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.topic_config import TOPIC_CONFIG
from txntable.warehouse import Warehouse, create_on

WEATHERS = (
    Weather(jump=0.01),
    Weather(fault=0.03, jump=0.01),
    Weather(kill=0.002, jump=0.01),
    Weather(fault=0.1, kill=0.001, land=0.02, jump=0.01),
    Weather(late=0.1, land=0.03, jump=0.01),
)
CASTS = (
    ("teller", "teller", "compactor", "compactor"),
    ("teller", "merchant", "compactor", "clerk"),
    ("merchant", "compactor", "compactor", "vacuum"),
    ("teller", "compactor", "vacuum", "clerk"),
)
_BASE: list[Site] = []


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few of these make a large segment: so some stay where they are and are settled."""
    key = replace(TOPIC_CONFIG["segment.bytes"], lowest=1)
    monkeypatch.setattr("txntable.topic_config.TOPIC_CONFIG", MappingProxyType({**TOPIC_CONFIG, "segment.bytes": key}))


def base() -> Site:
    """A warehouse with its topics, made once: the probe races threads, whose order no seed gives."""
    if not _BASE:
        site = Site()
        settings = replace(SETTINGS, snapshot_retention_ms=60_000)
        admin = create_on(site.store(), site.environment(), exist_ok=True, settings=settings).admin()
        for name in (*MONEY, SCRATCH):
            config = {"segment.bytes": "4000"}
            admin.create_topic(name, partitions=2, schema=TWO_COLUMNS, key=["account"], config=config)
        _BASE.append(site)
    return _BASE[0]


class Compactor(Actor):
    """Compacts again and again, in commits of any size, and looks at what is left."""

    def actions(self) -> list[Callable[[], object]]:
        return [*[self.compact] * 6, self.look, self.checkpoint, self.clean, self.sleep, self.pause]

    def compact(self) -> None:
        options = CompactionOptions(commit_bytes=self.random.choice([1, 3000, 1 << 30]))
        topics = None if self.random.random() < 0.5 else [self.random.choice([*MONEY, SCRATCH])]
        compact(self.warehouse, topics, options=options)

    def pause(self) -> None:
        self.process.pause()


class Sweeper(Compactor):
    """Vacuums beside it."""

    def actions(self) -> list[Callable[[], object]]:
        return [*[self.vacuum] * 3, *super().actions()]

    def vacuum(self) -> None:
        vacuum(self.warehouse, execute=True)


# -- what is true in the end ----------------------------------------------------------------


def check_end(site: ManySite, ledger: Ledger, outside: Outside) -> int:
    """Nothing promised is lost, torn or doubled; return how many compactions there were."""
    heal(site, outside)
    assert not any(report.failures for report in compact(site.open()))
    fresh = site.open()
    live = {topic: fresh.topic_log(topic).settings().topic_id for topic in fresh.admin().list_topics()}
    for topic in live:
        check_topic(site, fresh, topic)
    check_transaction_log(site, fresh)
    check_files(site)
    seen = {topic: published(fresh, topic) for topic in live}
    check_whole(ledger, {topic: seen[topic] for topic in MONEY})
    there = tags_of({topic: seen[topic] for topic in MONEY})
    for tag, promise in ledger.promises.items():
        assert promise.fate is not Fate.COMMITTED or tag in there | only_scratch(ledger), f"committed and lost: {tag}"
    for tag, count in Counter(row["account"] for row in seen.get(SCRATCH, [])).items():
        assert ledger.promises[tag].fate is not Fate.OPEN
        assert count <= ledger.promises[tag].rows[SCRATCH]
    log = TransactionHistory.read(site)
    check_orders(outside, log, there | only_scratch(ledger))
    histories = {topic: SegmentsHistory.read(site, topic) for topic in (*MONEY, SCRATCH)}
    check_markers(log, histories, set(live.values()))
    for root in (TRANSACTION_LOG_ROOT, *(root(topic) for topic in live for root in (segments_root, public_root))):
        check_numbers(site, root)
    return sum(history.compactions for history in histories.values())


def check_topic(site: ManySite, fresh: Warehouse, topic: str) -> None:
    """S by a fresh client is S by the whole history; no offset is taken twice; P is what S says."""
    log = fresh.topic_log(topic)
    segments = log.segments.refresh()
    logs = PartitionLogs(topic)
    whole = folded(site, segments_root(topic), logs)
    restored = PartitionLogs(topic)
    restored.restore(whole)
    assert (whole.version, whole.numbers, rows_of(whole)) == (segments.version, segments.numbers, rows_of(segments))
    for other in (log.segments.fold, restored):
        assert (logs.open, logs.markers, logs.producers) == ({}, other.markers, other.producers)
        assert other.open == {}
    taken = sorted(places(segments))
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in pairwise(taken)), "an offset is taken twice"
    # What nothing waits for is gone: the last compaction above has seen everything decided.
    assert not [add.path for add in segments.files if add.partition_values["_control"] == "ABORT"]
    public = {
        add.path.removeprefix("_segments/"): add.partition_values["_commit"] for add in log.public.refresh().files
    }
    assert public == naive_public(segments)
    assert log.public.table.number("reflects") == segments.version


def places(segments: TableState) -> list[tuple[int, int, int]]:
    found = []
    for add in segments.files:
        values = add.partition_values
        if values["_control"] is None:
            numbers = (int(values[name] or "") for name in ("_partition", "_base_offset", "_last_offset"))
            found.append((next(numbers), next(numbers), next(numbers)))
        elif values["_marker"] is not None:
            offsets = json.loads(values["_marker"])["offsets"]
            found += [(int(partition), offset, offset) for partition, offset in offsets.items()]
    return [place for place in found if not inside_of_another(place, found)]


def inside_of_another(place: tuple[int, int, int], others: list[tuple[int, int, int]]) -> bool:
    """A marker may stand in a gap of a merged segment."""
    partition, first, last = place
    return first == last and any(p == partition and low < first < high for p, low, high in others)


def naive_public(segments: TableState) -> dict[str, str | None]:
    """The definition of P, spelt out."""
    commits: dict[tuple[str | None, str | None], str] = {}
    for add in segments.files:
        if add.partition_values["_control"] == "COMMIT":
            marker = json.loads(add.partition_values["_marker"] or "")
            commits[add.partition_values["_producer_id"], str(marker["ends"])] = str(marker["position"])
    visible: dict[str, str | None] = {}
    for add in segments.files:
        values, tag = add.partition_values, json.loads(add.tag or "{}")
        owner = (values["_producer_id"], values["_producer_epoch"])
        if values["_control"] is None and ("decided" in tag or not tag.get("transactional") or owner in commits):
            plain = "0" if not tag.get("transactional") else commits.get(owner)
            visible[add.path] = str(tag["decided"][1]) if "decided" in tag else plain
    return visible


# -- the runs -------------------------------------------------------------------------------


def play(role: Callable[[Process], Actor], process: Process) -> None:
    role(process).run()


def simulate(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("compaction.vacuum.SMALLEST_AGE_MS", (-DAY_MS, 60_000)[seed % 2])
    ledger, outside = Ledger(), Outside()
    turns = Turns(ManySite.like(base()), seed, WEATHERS[seed % len(WEATHERS)])
    cast = CASTS[seed // len(WEATHERS) % len(CASTS)]
    actors: dict[str, Callable[[Process], Actor]] = {
        "teller": lambda process: Teller(process, ledger),
        "merchant": lambda process: Merchant(process, ledger, outside),
        "clerk": lambda process: Clerk(process, ledger),
        "compactor": lambda process: Compactor(process, ledger),
        "vacuum": lambda process: Sweeper(process, ledger),
    }
    for number, role in enumerate(cast):
        turns.start(f"{role} {number}", partial(play, actors[role]))
    try:
        turns.run()
        return check_end(turns.site, ledger, outside)
    except BaseException as error:
        error.add_note(f"TXNTABLE_SEED={seed}")
        raise


def seeds() -> list[int]:
    if "TXNTABLE_SEED" in os.environ:
        return [int(os.environ["TXNTABLE_SEED"])]
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-11").partition("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize("part", range(2))
def test_nothing_is_lost_or_doubled_while_everything_is_compacted(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = seeds()[part::2]

    compactions = sum(simulate(seed, monkeypatch) for seed in mine)

    assert compactions >= 2 * len(mine)
