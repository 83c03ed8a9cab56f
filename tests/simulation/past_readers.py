"""Small worlds of readers: beside open transactions, beside a decision that is not complete, and of the past.

*followers*: transactions that overlap in one partition, and a consumer that polls beside them.
*strangers*: readers that may not write, while a decision is shown in one topic and not yet in the other.
*pinned*: one position, and a merge between the reads of two topics.
*bygone*: a snapshot that is read again after merges, vacuum and cleanup: the same, or refused.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from tests.doubles.fault_plan import Operation, Step
from tests.simulation.onlookers import DAY_MS, MINUTE_MS, TOPICS, Onlooker, Told
from tests.simulation.site import published
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import Process, Weather
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import OffsetOutOfRangeError
from txntable.format.layout import public_root
from txntable.format.records import TopicPartition
from txntable.log.cleanup import clean_up
from txntable.partition.offsets import MERGED_THROUGH
from txntable.producer.producer import Producer
from txntable.snapshot.snapshot import Snapshot
from txntable.warehouse.warehouse import Warehouse

_PLACE = TopicPartition(TOPICS[0], 0)


class Overlapper(Onlooker):
    """Leaves transactions open in one partition while others are."""

    kinds: tuple[str, ...] = ("overlap",)
    most = 9
    topics: tuple[str, ...] = TOPICS[:1]
    rests: tuple[int, ...] = (1, 10, 40)

    def __init__(self, process: Process, told: Told) -> None:
        super().__init__(process, told)
        self._sender: Producer | None = None

    def overlap(self) -> None:
        """One transaction of some appends, with pauses in between."""
        if self._sender is None:
            self._sender = self.warehouse.producer(self.process.name, transaction_timeout_ms=MINUTE_MS)
            self._sender.init_transactions()
        producer, self._sender = self._sender, None
        producer.begin_transaction()
        self.count, self.records = self.count + 1, 0
        value = f"{self.process.name}-{self.count}"
        for _ in range(self.random.randint(1, 2)):
            for topic in self.topics:
                producer.send(topic, value.encode(), partition=0)
                self.records += 1
            producer.flush()
            self.process.rest(self.random.choice(self.rests), 0)
        self.end(producer, value)
        self._sender = producer


class Follower(Onlooker):
    """Polls what is committed; then everything that was open has ended, and nothing was passed over."""

    kinds: tuple[str, ...] = ("follow",)

    def follow(self) -> None:
        """Read on from the start, some polls; nothing below the position is read by a later reader only."""
        got: list[bytes | None] = []
        with self.warehouse.consumer(auto_offset_reset="earliest", prefetch=False) as consumer:
            consumer.assign([_PLACE])
            for _ in range(self.random.randint(3, 8)):
                for records in consumer.poll(max_records=self.random.choice([500, 1])).values():
                    got += [record.value for record in records]
                self.process.rest(self.random.choice([1, 10, 40]), 0)
            position = consumer.position(_PLACE)
        self.process.rest(100, 2 * MINUTE_MS)
        self.warehouse.coordinator().run_once()
        rows = published(self.warehouse, _PLACE.topic)
        there = [row["value"] for row in rows if row["_partition"] == 0 and row["_offset"] < position]
        assert got == there, f"passed over, or undecided: {got} of {there}"


class Mover(Overlapper):
    """Writes to both topics, and dawdles before the second of them shows it."""

    topics: tuple[str, ...] = TOPICS
    rests: tuple[int, ...] = (1, 1, 10)

    def before(self, step: Step) -> None:
        """Rest before a topic is published, sometimes."""
        publishing = tuple(f"{public_root(topic)}/_delta_log/" for topic in TOPICS)
        publishes = step.operation is Operation.PUT_IF_ABSENT and step.path.startswith(publishing)
        if publishes and self.random.random() < 0.3:
            self.process.rest(self.random.choice([20, 60]), 0)


class Stranger(Onlooker):
    """Reads again and again, as one that may not write."""

    kinds: tuple[str, ...] = ("peek", "peek", "pause")
    most = 12


class Upkeeper(Onlooker):
    """Merges what is old enough: often, or when more is."""

    kinds: tuple[str, ...] = ("merge",)
    most = 15

    def __init__(self, process: Process, told: Told) -> None:
        super().__init__(process, told)
        self._pace_ms = self.random.choice([500, MINUTE_MS + 1_000])

    def merge(self) -> None:
        """Compact some time after the last time."""
        self.process.rest(self.random.choice([1, 10, 40]), self._pace_ms)
        compact(self.warehouse)


class Pinner(Onlooker):
    """Pins a position, and lets others go on before it reads there."""

    kinds: tuple[str, ...] = ("pin", "query", "pause")
    most = 9

    def pin(self) -> None:
        """A snapshot whose second topic is read later: what was committed before is there, and nothing in part."""
        before, began_ms = dict(self.told.committed), self._now_ms()
        snapshot = self.warehouse.snapshot()
        first = _values(snapshot, TOPICS[:1])
        self._wait()
        try:
            seen = first + _values(snapshot, TOPICS[1:])
        except OffsetOutOfRangeError:
            assert self._now_ms() - began_ms >= MINUTE_MS, "a snapshot of a moment ago is merged away"
            return
        self._judge(before, seen)

    def query(self) -> None:
        """The same in plain SQL: the published position, then the tables as they are (PROTOCOL.md §10)."""
        before, began_ms = dict(self.told.committed), self._now_ms()
        self.warehouse.complete()
        log = self.warehouse.transactions
        position = log.refresh()
        waiting = [row.position for row in log.log.fold.decided()]
        position = min([position, *(each - 1 for each in waiting)])
        self._wait()
        for topic in TOPICS:
            numbers = self.warehouse.topic_log(topic).public.refresh().numbers
            if any(n > position for name, n in numbers.items() if name.startswith(f"{MERGED_THROUGH}/")):
                assert self._now_ms() - began_ms >= MINUTE_MS, "merged beyond a position of a moment ago"
                return
        self._judge(before, _queried(self.warehouse, position))

    def _judge(self, before: Mapping[str, int], seen: Counter[str]) -> None:
        assert {value: seen[value] for value in before} == before, "committed, and not in a snapshot"
        self.told.peeks.append(seen)

    def _wait(self) -> None:
        self.process.rest(self.random.choice([40, 100, 200]), self.random.choice([0, 0, 0, MINUTE_MS]))

    def _now_ms(self) -> int:
        return self.site.time.instant().boot_ms


def _values(snapshot: Snapshot, topics: tuple[str, ...] = TOPICS) -> Counter[str]:
    return Counter(
        row["value"].decode() for topic in topics for row in snapshot.read_arrow(topic).read_all().to_pylist()
    )


def _queried(warehouse: Warehouse, position: int) -> Counter[str]:
    """The values of all records whose commit is at or below a position, as any Delta reader finds them."""
    values: Counter[str] = Counter()
    for topic in TOPICS:
        log = warehouse.topic_log(topic).public
        for add in log.table.files:
            if int(add.partition_values["_commit"] or "") <= position:
                found = warehouse.store.get(f"{log.root}/{add.path}")
                assert found is not None, f"dangling reference: {add.path}"
                rows = pq.read_table(io.BytesIO(found.data), columns=["value"]).to_pylist()
                values.update(row["value"].decode() for row in rows)
    return values


@dataclass(frozen=True, slots=True)
class _Noted:
    """What a snapshot has shown."""

    position: int
    values: Counter[str]


class Historian(Onlooker):
    """Notes what snapshots show, and reads them again when things have changed."""

    kinds: tuple[str, ...] = ("note", "recall")
    most = 15

    def __init__(self, process: Process, told: Told) -> None:
        super().__init__(process, told)
        self._noted: list[_Noted] = []

    def note(self) -> None:
        """Take a snapshot."""
        self.process.rest(self.random.choice([10, 60, 200]), 0)
        snapshot = self.warehouse.snapshot()
        self._noted.append(_Noted(snapshot.position, _values(snapshot)))

    def recall(self) -> None:
        """Read a snapshot of the past again: the same, or it is refused."""
        if not self._noted:
            return
        noted = self.random.choice(self._noted)
        self.process.rest(self.random.choice([1, 100, 300]), 0)
        try:
            again = _values(self.warehouse.snapshot(noted.position))
        except OffsetOutOfRangeError:
            return
        assert again == noted.values, f"another past at {noted.position}: {again} was {noted.values}"


class Janitor(Onlooker):
    """Merges, and then takes the past away: its files, or the entries of its versions."""

    kinds: tuple[str, ...] = ("tidy",)
    most = 6

    def tidy(self) -> None:
        """Compact what is old enough, and take away what that has replaced, or not."""
        self.process.rest(self.random.choice([40, 100]), MINUTE_MS + 1_000)
        compact(self.warehouse)
        self.random.choice([self.sweep, self.shorten, self.pause])()

    def sweep(self) -> None:
        """Vacuum when the files of the past are old enough."""
        self.site.advance_ms(2 * DAY_MS)
        vacuum(self.warehouse, execute=True)

    def shorten(self) -> None:
        """Write checkpoints of the public tables, and clean up below them when they are old enough."""
        logs = [self.warehouse.topic_log(topic).public for topic in TOPICS]
        for log in logs:
            log.refresh()
            log.write_checkpoint()
        self.site.advance_ms(2 * DAY_MS)
        for log in logs:
            clean_up(self.warehouse.context, log.root, DAY_MS)


_CONFIG = {"segment.bytes": "100000"}


def _mild() -> Weather:
    """Calls that fail, and processes that pause, seldom: what is to be seen needs all of them for long."""
    return Weather(fault=0.003, pause=0.001, land=0.1)


PAST_WORLDS: Mapping[str, SmallWorld] = {
    "followers": SmallWorld((Overlapper, Overlapper, Follower), _CONFIG, rough=_mild),
    "strangers": SmallWorld((Mover, Mover, Stranger), _CONFIG, rough=_mild),
    "pinned": SmallWorld((Mover, Upkeeper, Pinner), _CONFIG, rough=_mild),
    "bygone": SmallWorld((Mover, Janitor, Historian), _CONFIG, rough=_mild),
}
