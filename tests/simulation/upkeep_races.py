"""Two or three processes of which each falls asleep where the rules of upkeep are decided (PROTOCOL.md §5.7 to §5.9).

*uploads*: writers between their uploads and their appends, beside a vacuum that takes what is young.
*markers*: who completes transactions between a marker's file and its row, beside such a vacuum.
*merges*: compactions between what they have rewritten and its commit, beside each other and deletions of records.
*undecided*: compactions beside transactions that stay open for long.
*latest*: compactions by key beside an open transaction below what is dirty.
*tombstones*: how long they stay, however often a partition is compacted.
*starts*: deletions of records, which take one segment at a time, beside each other and an open transaction.
*retention*: what is too old when it is appended, beside those who have not published it.

The weather is fair: only sleep goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from tests.doubles.fault_plan import Operation, Step
from tests.simulation.errands import Errands
from tests.simulation.raw_history import check_history
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.site import Site, published
from tests.simulation.turns import ManySite, Process, Turns, Weather
from tests.simulation.upkeep_rules import check_upkeep, latest_of_keys
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import create_on

DAY_MS = 86_400_000
MINUTE_MS = 60_000
ELIGIBLE_MS = 70_000
PAST_MS = 30 * MINUTE_MS
TOMBSTONES_MS = 4 * MINUTE_MS
TOPIC = "t"
SETTINGS = WarehouseSettings(vacuum_retention_ms=DAY_MS, snapshot_retention_ms=MINUTE_MS)
_LOG = f"topics/{TOPIC}/_segments/_delta_log/"
_PUBLIC = f"topics/{TOPIC}/_delta_log/"
_FILES = f"topics/{TOPIC}/_segments/"


@dataclass
class Told:
    """What processes were told, by the value of their records."""

    refused: set[str] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)
    """How many records each has that was appended or committed."""


class Racer(Errands):
    """A process that falls asleep before some of its calls."""

    told: Told
    fewest_of = 2
    dozes: Mapping[Operation, tuple[str, ...]] = {Operation.PUT_IF_ABSENT: (_LOG,)}
    """Before which calls, by the beginnings of their paths."""
    dated_ms = 0
    """How old the records are that it writes."""

    def before(self, step: Step) -> None:
        """Take long, sometimes."""
        if step.path.startswith(self.dozes.get(step.operation, ())) and self.random.random() < 0.4:
            self.process.rest(self.random.choice([5, 20, 60]), 0)

    def pause(self) -> None:
        """Let others go on."""
        self.process.rest(self.random.choice([5, 20, 60]), 0)

    def grow_old(self) -> None:
        """What is decided by now may be rewritten from now on."""
        self.site.advance_ms(ELIGIBLE_MS)

    def complete(self) -> None:
        """Complete what is decided."""
        self.warehouse.complete()

    def plain(self) -> None:
        """Append without a transaction."""
        producer = self.warehouse.producer(enable_idempotence=self.random.random() < 0.5)
        value = self.fill(producer)
        self.told.done[value] = self.count_of(value)

    def fill(self, producer: Producer) -> str:
        """Send some records in one append."""
        self.count += 1
        records = self.random.choice([1, 2, 4])
        value = f"{self.process.name}-{self.count}-{records}"
        for _ in range(records):
            key, sent_ms = self.random.choice([b"a", b"b"]), self.site.objects.clock() - self.dated_ms
            producer.send(TOPIC, value.encode(), key=key, timestamp_ms=sent_ms)
        producer.flush()
        return value

    @staticmethod
    def count_of(value: str) -> int:
        """How many records have that value."""
        return int(value.rpartition("-")[2])

    def transact(self) -> None:
        """A transaction of an append or two, which is ended or left open."""
        producer = self.warehouse.producer(f"of {self.process.name}", transaction_timeout_ms=14 * MINUTE_MS)
        producer.init_transactions()
        producer.begin_transaction()
        values = {self.fill(producer) for _ in range(self.random.choice([1, 2]))}
        self.wait()
        self.told.refused |= values
        wish = self.random.random()
        if wish < 0.6:
            producer.commit_transaction()
            self.told.refused -= values
            self.told.done |= {value: self.count_of(value) for value in values}
        elif wish < 0.8:
            producer.abort_transaction()

    def wait(self) -> None:
        """What a transaction does between its appends and its end."""
        if self.random.random() < 0.5:
            self.pause()


class Appender(Racer):
    """Appends, and sleeps between upload and append."""

    kinds = ("plain",)


class Teller(Racer):
    """Has transactions."""

    kinds = ("transact",)


class Finisher(Racer):
    """Completes what others have decided."""

    kinds = ("complete", "complete", "pause")
    most = 10


class Sweeper(Racer):
    """Vacuums."""

    kinds = ("vacuum",)
    most = 8
    dozes: Mapping[Operation, tuple[str, ...]] = {
        Operation.LIST: (f"topics/{TOPIC}",),
        Operation.PUT_IF_ABSENT: (_LOG,),
        Operation.DELETE: (_FILES,),
    }

    def vacuum(self) -> None:
        """One run: no file that is needed goes."""
        vacuum(self.warehouse, execute=True)
        check_files(self.site)


class Writer(Racer):
    """Writes in every way, and lets time pass."""

    kinds = ("plain", "plain", "transact", "grow_old")
    most = 9


class Merger(Racer):
    """Compacts, and sleeps before what it has made is registered."""

    kinds: tuple[str, ...] = ("merge", "merge", "merge", "delete", "pause")

    def merge(self) -> None:
        """What is there may be rewritten."""
        self.grow_old()
        compact(self.warehouse)

    def delete(self) -> None:
        """Delete records before some offset: often in the middle of a segment."""
        partition = TopicPartition(TOPIC, 0)
        admin = self.warehouse.admin()
        end = admin.delete_records({partition: None}, validate_only=True)[partition]
        admin.delete_records({partition: self.random.randint(0, end)})


class Loader(Racer):
    """Writes what is too old already, and sleeps before it publishes."""

    kinds = ("plain",)
    most = 12
    dozes: Mapping[Operation, tuple[str, ...]] = {Operation.PUT_IF_ABSENT: (_PUBLIC,)}
    dated_ms = 60 * MINUTE_MS


class Retainer(Racer):
    """Lets old records go, and sleeps before its commits: another has the slot then, and it decides again."""

    kinds = ("retain",)
    most = 12

    def retain(self) -> None:
        """One run."""
        compact(self.warehouse)


class Eraser(Merger):
    """Deletes records, mostly."""

    kinds = ("delete", "delete", "retain")
    retain = Retainer.retain


class Opener(Racer):
    """Has transactions that are open while others write and compact."""

    kinds = ("transact",)
    most = 3

    def wait(self) -> None:
        self.process.rest(self.random.choice([60, 200, 400]), 0)


class Cleaner(Racer):
    """Writes key by key, deletes keys and compacts them."""

    kinds = ("plain", "bury", "clean", "clean")
    most = 12

    def bury(self) -> None:
        """Delete a key."""
        producer = self.warehouse.producer()
        producer.send(TOPIC, None, key=self.random.choice([b"a", b"b"]))
        producer.flush()

    def clean(self) -> None:
        """Compact, and look at what each key has."""
        self.grow_old()
        compact(self.warehouse)
        check_keys(self.site)


def check_keys(site: ManySite) -> None:
    """The last record of each key is there; that of a deleted key for as long as tombstones stay."""
    warehouse = site.open()
    warehouse.topic_log(TOPIC).catch_up()
    rows = {row["key"]: row for row in published(warehouse, TOPIC)}  # in offset order: the last one
    now_ms = site.objects.clock()
    for key, last in latest_of_keys(site, TOPIC).items():
        may_lack = last.value is None and now_ms - last.appended_ms >= TOMBSTONES_MS
        if key in rows:
            assert rows[key]["_offset"] == last.offset, "a key has what was overwritten or deleted"
        else:
            assert may_lack, "the last record of a key is gone"


@dataclass(frozen=True)
class Race:
    """One world: who takes part, how the topic is set, whether its records stay, and what is true in the end."""

    kinds: tuple[type[Racer], ...]
    config: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    finish: Callable[[ManySite], None] = lambda site: None
    vacuum_age_ms: int = 0
    """How old what no log names is when it goes; negative: a segment may be of this moment, a marker may not, since
    the transaction log is read once, at the vacuum's beginning."""
    most_removed: int = 10_000
    """How many segments a commit takes away."""

    def play(self, turns: Turns) -> None:
        """Start processes, let them take turns, end everything and look at every entry."""
        turns.site = ManySite.like(_base(self.config))
        turns.weather = Weather()
        told = Told()
        with _limits(self):
            for number, kind in enumerate(self.kinds):
                turns.start(f"{kind.__name__.lower()}{number}", _program(kind, told))
            turns.run()
            self._check_end(turns.site, told)

    def _check_end(self, site: ManySite, told: Told) -> None:
        site.advance_ms(15 * MINUTE_MS)
        assert site.open().coordinator().run_once().failures == 0
        warehouse = site.open()
        warehouse.complete()
        check_history(site)
        check_upkeep(site)
        check_files(site)
        seen = [row["value"].decode() for row in published(warehouse, TOPIC) if row["value"] is not None]
        assert not told.refused & set(seen), "refused, and visible"
        for value, records in told.done.items() if self.whole else ():
            assert seen.count(value) == records, "told to be there, and lost in part or doubled"
        self.finish(site)


