"""The store's time is estimated from its own dates, never ahead of them."""

from __future__ import annotations

import pytest

from txntable.errors import StoreUnavailableError
from txntable.storage.object_store import ObjectMeta
from txntable.storage.store_clock import StoreClock
from txntable.testing.manual_environment import START_MS, ManualEnvironment, StoreTime
from txntable.testing.memory_store import MemoryObjects, MemoryStore
from txntable.testing.stepping_store import SteppingStore

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


def test_now_raises_when_the_anchor_can_not_be_read_back():
    with pytest.raises(StoreUnavailableError):
        StoreClock(HidesTheAnchor(), ManualEnvironment()).now_ms()
