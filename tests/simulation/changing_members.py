"""Members of one group, for worlds in which its partitions change hands; each kind goes by one promise.

What a member was promised it checks itself, or its kind does in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.copying import IN, OUT, STRATEGIES, member_of
from tests.simulation.site import published
from tests.simulation.turns import ManySite, Process
from txntable.consumer.consumer import Consumer
from txntable.errors import DamagedDataError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer

MINUTE_MS = 60_000
GROUP = "group"
PLACES = (TopicPartition(IN, 0), TopicPartition(IN, 1))
RECORDS = 10
"""In each of the places."""


@dataclass
class Notes:
    """What members were given, by partition and offset."""

    given: Counter[tuple[int, int]] = field(default_factory=Counter)


class Member:
    """A member of the group that does a few things, and gives its records back after an error."""

    kinds: tuple[str, ...] = ()
    least, most = 6, 14
    settings: Mapping[str, Any] = {}

    def __init__(self, process: Process, notes: Notes) -> None:
        self.process, self.random, self.notes = process, process.random, notes
        self.site = process.turns.site
        self.known: Consumer | None = None

    def run(self) -> None:
        """Open the warehouse, come some time after the others, and do a few things."""
        self.warehouse = self.process.opened()
        self.process.pause()
        for _ in range(self.random.randint(self.least, self.most)):
            kind = self.random.choice(self.kinds)
            self.process.doing(kind)
            self.attempt(getattr(self, kind))
        self.attempt(self.leave)

    def attempt(self, call: Callable[[], object]) -> None:
        """Make a call; what fails is read again."""
        try:
            call()
        except DamagedDataError:
            raise
        except TxnTableError:
            self.recover()

    def recover(self) -> None:
        """Begin again as another member."""
        self.known = None

    @property
    def consumer(self) -> Consumer:
        """The consumer that it reads by."""
        if self.known is None:
            made = {
                "max_poll_records": self.random.choice([1, 1, 2]),
                "enable_auto_commit": False,
                "heartbeat_interval_ms": 100,
                "partition_assignment_strategy": self.random.choice(STRATEGIES),
            }
            self.known = member_of(self.warehouse, GROUP, **{**made, **self.settings})
            self.known.subscribe([IN])
        return self.known

    def pause(self) -> None:
        """Let the others go on."""
        self.process.pause()

    def leave(self) -> None:
        """Leave the group; the next poll is another member's."""
        if self.known is not None:
            consumer, self.known = self.known, None
            consumer.close()

    @classmethod
    def finish(cls, site: ManySite, notes: Notes) -> None:
        """Check what all were promised."""


class Latecomer(Member):
    """Polls on while it works on what it was given first; when it commits that, it has perhaps lost it."""

    kinds = ("work", "work", "work", "leave")
    least, most = 2, 4
    settings: Mapping[str, Any] = {"max_poll_records": 1}

    def work(self) -> None:
        """Commit the first of each partition, and give back what came since."""
        done: dict[TopicPartition, int] = {}
        for _ in range(self.random.randint(2, 8)):
            for partition, records in self.consumer.poll().items():
                done.setdefault(partition, records[-1].offset + 1)
            self.process.rest(self.random.choice([1, 10, 20]), 0)
        for partition, offset in done.items():
            self.consumer.commit({partition: offset})
        self.consumer.seek_to_committed()

    def recover(self) -> None:
        """Read again what was refused."""
        try:
            self.consumer.seek_to_committed()
        except TxnTableError:
            self.known = None


class Passer(Member):
    """Joins, reads some, commits it and leaves."""

    kinds = ("pass_by",)
    least, most = 2, 5

    def pass_by(self) -> None:
        """Stay until there was something to read."""
        for _ in range(6):
            self.process.rest(self.random.choice([1, 10]), 0)
            if self.consumer.poll():
                break
        self.consumer.poll()
        self.consumer.commit()
        self.leave()