def _program(kind: type[Racer], told: Told) -> Callable[[Process], None]:
    return lambda process: kind(process, told).run()


_BASES: dict[str, Site] = {}


def _base(config: Mapping[str, str]) -> Site:
    """A warehouse with a topic of old segments, made once: the probe races threads, whose order no seed gives."""
    name = repr(config)
    if name not in _BASES:
        site = Site()
        warehouse = create_on(site.store(), site.environment(), exist_ok=True, settings=SETTINGS)
        warehouse.admin().create_topic(TOPIC, config=config)
        for _ in range(3):
            producer = warehouse.producer()
            for _ in range(3):
                producer.send(TOPIC, b"past", key=b"past")
            producer.flush()
        site.advance_ms(PAST_MS)
        _BASES[name] = site
    return _BASES[name]


@contextmanager
def _limits(race: Race) -> Iterator[None]:
    with (
        patch("txntable.compaction.vacuum.SMALLEST_AGE_MS", race.vacuum_age_ms),
        patch("txntable.partition.log_start.LARGEST_COMMIT_SEGMENTS", race.most_removed),
    ):
        yield


_BY_KEY = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": str(TOMBSTONES_MS),
}

_RETAINED = {"retention.ms": str(20 * MINUTE_MS)}

UPKEEP_RACES: Mapping[str, Race] = {
    "uploads": Race((Appender, Appender, Sweeper), vacuum_age_ms=-DAY_MS),
    "markers": Race((Teller, Finisher, Sweeper)),
    "merges": Race((Appender, Merger, Merger), whole=False),
    "undecided": Race((Writer, Merger), whole=False),
    "latest": Race((Opener, Cleaner), _BY_KEY, whole=False, finish=check_keys),
    "tombstones": Race((Cleaner,), _BY_KEY, whole=False, finish=check_keys),
    "starts": Race((Opener, Eraser, Eraser), whole=False, most_removed=1),
    "retention": Race((Loader, Loader, Retainer), _RETAINED, whole=False),
}
