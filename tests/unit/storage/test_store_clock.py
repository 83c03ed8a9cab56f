"""The store's time is estimated from its own dates, never ahead of them."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.manual_environment import START_MS, ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import StoreUnavailableError, StoreUnsuitableError
from txntable.format.layout import CLOCK_PATH
from txntable.storage.object_store import ObjectMeta, PutOutcome
from txntable.storage.store_clock import StoreClock
from txntable.warehouse.warehouse import open_on

MINUTE_MS = 60_000


class HidesTheAnchor(MemoryStore):
    def head(self, path: str) -> ObjectMeta | None:
        return None


def test_now_is_the_stores_time_when_the_machines_clock_is_wrong():
    environment = ManualEnvironment(wall_ms=5)
    clock = StoreClock(MemoryStore(MemoryObjects(StoreTime(environment))), environment)

    first = clock.now_ms()
    environment.advance_ms(1234)
    environment.advance_wall_ms(-1000)

    assert (first, clock.now_ms()) == (START_MS, START_MS + 1234)


@pytest.mark.parametrize(("minutes", "requests"), [(14, 2), (16, 4)])
def test_clock_anchors_itself_again_when_its_anchor_is_old(minutes, requests):
    environment = ManualEnvironment()
    store = SteppingStore(MemoryStore(MemoryObjects(StoreTime(environment))))
    clock = StoreClock(store, environment)

    clock.now_ms()
    environment.advance_ms(minutes * MINUTE_MS)

    assert clock.now_ms() == START_MS + minutes * MINUTE_MS
    assert len(store.steps) == requests


def test_now_is_behind_the_store_when_the_answer_to_the_anchor_was_slow():
    environment = ManualEnvironment()
    objects = MemoryObjects(StoreTime(environment))
    store = SteppingStore(MemoryStore(objects), on_step=lambda _: environment.advance_ms(300))

    assert StoreClock(store, environment).now_ms() <= objects.clock()


def test_now_is_not_far_behind_the_store_when_the_process_slept_over_the_answer_to_the_anchor():
    environment, naps = ManualEnvironment(), iter([31 * MINUTE_MS])
    objects = MemoryObjects(StoreTime(environment))
    store = SteppingStore(MemoryStore(objects))

    def nap(step: Step) -> None:
        if step.operation is Operation.HEAD:
            environment.advance_ms(next(naps, 0))

    store.on_step = nap

    now_ms = StoreClock(store, environment).now_ms()

    assert now_ms == objects.clock()
    assert len(store.steps) == 4


def test_now_raises_when_every_answer_to_the_anchor_takes_minutes():
    environment = ManualEnvironment()
    store = SteppingStore(MemoryStore(MemoryObjects(StoreTime(environment))))
    store.on_step = lambda _: environment.advance_ms(3 * MINUTE_MS)

    with pytest.raises(StoreUnavailableError, match="takes minutes"):
        StoreClock(store, environment).now_ms()


def test_now_raises_when_the_anchor_can_not_be_read_back():
    with pytest.raises(StoreUnavailableError):
        StoreClock(HidesTheAnchor(), ManualEnvironment()).now_ms()


class Endpoint(MemoryStore):
    """A store that another software may stand behind since yesterday."""

    is_remote = True


class IgnoresConditions(Endpoint):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        self.put(path, data)
        return PutOutcome.CREATED


def test_first_time_of_a_process_proves_by_one_request_that_the_endpoint_heeds_conditions():
    environment = ManualEnvironment()
    store = SteppingStore(Endpoint())
    clock = StoreClock(store, environment)

    clock.now_ms()
    environment.advance_ms(16 * MINUTE_MS)
    clock.now_ms()

    asked = [step.operation.value for step in store.steps]
    assert asked == ["put", "put-if-absent", "head", "put", "head"]


def test_time_is_refused_to_a_writer_and_shown_to_a_reader_when_the_endpoint_ignores_conditions():
    clock = StoreClock(IgnoresConditions(), ManualEnvironment(wall_ms=5))

    for _ in range(2):
        with pytest.raises(StoreUnsuitableError, match="If-None-Match"):
            clock.now_ms()
    assert clock.shown_ms() == 5


def test_existing_warehouse_is_read_and_not_written_through_an_endpoint_that_ignores_conditions():
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    with warehouse.producer() as producer:
        producer.send("t", row={"account": "a", "amount": 1})
    before = {path: found.data for path, found in site.objects.snapshot().items()}

    opened = open_on(IgnoresConditions(site.objects), site.environment())
    with pytest.raises(StoreUnsuitableError):
        opened.producer("etl").init_transactions()

    assert opened.read_arrow("t").read_all().num_rows == 1
    after = {path: found.data for path, found in site.objects.snapshot().items()}
    assert {path for path in after if after[path] != before.get(path)} <= {CLOCK_PATH}, "no log was written to"
