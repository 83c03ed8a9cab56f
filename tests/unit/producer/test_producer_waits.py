"""Timeouts of a producer's calls, in seconds as in Kafka's Python clients: how long a silent store is asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.doubles.fault_plan import Fault, Rule
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from tests.unit.producer.producing import accounts, row, started
from txntable.errors import CommitStateUnknownError, InvalidRequestError, StoreUnavailableError
from txntable.producer.producer import Producer
from txntable.storage.retries import DEFAULT_RETRY_TIMEOUT_MS, LEAST_BUDGET_MS
from txntable.warehouse.warehouse import open_on

Call = Callable[..., None]
CALLS: dict[str, Callable[[Producer], Call]] = {
    "flush": lambda producer: producer.flush,
    "commit": lambda producer: producer.commit_transaction,
    "abort": lambda producer: producer.abort_transaction,
}


@pytest.mark.parametrize("timeout", [-1, "1", True, float("nan"), float("inf"), 2**63])
def test_what_is_no_timeout_is_refused_and_harms_nothing(site: Site, timeout: Any) -> None:
    producer = site.open().producer("etl")
    with pytest.raises(InvalidRequestError, match="seconds"):
        producer.init_transactions(timeout)
    producer.init_transactions(1)
    producer.begin_transaction()
    producer.send("u", row=row("x"))

    for call in CALLS.values():
        with pytest.raises(InvalidRequestError, match="seconds"):
            call(producer)(timeout)

    producer.commit_transaction(1.0)
    assert accounts(site, "u") == ["x"]


@pytest.mark.parametrize(
    ("timeout", "tried_ms"),
    [(0, LEAST_BUDGET_MS), (5, 5_000), (7.5, 7_500), (None, DEFAULT_RETRY_TIMEOUT_MS), (600, DEFAULT_RETRY_TIMEOUT_MS)],
)
@pytest.mark.parametrize("call", CALLS)
def test_silent_store_is_asked_for_as_long_as_the_call_says(
    site: Site, call: str, timeout: float | None, tried_ms: int
) -> None:
    environment, store = site.environment(), SteppingStore(MemoryStore(site.objects))
    store.retries, store.retry_timeout_ms = environment, DEFAULT_RETRY_TIMEOUT_MS
    producer = started(open_on(store, environment))
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    if call == "abort":
        producer.flush()
        producer.send("u", row=row("y"))
    store.forecast = lambda step: Rule(Fault.FAIL_BEFORE, lambda _: True)
    began = environment.instant()

    with pytest.raises((StoreUnavailableError, CommitStateUnknownError)):
        CALLS[call](producer)(timeout)

    assert tried_ms <= environment.since_ms(began) <= 2 * tried_ms


def test_call_that_ran_out_of_time_is_made_again_with_the_same_outcome(site: Site) -> None:
    environment, store = site.environment(), SteppingStore(MemoryStore(site.objects))
    store.retries, store.retry_timeout_ms = environment, DEFAULT_RETRY_TIMEOUT_MS
    producer = started(open_on(store, environment))
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.flush()
    store.forecast = lambda step: Rule(Fault.FAIL_BEFORE, lambda _: True)
    with pytest.raises((StoreUnavailableError, CommitStateUnknownError)):
        producer.commit_transaction(1)
    store.forecast = lambda step: None

    producer.commit_transaction(1)

    assert accounts(site, "u") == ["x"]
