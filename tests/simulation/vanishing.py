"""A small world of a store that is not what it was: under processes that live on.

*vanishing*: a warehouse that is wiped, created again, restored from an older copy or away, under its writers.

Whoever is told "committed" finds it in the end, unless it was there when the store was taken away; what processes of
before leave behind harms nobody, and a reader that folds every entry sees what we see (PROTOCOL.md §4.2 rule 13, §4.6).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.fault_plan import Fault
from tests.simulation.onlookers import DAY_MS, MINUTE_MS, TOPICS, Onlooker, Told, Writer
from tests.simulation.site import Site, published
from tests.simulation.small_limits import small_limits
from tests.simulation.small_worlds import SETTINGS, small_base
from tests.simulation.turns import ManySite, Process, Turns, Weather, World
from txntable.admin.restoration import Restoration
from txntable.errors import (
    CommitStateUnknownError,
    DamagedDataError,
    TxnTableError,
    WarehouseReplacedError,
)
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, public_root, segments_root
from txntable.log.delta_log import DeltaLog
from txntable.producer.producer import Producer
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

_LOGS = (
    TRANSACTION_LOG_ROOT,
    OFFSET_LOG_ROOT,
    *(root(name) for name in TOPICS for root in (segments_root, public_root)),
)
_MORE = 20
Objects = Mapping[str, StoredObject]


@dataclass
class Lost(Told):
    """What was told, and what was taken away."""

    taken: list[Objects] = field(default_factory=list)
    away: Objects | None = None
    """What is away for a while."""
    is_unsound: bool = False
    """Away: whoever looks may find damage."""


class Living(Writer):
    """Writes, whatever becomes of the store; goes on for a while where it is told to stop, and is then started anew."""

    kinds: tuple[str, ...] = (*["write"] * 5, "plain", "pause", "pause", "complete", "mark", "sleep", "work")
    told: Lost
    most = 12

    def run(self) -> None:
        """Do a few things, and begin anew where it has to."""
        self.begin()
        for _ in range(self.random.randint(self.most // 2, self.most)):
            kind = self.random.choice(self.kinds)
            self.process.doing(kind)
            try:
                getattr(self, kind)()
            except DamagedDataError:
                if not self.told.is_unsound:
                    raise
                self.begin()
            except WarehouseReplacedError:
                if self.random.random() < 0.5:
                    self.begin()
            except TxnTableError:
                continue

    def mark(self) -> None:
        """Write checkpoints."""
        topic = self.warehouse.topic_log(self.random.choice(TOPICS))
        for log in (self.warehouse.transactions.log, topic.segments, topic.public):
            log.refresh()
            log.write_checkpoint()

    def begin(self) -> None:
        """Start anew, as soon as the warehouse is there."""
        while True:
            try:
                self.warehouse = self.process.opened(self.before)
                return
            except DamagedDataError:
                if not self.told.is_unsound:
                    raise
            except TxnTableError:
                pass
            self.process.rest(20, 0)

    def end(self, producer: Producer, value: str) -> None:
        """Commit: of what met another warehouse, or damage, it is not known whether it counts."""
        try:
            producer.commit_transaction()
        except (CommitStateUnknownError, DamagedDataError, WarehouseReplacedError):
            raise
        except TxnTableError:
            self.told.refused.add(value)
            raise
        self.told.committed[value] = self.records


class Operator(Onlooker):
    """Takes the store away, and brings back what is not the same."""

    told: Lost

    def run(self) -> None:
        """One mishap."""
        self.process.rest(self.random.choice([60, 150, 300]), 0)
        backup = self.site.objects.snapshot()
        self.process.rest(self.random.choice([20, 100, 300]), 0)
        kind = self.random.choice(["create_again", "restore", "restore", "restore", "away"])
        self.process.doing(kind)
        getattr(self, kind)(backup)

    def create_again(self, _: Objects) -> None:
        """Wipe everything; perhaps only later there is another warehouse."""
        self.take(keeps=False)
        self.process.rest(self.random.choice([0, 40, 100]), 0)
        self.site.objects.restore({**self.site.objects.snapshot(), **_another().objects.snapshot()})
        self.told.is_unsound = False

    def restore(self, backup: Objects) -> None:
        """Bring an older copy back, and fence everyone before anybody writes to it (PROTOCOL.md §6.7)."""
        self.take(keeps=False)
        # What was uploaded meanwhile stays: it means nothing.
        self.site.objects.restore({**_uploads(self.told.taken[-1]), **backup})
        _fence_all(self.site)
        self.told.is_unsound = False

    def away(self, _: Objects) -> None:
        """Let everything be gone for a while; then it is as it was, perhaps with what was written meanwhile."""
        before = self.take(keeps=True)
        self.process.rest(self.random.choice([20, 60, 150]), 0)
        meanwhile = self.site.objects.snapshot()
        self.site.objects.restore({**(meanwhile if self.random.random() < 0.5 else _uploads(meanwhile)), **before})
        self.told.is_unsound, self.told.away = False, None

    def take(self, *, keeps: bool) -> Objects:
        """Take everything away."""
        before = self.site.objects.snapshot()
        self.told.is_unsound = True
        if keeps:
            self.told.away = before
        else:
            self.told.taken.append(before)
        self.site.objects.restore({})
        return before


def _uploads(objects: Objects) -> Objects:
    return {path: found for path, found in objects.items() if "/_segments/p" in path}


class Vanishing:
    """Writers, and one mishap; then a new process goes on, and everything is looked at."""

    def play(self, turns: Turns) -> None:
        turns.site = ManySite.like(small_base({}))
        faults = (Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.FAIL_BEFORE, Fault.CONFLICT_409)
        turns.weather = Weather() if turns.weather.is_fair else Weather(fault=0.01, faults=faults, kill=0.0003)
        turns.is_replaced, told = True, Lost()
        with small_limits(turns.random.choice((-DAY_MS, 0, DAY_MS))):
            for number in range(3):
                turns.start(f"living{number}", _program(Living, told))
            turns.start("operator", _program(Operator, told))
            turns.run()
            # The operator may have been killed before the end.
            _mend(turns.site, told)
            _check(turns.site, told)


def _program(kind: type[Living] | type[Operator], told: Lost):
    def run(process: Process) -> None:
        kind(process, told).run()

    return run


def _mend(site: ManySite, told: Lost) -> None:
    if told.away is not None:
        site.objects.restore({**site.objects.snapshot(), **told.away})
    if not site.objects.snapshot().keys() & {"_warehouse.json"}:
        site.objects.restore({**site.objects.snapshot(), **_another().objects.snapshot()})
    _fence_all(site)


def _fence_all(site: ManySite) -> None:
    warehouse = open_on(site.store(), site.environment(), recovering=True)
    Restoration(warehouse.completer, warehouse.admin()).fence_all()


def _check(site: ManySite, told: Lost) -> None:
    site.advance_ms(MINUTE_MS + 1_000)
    producer = site.open().producer("more", transaction_timeout_ms=MINUTE_MS)
    producer.init_transactions()
    for number in range(_MORE):
        producer.begin_transaction()
        producer.send(TOPICS[number % 2], f"more{number}".encode())
        producer.commit_transaction()
    warehouse = site.open()
    assert warehouse.coordinator().run_once().failures == 0
    seen = _values(warehouse)
    assert all(seen[f"more{number}"] == 1 for number in range(_MORE)), "the warehouse does not go on"
    taken = [_values(_as_it_was(site, objects)) for objects in told.taken]
    for value, records in told.committed.items():
        there = seen[value] == records or any(before[value] == records for before in taken)
        assert there, f"told committed, and not there: {value}"
    assert not seen.keys() & told.refused, "refused, and visible"
    for root in _LOGS:
        _check_whoever_folds_all(site, warehouse, root)


def _as_it_was(site: ManySite, objects: Objects) -> Warehouse:
    """The warehouse when it was taken away, completed: what was decided then was committed."""
    then = Site(started=site.started + 1_000)
    then.time.advance_ms(site.time.instant().boot_ms)
    then.objects.restore(objects)
    warehouse = then.open()
    warehouse.complete()
    return warehouse


def _values(warehouse: Warehouse) -> Counter[str]:
    warehouse.complete()
    return Counter(row["value"].decode() for topic in TOPICS for row in published(warehouse, topic))


def _check_whoever_folds_all(site: ManySite, warehouse: Warehouse, root: str) -> None:
    """A Delta reader that knows nothing of void entries has the live files that we have, from the first entry on."""
    live: dict[str, object] = {}
    objects = site.objects.snapshot()
    version = 0
    while (found := objects.get(f"{root}/_delta_log/{version:020d}.json")) is not None:
        for line in found.data.decode().splitlines():
            action = json.loads(line)
            if "add" in action:
                live[action["add"]["path"]] = action["add"]["partitionValues"]
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
        version += 1
    if version == 0 or f"{root}/_delta_log/{0:020d}.json" not in objects:
        return
    logs: list[DeltaLog[Any]] = [warehouse.transactions.log, warehouse.offsets.log]
    for topic in map(warehouse.topic_log, TOPICS):
        logs += [topic.segments, topic.public]
    (log,) = (log for log in logs if log.root == root)
    table = log.refresh()
    if not table.void:
        assert {add.path: add.partition_values for add in table.files} == live, f"another reader differs: {root}"


_ANOTHER: list[Site] = []


def _another() -> Site:
    """Another warehouse with the same topics, as one that is created again is."""
    if not _ANOTHER:
        site = Site(started=500)
        with small_limits(DAY_MS):
            admin = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS).admin()
            for topic in TOPICS:
                admin.create_topic(topic, partitions=2)
        _ANOTHER.append(site)
    return _ANOTHER[0]


VANISHING: Mapping[str, World] = {"vanishing": Vanishing()}
