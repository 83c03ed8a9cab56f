"""Processes that go where the large worlds seldom do: they believe every answer, sleep anywhere, ask for the forbidden.

What they were told is kept; whether it was true is for ``small_worlds`` to find out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.errands import Errands
from tests.simulation.raw_history import Entry
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.turns import JUMPS_MS
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import (
    CommitStateUnknownError,
    OffsetOutOfRangeError,
    RetriableError,
    TransactionCoordinatorFencedError,
    TransactionOutcomeUnknownError,
    TxnTableError,
)
from txntable.format.records import TopicPartition
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog
from txntable.partition.batch import ProducerEpoch
from txntable.producer.producer import Producer
from txntable.snapshot.snapshot import Snapshot
from txntable.warehouse.warehouse import open_on

DAY_MS = 86_400_000
MINUTE_MS = 60_000
TOPICS = ("left", "right")
GROUP = "group"
_UPLOAD = re.compile(r"topics/[^/]+/_segments/(p\d+/[0-9a-f]{32}-(\d+)-(\d+)-[0-9a-f]{32}\.parquet)")


@dataclass
class Told:
    """What processes were told of their transactions, each by the value of its records."""

    refused: set[str] = field(default_factory=set)
    committed: dict[str, int] = field(default_factory=dict)
    """How many records each has."""
    peeks: list[Counter[str]] = field(default_factory=list)
    """What those have seen who may only read: how many records of each."""
    copied: dict[str, ProducerEpoch] = field(default_factory=dict)
    """Identities that several have at once."""


class Onlooker(Errands):
    """Who writes by key and looks."""

    kinds: tuple[str, ...] = ("write", "write", "write", "peek", "pause", "complete")
    told: Told
    records = 0

    def write(self) -> None:
        """Write to both topics in one transaction, by key; one that was refused is left to its timeout."""
        producer = self.warehouse.producer(self.random.choice(["x", "y"]), transaction_timeout_ms=MINUTE_MS)
        producer.init_transactions()
        for _ in range(self.random.randint(1, 2)):
            producer.begin_transaction()
            value = self.fill(producer)
            self.end(producer, value)

    def fill(self, producer: Producer) -> str:
        """Send some records, in several appends."""
        self.count += 1
        self.records = 0
        value = f"{self.process.name}-{self.count}"
        topics = self.random.choice([TOPICS, TOPICS, TOPICS[:1]])
        for _ in range(self.random.randint(1, 2)):
            for topic in topics:
                producer.send(topic, value.encode(), key=self.random.choice([b"a", b"b", b"c"]))
                self.records += 1
            if self.random.random() < 0.4:
                producer.flush()
        return value

    def end(self, producer: Producer, value: str) -> None:
        """Commit, once: an error that says no is a no."""
        if self.random.random() < 0.2:
            producer.abort_transaction()
            self.told.refused.add(value)
            return
        try:
            producer.commit_transaction()
        except CommitStateUnknownError:
            # Others have ended it meanwhile, or not: the answer is what became of it.
            self.process.rest(60, 2 * MINUTE_MS)
            self.ask_again(producer, value)
        except TxnTableError:
            self.told.refused.add(value)
            raise
        self.told.committed[value] = self.records

    def ask_again(self, producer: Producer, value: str) -> None:
        """Ask for a commit of unknown outcome again: a no is a no by now, too, whatever others did since."""
        try:
            producer.commit_transaction()
        except (RetriableError, TransactionOutcomeUnknownError):
            raise
        except TxnTableError:
            self.told.refused.add(value)
            raise

    def pause(self) -> None:
        """Let others go on."""
        self.process.pause()

    def sleep(self) -> None:
        """Let time pass."""
        self.site.advance_ms(self.random.choice(JUMPS_MS))

    def complete(self) -> None:
        """Complete what is decided."""
        self.warehouse.complete()

    def peek(self) -> None:
        """Read a snapshot, as one that may not write."""
        snapshot = open_on(ReadOnlyStore(self.process.store()), self.site.environment()).snapshot()
        self.told.peeks.append(_values(snapshot))

    def clean(self) -> None:
        """Write checkpoints and clean up below them."""
        topics = [self.warehouse.topic_log(topic) for topic in TOPICS]
        logs: list[DeltaLog[Any]] = [self.warehouse.transactions.log]
        for topic in topics:
            logs += [topic.segments, topic.public]
        before_ms, after_ms = self.random.choice([(0, 0), (2 * DAY_MS, 0), (0, 2 * DAY_MS)])
        self.site.advance_ms(before_ms)
        for log in logs:
            log.refresh()
            log.write_checkpoint()
            if not after_ms:
                clean_up(self.warehouse.context, log.root, DAY_MS)
        self.site.advance_ms(after_ms)
        for log in logs:
            clean_up(self.warehouse.context, log.root, DAY_MS)

    def work(self) -> None:
        """A round of the coordinator job, perhaps after long idleness."""
        self.site.advance_ms(self.random.choice([0, 31 * MINUTE_MS]))
        self.warehouse.coordinator().run_once()


class Writer(Onlooker):
    """Writes by key, with and without transactions."""

    kinds: tuple[str, ...] = ("write", "write", "write", "plain", "plain", "pause", "complete", "sleep", "look_back")

    def plain(self) -> None:
        """Append without a transaction."""
        producer = self.warehouse.producer(enable_idempotence=self.random.random() < 0.5)
        self.told.refused.discard(self.fill(producer))
        producer.flush()

    def look_back(self) -> None:
        """Read a snapshot of the past, if it is kept: whole files; that of a moment ago is."""
        began_ms = self.site.time.instant().boot_ms
        head, back = self.warehouse.transactions.refresh(), self.random.choice([0, 0, 1, 3, 6])
        snapshot = self.warehouse.snapshot(max(0, head - back))
        self.process.pause()
        try:
            _values(snapshot)
        except OffsetOutOfRangeError:
            passed_ms = self.site.time.instant().boot_ms - began_ms
            assert back or passed_ms >= MINUTE_MS, "a snapshot of a moment ago is merged away"


class Keeper(Onlooker):
    """Lets topics grow, deletes records, compacts and vacuums."""

    kinds: tuple[str, ...] = (
        "grow",
        "delete",
        "retain",
        "vacuum",
        "vacuum",
        "two_jobs",
        "pause",
        "sleep",
        "complete",
        "merge",
        "look_back",
    )
    look_back = Writer.look_back

    def grow(self) -> None:
        """Add a partition."""
        topic = self.random.choice(TOPICS)
        partitions = self.warehouse.topic_log(topic).settings().partitions
        self.warehouse.admin().create_partitions({topic: min(partitions + 1, 4)})

    def delete(self) -> None:
        """Delete records, also before an offset that is not there."""
        partition = TopicPartition(self.random.choice(TOPICS), self.random.choice([0, 1]))
        admin = self.warehouse.admin()
        end = admin.delete_records({partition: None}, validate_only=True)[partition]
        if self.random.random() < 0.3:
            beyond = {partition: end + 1_000}
            _refused(lambda: admin.delete_records(beyond), OffsetOutOfRangeError)
        else:
            admin.delete_records({partition: self.random.randint(0, end)})

    def retain(self) -> None:
        """Let old records go, and compact."""
        compact(self.warehouse)

    merge = retain

    def vacuum(self) -> None:
        """Vacuum: no file that is needed goes, nor an upload whose epoch may still append."""
        there = self.uploads()
        vacuum(self.warehouse, execute=True)
        check_files(self.site)
        # What was registered meanwhile is no such upload any more, and is there.
        gone = {path: there[path] for path in there.keys() - self.site.objects.snapshot().keys()}
        epochs = self.current_epochs()
        for path, (producer_id, epoch) in gone.items():
            assert epoch < epochs.get(producer_id, epoch + 1), f"vacuumed, and of a current epoch: {path}"

    def uploads(self) -> dict[str, tuple[int, int]]:
        """The files of producers with an id that no log has ever named, and whose they are."""
        entries = (entry for entry in Entry.read(self.site) if entry.root.endswith("/_segments"))
        named = {add["path"] for entry in entries for add in entry.each("add")}
        found = (_UPLOAD.fullmatch(path) for path in self.site.objects.snapshot())
        return {each[0]: (int(each[2]), int(each[3])) for each in found if each and each[1] not in named}

    def current_epochs(self) -> dict[int, int]:
        """Producer id -> the epoch that may append now."""
        log = self.site.open().transactions
        log.refresh()
        return {row.producer_id: row.producer_epoch for row in log.rows()}

    def two_jobs(self) -> None:
        """The first of two coordinator jobs stops when the second has claimed the lease."""
        first, second = self.warehouse.coordinator(), self.warehouse.coordinator()
        first.claim()
        second.claim()
        _refused(first.run_once, TransactionCoordinatorFencedError)


class Busy(Onlooker):
    """Writes, cleans up and expires what is idle, while others sleep."""

    kinds: tuple[str, ...] = ("write", "write", "write", "clean", "clean", "work")
    most = 9


class Sleeper(Onlooker):
    """Writes and reads, and falls asleep wherever it is: before a put, in the middle of reading a log."""

    kinds: tuple[str, ...] = ("write", "write", "look", "look", "nap", "look_anew", "look_anew")

    def before(self, step: Step) -> None:
        """Take days, sometimes."""
        of_a_log = "/_delta_log/" in step.path
        chance = {Operation.PUT_IF_ABSENT: 0.12, Operation.GET: 0.03}.get(step.operation, 0.0)
        if of_a_log and self.random.random() < chance:
            self.process.rest(self.random.choice([60, 200, 400]), self.random.choice([0, 31 * MINUTE_MS, 2 * DAY_MS]))

    def nap(self) -> None:
        """Let the others do a lot."""
        self.process.rest(self.random.choice([60, 200, 400]), 0)

    def look(self) -> None:
        """What was committed before is there."""
        before = dict(self.told.committed)
        seen = _values(self.warehouse.snapshot())
        assert {value: seen[value] for value in before} == before, "committed, and not in a snapshot"

    def look_anew(self) -> None:
        """The same, as a process that has just been started."""
        self.warehouse = self.process.opened(self.before)
        self.look()


class Committer(Onlooker):
    """Commits offsets of one group, as one that is no member: in transactions, plainly, as an admin."""

    kinds: tuple[str, ...] = ("send", "send", "send", "send", "write", "plainly", "complete", "pause", "sleep")

    def send(self) -> None:
        """Send offsets with a transaction."""
        owner = self.random.choice(["x", "y", self.process.name])
        producer = self.warehouse.producer(owner, transaction_timeout_ms=MINUTE_MS)
        producer.init_transactions()
        for _ in range(self.random.randint(1, 3)):
            producer.begin_transaction()
            if self.random.random() < 0.3:
                self.fill(producer)
            for _ in range(self.random.choice([1, 1, 2])):
                partition = TopicPartition(TOPICS[0], self.random.choice([0, 0, 1]))
                producer.send_offsets_to_transaction({partition: self.random.randrange(100)}, GROUP)
                self.process.pause()
            producer.commit_transaction() if self.random.random() < 0.6 else producer.abort_transaction()

    def plainly(self) -> None:
        """Commit an offset at once."""
        with self.warehouse.consumer(group_id=GROUP, background_heartbeat=False, enable_auto_commit=False) as consumer:
            partition = TopicPartition(TOPICS[0], self.random.choice([0, 0, 1]))
            consumer.assign([partition])
            consumer.commit({partition: self.random.randrange(100)})


def _values(snapshot: Snapshot) -> Counter[str]:
    rows = [row for topic in TOPICS for row in snapshot.read_arrow(topic).read_all().to_pylist()]
    return Counter(row["value"].decode() for row in rows)


def _refused(call: Callable[[], object], error: type[TxnTableError]) -> None:
    """Make a call that must be refused, unless the store cannot be reached."""
    try:
        call()
    except (error, RetriableError):
        return
    raise AssertionError(f"not refused: {error.__name__}")
