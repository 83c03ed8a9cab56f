"""A store that answers nothing for 1 to 30 seconds, from any request on, is ridden out (PROTOCOL.md §4.2, rule 1).

The time is the simulation's.  Each operation is run again for each request that it makes: from there on nothing is
answered until the outage is over.  The first request is lost before it is done, or its answer is.  A build takes two
lengths for each request, by turns; ``HYPOTHESIS_PROFILE=explore`` takes all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.doubles.fault_plan import Fault, Rule, Step
from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.compaction.vacuum import vacuum
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.errors import StoreUnavailableError
from txntable.format.records import TopicPartition
from txntable.storage.retries import DEFAULT_RETRY_TIMEOUT_MS
from txntable.warehouse.warehouse import Warehouse, open_on

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
OUTAGES_MS = (1_000, 5_000, 10_000, 30_000)
IN = TopicPartition("t", 0)


@dataclass
class Access:
    """A process's access to the store, which tries again as a remote store's does, and its clock."""

    store: SteppingStore
    environment: ManualEnvironment

    def open(self) -> Warehouse:
        return open_on(self.store, self.environment)


def access(site: Site, timeout_ms: int = DEFAULT_RETRY_TIMEOUT_MS) -> Access:
    environment = site.environment()
    store = SteppingStore(MemoryStore(site.objects))
    store.retries, store.retry_timeout_ms = environment, timeout_ms
    return Access(store, environment)


def outage(at: Access, number: int, length_ms: int, first: Fault) -> None:
    """Let nothing be answered for a time, from a request on."""
    began: list[object] = []

    def forecast(step: Step) -> Rule | None:
        if step.number < number:
            return None
        if not began:
            began.append(at.environment.instant())
            return Rule(first, lambda _: True)
        over = at.environment.since_ms(began[0]) >= length_ms  # type: ignore[arg-type]
        return None if over else Rule(Fault.FAIL_BEFORE, lambda _: True)

    at.store.forecast = forecast


# -- what goes on meanwhile --------------------------------------------------------------------


def transact(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        for partition in (0, 1):
            txn.send("t", row={"account": "new", "amount": 1}, partition=partition)
        producer.send_offsets_to_transaction({IN: 1}, "copies")


def poll(warehouse: Warehouse) -> None:
    consumer = warehouse.consumer(group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe(["t"])
    found: list[ConsumerRecord] = []
    while len(found) < 2:
        records = consumer.poll(timeout_ms=60_000)
        assert records, "the outage was shorter than the timeout"
        found += [each for batch in records.values() for each in batch]
    consumer.commit()


def coordinate(warehouse: Warehouse) -> None:
    report = warehouse.coordinator().run_once()
    assert not getattr(report, "failures", ())


def sweep(warehouse: Warehouse) -> None:
    vacuum(warehouse, execute=True)


OPERATIONS: dict[str, Callable[[Warehouse], None]] = {
    "transaction": transact,
    "poll": poll,
    "coordinator": coordinate,
    "vacuum": sweep,
}


def prepared() -> Site:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)
    with warehouse.producer() as producer:
        for partition in (0, 1):
            producer.send("t", row={"account": "old", "amount": 1}, partition=partition)
    # Dies in its transaction: something to do for the coordinator.
    dying = warehouse.producer("dying", transaction_timeout_ms=1_000)
    dying.init_transactions()
    dying.begin_transaction()
    dying.send("t", row={"account": "never", "amount": 1}, partition=0)
    dying.flush()
    site.advance_ms(5_000)
    return site


def cases(requests: int) -> Iterator[tuple[int, int, Fault]]:
    faults = (Fault.FAIL_BEFORE, Fault.LOST_ANSWER)
    for number in range(1, requests + 1):
        for turn, length_ms in enumerate(OUTAGES_MS):
            if THOROUGH or (number + turn) % 2 == 0:
                yield number, length_ms, faults[(number + turn // 2) % 2]


@pytest.mark.parametrize("name", OPERATIONS)
def test_outage_at_any_request_is_ridden_out(name: str) -> None:
    site = prepared()
    whole = access(site.copy())
    OPERATIONS[name](whole.open())
    count = 0

    for number, length_ms, first in cases(len(whole.store.steps)):
        here = site.copy()
        at = access(here)
        outage(at, number, length_ms, first)
        OPERATIONS[name](at.open())

        rows = here.open().read_arrow("t").read_all()["account"].to_pylist()
        new = 2 if name == "transaction" else 0
        assert sorted(rows) == ["new"] * new + ["old"] * 2, (number, length_ms, first)
        count += 1
    assert count >= 20


def test_outage_that_outlasts_the_timeout_ends_with_it() -> None:
    at = access(prepared(), timeout_ms=20_000)
    warehouse = at.open()
    outage(at, len(at.store.steps) + 1, 10_000_000, Fault.FAIL_BEFORE)
    began, asked = at.environment.instant(), len(at.store.steps)

    with pytest.raises(StoreUnavailableError):
        warehouse.topic_log("t").segments.refresh()

    assert 19_990 <= at.environment.since_ms(began) <= 21_000
    assert len(at.store.steps) - asked <= 30


def test_poll_returns_nothing_at_the_end_of_its_timeout_while_the_store_is_away_and_goes_on_afterwards() -> None:
    at = access(prepared())
    consumer = at.open().consumer()
    consumer.assign([IN])
    consumer.seek(IN, 0)
    outage(at, len(at.store.steps) + 1, 30_000, Fault.FAIL_BEFORE)
    began = at.environment.instant()

    assert consumer.poll(timeout_ms=10_000) == {}
    assert 9_990 <= at.environment.since_ms(began) <= 12_000
    assert [len(records) for records in consumer.poll(timeout_ms=60_000).values()] == [1]


def test_poll_without_a_timeout_raises_while_the_store_is_away() -> None:
    at = access(prepared())
    consumer = at.open().consumer()
    consumer.assign([IN])
    consumer.seek(IN, 0)
    outage(at, len(at.store.steps) + 1, 30_000, Fault.FAIL_BEFORE)
    began = at.environment.instant()

    with pytest.raises(StoreUnavailableError):
        consumer.poll()
    assert at.environment.since_ms(began) <= 2_500


def test_interrupt_ends_the_trying_at_once() -> None:
    at = access(prepared())
    warehouse = at.open()
    outage(at, len(at.store.steps) + 1, 10_000_000, Fault.FAIL_BEFORE)

    def interrupt(milliseconds: float) -> None:
        raise KeyboardInterrupt

    at.environment.sleep_ms = interrupt  # type: ignore[method-assign]
    asked = len(at.store.steps)

    with pytest.raises(KeyboardInterrupt):
        warehouse.producer("etl").init_transactions()
    assert len(at.store.steps) == asked + 1