class Taker(Member):
    """Commits by itself, when it gives up or leaves."""

    kinds = ("poll", "poll", "poll", "poll", "poll", "leave", "pause")
    settings: Mapping[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": 60 * MINUTE_MS}

    def poll(self) -> None:
        """Take note of what is given."""
        for partition, records in self.consumer.poll().items():
            self.notes.given.update((partition.partition, each.offset) for each in records)

    def recover(self) -> None:
        """In fair weather every call can be made again."""

    @classmethod
    def finish(cls, site: ManySite, notes: Notes) -> None:
        """Who comes last is given the rest, and everything was given once."""
        with member_of(site.open(), GROUP) as last:
            last.subscribe([IN])
            while found := last.poll():
                for partition, records in found.items():
                    notes.given.update((partition.partition, each.offset) for each in records)
        expected = {(place.partition, offset): 1 for place in PLACES for offset in range(RECORDS)}
        assert dict(notes.given) == expected, f"not once: {sorted((notes.given - Counter(expected)).items())}"


class Steady(Member):
    """Polls every few seconds: its session never ends."""

    kinds = ("poll",)
    least = most = 18
    settings: Mapping[str, Any] = {"heartbeat_interval_ms": 15_000, "session_timeout_ms": 45_000}

    def __init__(self, process: Process, notes: Notes) -> None:
        super().__init__(process, notes)
        self.is_late = False

    def poll(self) -> None:
        """Poll in time; who was always in time is the member that it was."""
        began_ms = self._now_ms()
        before = self.consumer.group_metadata().member_id
        self.process.rest(self.random.choice([3, 20]), 4_000)
        self.consumer.poll()
        self.is_late |= self._now_ms() - began_ms > 20_000
        after = self.consumer.group_metadata().member_id
        assert not before or before == after or self.is_late, "expelled, and it had always beaten in time"

    def _now_ms(self) -> int:
        return int(self.site.time.instant().boot_ms)


class Idler(Member):
    """Commits, and then does nothing for longer than offsets are kept, but not than its session."""

    kinds = ("poll", "commit", "idle", "job", "pause")
    settings: Mapping[str, Any] = {"heartbeat_interval_ms": 15_000, "session_timeout_ms": 30 * MINUTE_MS}

    def __init__(self, process: Process, notes: Notes) -> None:
        super().__init__(process, notes)
        self.committed: dict[TopicPartition, int] = {}

    def poll(self) -> None:
        """Read on."""
        before = self._member()
        self.consumer.poll()
        if self._member() != before:
            self.committed.clear()

    def commit(self) -> None:
        """Commit what was read; it stays for as long as this is a member."""
        self.consumer.commit()
        if self._member():
            self.committed = {each: self.consumer.position(each) for each in self.consumer.assignment()}

    def idle(self) -> None:
        """Beat, wait, and find what was committed."""
        self.consumer.poll()
        self.process.rest(20, 21 * MINUTE_MS)
        before, wanted = self._member(), dict(self.committed)
        found = self.consumer.committed(list(PLACES))
        self.poll()
        if before and before == self._member():
            lost = [each for each, offset in wanted.items() if offset and found[each] is None]
            assert not lost, f"expired, and in use: {lost}"

    def job(self) -> None:
        """A round of the coordinator job."""
        self.warehouse.coordinator().run_once()

    def recover(self) -> None:
        """Begin again as another member."""
        super().recover()
        self.committed.clear()

    def _member(self) -> str:
        return self.consumer.group_metadata().member_id


class Successor(Member):
    """Copies in transactions; where it begins it asks, and it may leave before it commits."""

    kinds = ("copy", "copy", "copy", "pause")
    least, most = 3, 6

    def __init__(self, process: Process, notes: Notes) -> None:
        super().__init__(process, notes)
        self.producer: Producer | None = None

    def copy(self) -> None:
        """One transaction."""
        if self.producer is None:
            producer = self.warehouse.producer(self.process.name, transaction_timeout_ms=MINUTE_MS)
            producer.init_transactions()
            self.producer = producer
        self.producer.begin_transaction()
        self.consumer.poll(max_records=1)
        self.consumer.seek_to_committed()
        for each in self.consumer.assignment():
            self.consumer.position(each)
        polled = [self.consumer.poll() for _ in PLACES]
        for records in (each for found in polled for each in found.values()):
            for record in records:
                self.producer.send(OUT, record.row["value"])
        self.producer.send_offsets_of(self.consumer)
        if self.random.random() < 0.5:
            self.leave()
            self.process.pause()
        self.producer.commit_transaction()

    def recover(self) -> None:
        """Whether it is committed the next producer finds out."""
        self.producer = None
        super().recover()

    @classmethod
    def finish(cls, site: ManySite, notes: Notes) -> None:
        """What is copied is copied once."""
        site.advance_ms(2 * MINUTE_MS)
        site.open().coordinator().run_once()
        copies = Counter(row["value"] for row in published(site.open(), OUT))
        assert all(count == 1 for count in copies.values()), f"copied twice: {copies}"
