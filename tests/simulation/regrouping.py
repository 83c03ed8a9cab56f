"""Small worlds of groups whose partitions change hands: one promise each, judged by it and by every row of the group.

*latecomers*: members that commit what they have read when they have perhaps lost it: no offset of the group goes back.
*handover*: members that commit by themselves, in fair weather: no record is given out twice.
*steady*: members that beat in time, on machines whose clocks are wrong: none is expelled.
*shelf*: members that are idle for longer than offsets are kept: those of what they subscribe to stay.
*successors*: members that leave in the middle of transactions: each record is copied once.
*overtaken*: offsets of a transaction that is decided and settled before they are put.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.fault_plan import Operation, Step
from tests.simulation.changing_members import (
    MINUTE_MS,
    PLACES,
    RECORDS,
    Idler,
    Latecomer,
    Member,
    Notes,
    Passer,
    Steady,
    Successor,
    Taker,
)
from tests.simulation.copying import IN, OUT
from tests.simulation.onlookers import Committer, Onlooker
from tests.simulation.raw_history import Entry, check_history
from tests.simulation.site import Site
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import ManySite, Process, Turns, Weather, World
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import create_on

SETTINGS = WarehouseSettings(offsets_retention_ms=20 * MINUTE_MS)


@dataclass(frozen=True)
class Regrouping:
    """One world: who the members are, and in which weather."""

    kinds: tuple[type[Member], ...]
    weather: Callable[[], Weather] = Weather

    def play(self, turns: Turns) -> None:
        """Start members, let them take turns, and look at every entry."""
        turns.site = ManySite.like(_base())
        turns.weather = self.weather()
        notes = Notes()
        for number, kind in enumerate(self.kinds):
            turns.start(f"{kind.__name__.lower()}{number}", _program(kind, notes))
        turns.run()
        self.kinds[0].finish(turns.site, notes)
        check_history(turns.site)
        groups = Groups()
        for entry in Entry.read(turns.site):
            groups.take(entry)


def _program(kind: type[Member], notes: Notes) -> Callable[[Process], None]:
    return lambda process: kind(process, notes).run()


class Groups:
    """What is true of every group's row (§8.2); offsets that are in use stay, and do not go back (§8.1, §8.4)."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[str, Any]] = {}
        self._subscribed: dict[str, set[str]] = defaultdict(set)

    def take(self, entry: Entry) -> None:
        """Look at one more entry."""
        if entry.root != OFFSET_LOG_ROOT:
            return
        for remove in entry.each("remove"):
            row = self._offsets.pop(remove["path"], None)
            if row is not None:
                assert row["topic"] not in self._subscribed[row["group"]], f"gone, and in use: {entry.version} {row}"
        for add in entry.each("add"):
            row = json.loads(add["partitionValues"]["_row"])
            if add["partitionValues"]["_kind"] == "group":
                self._take_group(entry, row)
            elif "committed" in row:
                before, self._offsets[add["path"]] = self._offsets.get(add["path"], row), row
                assert _offset(row) >= _offset(before), f"gone back: {entry.version} {row}"

    def _take_group(self, entry: Entry, row: dict[str, Any]) -> None:
        members = row.get("members", ())
        self._subscribed[row["group"]] = {topic for member in members for topic in member["topics"]}
        owned = Counter(
            place
            for member in members
            for topic, by_epoch in member.get("owned", {}).items()
            for ranges in by_epoch.values()
            for place in _places(topic, ranges)
        )
        targets = Counter(
            place
            for member in members
            for topic, ranges in member.get("target", {}).items()
            for place in _places(topic, ranges)
        )
        assert all(count == 1 for count in (owned | targets).values()), f"of two members: {entry.version} {row}"
        assert targets.keys() <= owned.keys(), f"free, and not given: {entry.version} {row}"


def _offset(row: dict[str, Any]) -> int:
    return int(row["committed"]["offset"])


def _places(topic: str, ranges: str) -> list[tuple[str, int]]:
    places = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        places += [(topic, number) for number in range(int(first), int(last or first) + 1)]
    return places


_BASES: list[Site] = []


def _base() -> Site:
    """A warehouse with records to read, made once: the probe races threads, whose order no seed gives."""
    if not _BASES:
        site = Site()
        warehouse = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS)
        for topic, partitions in ((IN, 2), (OUT, 1)):
            warehouse.admin().create_topic(topic, partitions=partitions)
        producer = warehouse.producer()
        for place in PLACES:
            for number in range(RECORDS):
                producer.send(IN, f"{place.partition}/{number}".encode(), partition=place.partition)
        producer.flush()
        _BASES.append(site)
    return _BASES[0]


class Overtaken(Committer):
    """Falls asleep before it puts offsets: what it was told of its transaction is old by then."""

    kinds = ("send", "send", "send", "pause")

    def before(self, step: Step) -> None:
        """Let a commit of offsets come late."""
        puts = step.operation is Operation.PUT_IF_ABSENT and step.path.startswith(OFFSET_LOG_ROOT)
        if puts and self.random.random() < 0.4:
            self.process.rest(self.random.choice([60, 200]), 0)


class Ender(Onlooker):
    """Aborts what others have open, and completes it."""

    kinds = ("fence", "fence", "fence", "pause")
    most = 12

    def fence(self) -> None:
        """Take an id from whoever has it."""
        self.warehouse.admin().fence_producers([self.random.choice(["x", "y"])])


def _wrong_clocks() -> Weather:
    """Machines whose clocks are set."""
    return Weather(clock=0.01)


REGROUPING: Mapping[str, World] = {
    "latecomers": Regrouping((Latecomer, Passer, Latecomer), lambda: Weather(tick_ms=200)),
    "handover": Regrouping((Taker, Taker, Taker)),
    "steady": Regrouping((Steady, Steady, Steady), _wrong_clocks),
    "shelf": Regrouping((Idler, Idler)),
    "successors": Regrouping((Successor, Successor)),
    "overtaken": SmallWorld((Overtaken, Ender), rough=Weather),
}
"""By name."""
