"""How many requests every operation makes, by kind; counted at a store in memory, by a clock that is told.

Owns which operations are counted and in which state of a warehouse.  The counts are the same in each run; what
they cost in dollars, and the document that shows them, is :mod:`benchmarks.request_costs`'s.  One step of the store is
one request of S3's API, and a GET where it looks at another object beside it, except: a segment of 8 MiB or more is
uploaded in parts (its parts and two more), a LIST answers 1,000 objects at a time, and a vacuum's DELETEs go 1,000 at
a time (``tests/integration/test_requests.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.waiting_store import WaitingStore
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

KINDS = ("PUT", "GET", "HEAD", "LIST", "DELETE")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_SCHEMA = pa.schema([pa.field("account", pa.int64()), pa.field("note", pa.string())])
_ROW = {"account": 1, "note": "x" * 100}
_TEN = 10


@dataclass(frozen=True, slots=True)
class Counted:
    """What one operation asked of the store.

    Attributes
    ----------
    operation : str
        What was done.
    requests : Counter of str
        By kind; see :data:`KINDS`.
    steps : tuple of Step
        One by one, in their order.
    round_trips : int
        How many answers it waited for, one after the other.
    """

    operation: str
    requests: Counter[str]
    steps: tuple[Step, ...] = field(repr=False)
    round_trips: int = 0

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def segments(self) -> int:
        """The uploads of segments among them."""
        return sum(step.operation is Operation.WRITE for step in self.steps)

    @property
    def rounds_to_decision(self) -> int:
        """How many requests follow one another from the last upload to the answer to the decision.

        Readings of partition logs and markers' files are on their way beside the upload, here one after the other: the
        store in memory takes one request at a time.
        """
        last_upload = max(index for index, step in enumerate(self.steps) if step.operation is Operation.WRITE)
        puts = [index for index, step in enumerate(self.steps) if _enters_transaction_log(step)]
        between = self.steps[last_upload + 1 : puts[-1] + 1]
        return sum(not _is_beside_an_upload(step) for step in between)


def requests_of(steps: Sequence[Step]) -> Counter[str]:
    """Return the requests of some steps, by kind."""
    kinds = {Operation.PUT_IF_ABSENT: "PUT", Operation.WRITE: "PUT"}
    made = Counter(kinds.get(step.operation, step.operation.name) for step in steps)
    return made + Counter(GET=sum(step.looks_beside for step in steps))


def _is_beside_an_upload(step: Step) -> bool:
    reads = step.operation is Operation.GET and "/_segments/_delta_log/" in step.path
    return reads or (step.operation is Operation.PUT and "/_segments/markers/" in step.path)


def _enters_transaction_log(step: Step) -> bool:
    return step.operation is Operation.PUT_IF_ABSENT and step.path.startswith("system/transaction_log/_delta_log/")


class Place:
    """A warehouse in memory, its clock, and the processes that use it.

    Parameters
    ----------
    topics, partitions : int
        How many topics, named ``t0``, ``t1`` …, and how many partitions each has.
    """

    def __init__(self, topics: int = 1, partitions: int = 1) -> None:
        self.machine = ManualEnvironment()
        self._objects = MemoryObjects(StoreTime(self.machine))
        self.topics = [f"t{number}" for number in range(topics)]
        self.store, self.warehouse = self._created()
        for name in self.topics:
            self.warehouse.admin().create_topic(name, partitions=partitions, schema=_SCHEMA)

    def _created(self) -> tuple[WaitingStore, Warehouse]:
        store = WaitingStore(MemoryStore(self._objects))
        return store, create_on(store, self.machine, exist_ok=False, settings=WarehouseSettings())

    def open(self) -> None:
        """Go on in a new process, which has just opened the warehouse."""
        self.store = WaitingStore(MemoryStore(self._objects))
        self.warehouse = open_on(self.store, self.machine)

    def open_everything(self) -> None:
        """Go on in a new process that has a view of every log."""
        self.open()
        for name in self.topics:
            self.warehouse.topic_log(name).segments.ensure_fresh()
            self.warehouse.topic_log(name).public.ensure_fresh()

    def read_first(self) -> None:
        """Open the warehouse in a new process, and read the first records of a topic."""
        self.open()
        self.warehouse.read_arrow("t0").read_next_batch()

    def check(self) -> None:
        """Look for work that nobody does, in a new process."""
        self.open()
        self.warehouse.admin().check_upkeep()

    def producer(self, transactional_id: str | None = "etl") -> Producer:
        """Return a producer that is ready."""
        producer = self.warehouse.producer(transactional_id)
        if transactional_id is not None:
            producer.init_transactions()
        return producer

    def maintain_logs(self) -> None:
        """Let the coordinator job of another process write checkpoints and clean up logs."""
        open_on(MemoryStore(self._objects), self.machine).coordinator().run_once()

    def log_bytes(self) -> int:
        """Return how large all logs are."""
        paths = self._objects.snapshot().items()
        return sum(len(found.data) for path, found in paths if "/_delta_log/" in path)

    def count(self, operation: str, call: Callable[[], object]) -> Counted:
        """Do something, and return what this process, or one that it begins, asked for."""
        store, before, waited = self.store, len(self.store.steps), self.store.round_trips
        call()
        if store is not self.store:
            before = waited = 0
        steps = self.store.steps[before:]
        return Counted(operation, requests_of(steps), tuple(steps), self.store.round_trips - waited)


def transact(producer: Producer, topics: Sequence[str] = ("t0",), partitions: int = 1, offset: int = 0) -> None:
    """Commit one record in each of some partitions; with an `offset` above 0 that of a group, too."""
    producer.begin_transaction()
    for topic in topics:
        for partition in range(partitions):
            producer.send(topic, row=_ROW, partition=partition)
    if offset:
        producer.send_offsets_to_transaction({TopicPartition("t0", 0): offset}, "g")
    producer.commit_transaction()


def steady_transactions() -> Iterator[Counted]:
    """Yield what a transaction costs a producer that is at work."""
    for partitions in (1, 3, 10):
        place = Place(partitions=partitions)
        producer = place.producer()
        transact(producer, partitions=partitions)
        plural = "" if partitions == 1 else "s"
        yield place.count(
            f"transaction, {partitions} partition{plural}",
            lambda producer=producer, partitions=partitions: transact(producer, partitions=partitions),  # type: ignore[misc]
        )
    place = Place(topics=3)
    producer = place.producer()
    transact(producer, place.topics)
    yield place.count("transaction, 3 topics", lambda: transact(producer, place.topics))
    place = Place()
    producer = place.producer()
    transact(producer, offset=1)
    transact(producer, offset=2)
    yield place.count("transaction, 1 partition and offsets", lambda: transact(producer, offset=3))
    place = Place()
    producer = place.producer()
    transact(producer)
    producer.begin_transaction()
    producer.send("t0", row=_ROW)
    producer.flush()
    yield place.count("abort of 1 partition, after its append", producer.abort_transaction)


def producers() -> Iterator[Counted]:
    """Yield what producers ask for beside their transactions."""
    place = Place()
    yield place.count("first producer of an id, ready", place.producer)
    yield place.count("next producer of an id, ready", place.producer)
    producer = place.producer(None)

    def send() -> None:
        producer.send("t0", row=_ROW)
        producer.flush()

    send()
    yield place.count("idempotent send, 1 segment", send)
    place.machine.advance_ms(DAY_MS)
    yield place.count("producer, idle for a day", lambda: None)


def openings() -> Iterator[Counted]:
    """Yield what a new process asks for before it can do something."""
    store = WaitingStore(MemoryStore())
    create_on(store, ManualEnvironment(), exist_ok=False, settings=WarehouseSettings())
    yield Counted("create a warehouse", store.requests, tuple(store.steps))
    for topics in (1, 10):
        place = Place(topics)
        for _ in range(_TEN):
            transact(place.producer(), place.topics)
        place.maintain_logs()
        plural = "" if topics == 1 else "s"
        yield place.count(f"open, maintained, {topics} topic{plural}", place.open_everything)
    place = Place()
    producer = place.producer()
    for _ in range(50):
        transact(producer)
    yield place.count("open, 50 transactions after the last checkpoints", place.open_everything)


def first_reads() -> Iterator[Counted]:
    """Yield what a new process asks for until it has the first record of a topic."""
    for transactions, maintained in ((_TEN, True), (_TEN, False), (49, False), (98, False)):
        place = Place()
        producer = place.producer()
        for number in range(transactions):
            transact(producer, offset=number + 1)
        if maintained:
            place.maintain_logs()
        state = ", maintained" if maintained else ", never maintained"
        counted = place.count(f"{transactions} transactions and offsets{state}", place.read_first)
        # How many segments are fetched ahead before the reader is left is chance.
        steps = [step for step in counted.steps if "/_segments/p" not in step.path]
        yield replace(counted, requests=requests_of(steps))


def readers() -> Iterator[Counted]:
    """Yield what readers ask for."""
    place = Place()
    producer = place.producer()
    consumer = place.warehouse.consumer(auto_offset_reset="earliest", prefetch=False)
    consumer.assign([TopicPartition("t0", 0)])
    consumer.poll()
    yield place.count("poll, nothing new", consumer.poll)
    transact(producer)
    yield place.count("poll, 1 new segment", consumer.poll)
    for _ in range(_TEN - 1):
        transact(producer)
    place.open_everything()
    yield place.count("snapshot of 10 segments", lambda: place.warehouse.read_arrow("t0").read_all())


def groups() -> Iterator[Counted]:
    """Yield what a member of a group asks for."""
    place = Place()
    producer = place.producer()
    consumer = place.warehouse.consumer(
        group_id="g",
        auto_offset_reset="earliest",
        prefetch=False,
        background_heartbeat=False,
        enable_auto_commit=False,
    )
    consumer.subscribe(["t0"])
    yield place.count("group: join and first poll", consumer.poll)
    consumer.poll()
    yield place.count("group: poll, nothing new", consumer.poll)
    place.machine.advance_ms(consumer.config.heartbeat_interval_ms)
    poll = place.count("", consumer.poll)
    beaten = poll.requests - place.count("", consumer.poll).requests
    yield Counted("group: heartbeat", beaten, ())
    transact(producer)
    consumer.poll()
    yield place.count("group: commit", consumer.commit)
    yield place.count("group: leave", consumer.close)


def idle_jobs() -> Iterator[Counted]:
    """Yield what the jobs ask for when there is nothing to do."""
    for topics in (1, 10):
        place, plural = Place(topics), "" if topics == 1 else "s"
        coordinator = place.warehouse.coordinator()
        coordinator.run_once()
        yield place.count(f"coordinator, a round without work, {topics} topic{plural}", coordinator.run_once)
        yield place.count(
            f"compact, nothing to do, {topics} topic{plural}",
            lambda place=place: compact(place.warehouse),  # type: ignore[misc]
        )
        yield place.count(f"check, from a cold start, {topics} topic{plural}", place.check)


def busy_jobs() -> Iterator[Counted]:
    """Yield what the jobs ask for when there is something to do."""
    place = Place()
    coordinator = place.warehouse.coordinator()
    coordinator.run_once()
    producer = place.producer("killed")
    producer.begin_transaction()
    producer.send("t0", row=_ROW)
    producer.flush()
    place.machine.advance_ms(2 * HOUR_MS)
    yield place.count("coordinator, a round that aborts 1 transaction", coordinator.run_once)
    producer = place.producer()
    for _ in range(_TEN):
        transact(producer)
    place.machine.advance_ms(2 * HOUR_MS)
    coordinator.run_once()
    place.open_everything()
    yield place.count("compact, 10 segments into 1", lambda: compact(place.warehouse))
    place.machine.advance_ms(40 * DAY_MS)
    place.maintain_logs()
    place.open_everything()
    yield place.count("vacuum, dry run", lambda: vacuum(place.warehouse))
    yield place.count("vacuum, 10 segments and 1 aborted", lambda: vacuum(place.warehouse, execute=True))


SECTIONS: dict[str, Callable[[], Iterator[Counted]]] = {
    "Producers": lambda: iter([*steady_transactions(), *producers()]),
    "Readers": readers,
    "Groups": groups,
    "Opening": openings,
    "Jobs without work": idle_jobs,
    "Jobs with work": busy_jobs,
}
