"""Small worlds for rules that the large ones seldom come near, each judged by every entry that was ever written.

*onlookers*: topics that grow, and of which records go, while others write by key, compact and vacuum.
*answers*: stores that do late what they have refused.
*sleepers*: processes that sleep for days in the middle of a call, while logs are cleaned up below them.
*offsets*: the same offset committed by many, in transactions and without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.doubles.fault_plan import Fault
from tests.simulation.onlookers import (
    DAY_MS,
    MINUTE_MS,
    TOPICS,
    Busy,
    Committer,
    Keeper,
    Onlooker,
    Sleeper,
    Told,
    Writer,
)
from tests.simulation.raw_history import check_history
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.site import Site, published
from tests.simulation.small_limits import small_limits
from tests.simulation.turns import ManySite, Process, Turns, Weather
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import create_on

CONFIG = {"segment.bytes": "3000", "retention.ms": str(20 * MINUTE_MS)}
SETTINGS = WarehouseSettings(
    vacuum_retention_ms=DAY_MS,
    transactional_id_expiration_ms=30 * MINUTE_MS,
    producer_id_expiration_ms=15 * MINUTE_MS,
    snapshot_retention_ms=MINUTE_MS,
)


@dataclass(frozen=True)
class SmallWorld:
    """One world: who takes part, and in which weather when it is not fair."""

    kinds: tuple[type[Onlooker], ...]
    config: Mapping[str, str] = field(default_factory=dict)
    rough: Callable[[], Weather] | None = None

    def play(self, turns: Turns) -> None:
        """Start processes, let them take turns, end everything and look at every entry."""
        turns.site = ManySite.like(small_base(self.config))
        if self.rough is not None and not turns.weather.is_fair:
            turns.weather = self.rough()
        told = Told()
        with small_limits(turns.random.choice((-DAY_MS, 0, DAY_MS))):
            for number, kind in enumerate(self.kinds):
                turns.start(f"{kind.__name__.lower()}{number}", _program(kind, told))
            turns.run()
            _check_end(turns.site, told, whole="retention.ms" not in self.config)


def _program(kind: type[Onlooker], told: Told) -> Callable[[Process], None]:
    return lambda process: kind(process, told).run()


def _check_end(site: ManySite, told: Told, *, whole: bool) -> None:
    """Everything ends; what was refused is not there, and what was committed is; then every entry is looked at."""
    site.advance_ms(MINUTE_MS + 1_000)
    assert site.open().coordinator().run_once().failures == 0
    warehouse = site.open()
    warehouse.complete()
    seen = Counter(row["value"].decode() for topic in TOPICS for row in published(warehouse, topic))
    warehouse.offsets.refresh()
    assert not warehouse.offsets.log.fold.pending, "pending, and nobody will settle it"
    for topic in TOPICS:
        log = warehouse.topic_log(topic)
        assert not log.segments.fold.open, "open, and nobody will end it"
        numbers = log.public.table.numbers
        for name, offset in numbers.items():
            if name.startswith("lso/"):
                assert offset == numbers[name.replace("lso/", "high_watermark/")], "held back, and nothing is open"
    for peek in told.peeks:
        assert all(peek[value] in (0, seen[value]) for value in peek), "a snapshot with a part of a transaction"
    assert not seen.keys() & told.refused, "refused, and visible"
    for value, records in told.committed.items() if whole else ():
        assert seen[value] == records, "committed, and lost in part or doubled"
    check_history(site)
    check_files(site)


_BASES: dict[str, Site] = {}


def small_base(config: Mapping[str, str]) -> Site:
    """A warehouse with its topics, made once: the probe races threads, whose order no seed gives."""
    name = repr(config)
    if name not in _BASES:
        site = Site()
        with small_limits(DAY_MS):
            admin = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS).admin()
            for topic in TOPICS:
                admin.create_topic(topic, partitions=2, config=config)
        _BASES[name] = site
    return _BASES[name]


def _sleepy() -> Weather:
    """Calls that take days, or come too late."""
    faults = (Fault.SLOW, Fault.LOST_ANSWER, Fault.LATE_LANDING)
    return Weather(fault=0.02, faults=faults, jump=0.001, land=0.01, kill=0.0005)


SMALL_WORLDS: Mapping[str, SmallWorld] = {
    "onlookers": SmallWorld((Writer, Writer, Keeper), CONFIG),
    "sleepers": SmallWorld((Busy, Sleeper, Busy), rough=_sleepy),
    "answers": SmallWorld((Onlooker, Onlooker, Onlooker), rough=lambda: Weather(late=0.8, land=0.05)),
    "offsets": SmallWorld((Committer, Committer, Committer)),
}
