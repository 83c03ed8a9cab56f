"""Flushes in the background: when they are due, and who hears of their failures."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.running_threads import all_ended, running
from tests.simulation.site import Site, published
from tests.unit.producer.producing import accounts, row, store_of
from txntable.errors import (
    CommitStateUnknownError,
    RecordTooLargeError,
    StoreUnavailableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.producer.linger import RETRY_MS, Linger
from txntable.producer.producer import Producer
from txntable.runtime.environment import Instant


@dataclass
class Outgoing:
    """What waits, and what a flush does with it."""

    time: ManualEnvironment = field(default_factory=ManualEnvironment)
    since: Instant | None = None
    flushes: int = 0
    failure: TxnTableError | None = None

    def flush(self) -> None:
        self.flushes += 1
        if self.failure is None or not self.failure.retriable:
            self.since = None
        if self.failure is not None:
            raise self.failure

    def linger(self, linger_ms: int = 50) -> Linger:
        return Linger(linger_ms, self.time, self.flush, lambda: self.since)


def test_nothing_is_flushed_when_nothing_waits() -> None:
    outgoing = Outgoing()

    assert outgoing.linger().step() is None
    assert outgoing.flushes == 0


@pytest.mark.parametrize(
    ("linger_ms", "waited_ms", "flushes", "rest_ms"),
    [(50, 0, 0, 50), (50, 49, 0, 1), (50, 50, 1, None), (50, 500, 1, None), (0, 0, 1, None)],
)
def test_flush_is_due_when_the_oldest_record_has_waited_long_enough(
    linger_ms: int, waited_ms: int, flushes: int, rest_ms: int | None
) -> None:
    outgoing = Outgoing()
    outgoing.since = outgoing.time.instant()
    outgoing.time.advance_ms(waited_ms)

    assert outgoing.linger(linger_ms).step() == rest_ms
    assert outgoing.flushes == flushes


@pytest.mark.parametrize(
    ("failure", "again_ms"),
    [(StoreUnavailableError("no answer"), RETRY_MS), (RecordTooLargeError("too large"), None)],
)
def test_failure_is_raised_once_by_the_next_call_and_tried_again_only_when_that_may_help(
    failure: TxnTableError, again_ms: int | None
) -> None:
    outgoing = Outgoing(failure=failure)
    outgoing.since = outgoing.time.instant()
    linger = outgoing.linger(0)

    assert linger.step() == again_ms
    with pytest.raises(type(failure)):
        linger.raise_failure()
    linger.raise_failure()


def test_failure_is_forgotten_when_the_next_flush_succeeds() -> None:
    outgoing = Outgoing(failure=StoreUnavailableError("no answer"))
    outgoing.since = outgoing.time.instant()
    linger = outgoing.linger(0)
    linger.step()
    outgoing.failure = None

    assert linger.step() is None

    linger.raise_failure()
    assert outgoing.flushes == 2


def test_thread_flushes_what_waits_and_ends_when_it_is_stopped() -> None:
    flushed, others = threading.Event(), running("txntable-linger")
    since: list[Instant] = []

    def flush() -> None:
        since.clear()
        flushed.set()

    environment = ManualEnvironment()
    linger = Linger(0, environment, flush, lambda: since[0] if since else None)
    for _ in range(2):
        since.append(environment.instant())
        linger.wake()
        assert flushed.wait(timeout=60)
        flushed.clear()

    linger.stop()

    assert all_ended("txntable-linger", others)


# -- in a producer ------------------------------------------------------------------------------


def lingering(site: Site, monkeypatch: pytest.MonkeyPatch) -> Producer:
    """A producer whose background is stepped by the test, not by a thread."""
    monkeypatch.setattr(Linger, "wake", lambda self: None)
    return site.open().producer(linger_ms=50)


def step(producer: Producer) -> int | None:
    assert producer._sender.linger is not None
    return producer._sender.linger.step()


def test_record_is_visible_without_a_flush_once_it_has_waited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = lingering(site, monkeypatch)
    first = producer.send("u", row=row("a"))
    site.advance_ms(30)
    producer.send("u", row=row("b"))

    assert step(producer) == 20
    site.advance_ms(20)
    assert step(producer) is None

    assert accounts(site, "u") == ["a", "b"]
    assert first.offset == 0


def test_append_of_unknown_outcome_is_repeated_in_the_background_and_happens_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = lingering(site, monkeypatch)
    metadata = producer.send("u", row=row("a"))
    site.advance_ms(50)
    store = producer._coordinator._transactions.context.store
    log = "u/_segments/_delta_log"
    store.plan = (  # type: ignore[attr-defined]
        on(Operation.PUT_IF_ABSENT, log, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, log, Fault.FAIL_BEFORE, occurrence=None),
    )

    assert step(producer) == RETRY_MS
    with pytest.raises(CommitStateUnknownError):
        producer.send("u", row=row("refused"))
    store.plan = ()  # type: ignore[attr-defined]
    assert step(producer) is None

    assert accounts(site, "u") == ["a"]
    assert metadata.offset == 0


def test_refusal_in_the_background_fails_its_records_and_is_raised_by_the_next_call(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = lingering(site, monkeypatch)
    metadata = producer.send("u", row=row("a"))
    site.open().admin().delete_topic("u")
    site.advance_ms(50)

    assert step(producer) is None

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send("t", row=row("refused"))
    with pytest.raises(UnknownTopicOrPartitionError):
        _ = metadata.offset
    with producer:
        producer.send("t", row=row("b"))
    assert accounts(site, "t") == ["b"]


def test_failure_in_the_background_is_raised_by_close_and_the_producer_is_closed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = lingering(site, monkeypatch)
    producer.send("u", row=row("a"))
    site.open().admin().delete_topic("u")
    site.advance_ms(50)
    step(producer)

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.close()

    assert producer.state == "CLOSED"


def test_producer_with_a_thread_sends_what_waits(site: Site) -> None:
    delivered = threading.Event()
    with site.open().producer(linger_ms=0) as producer:
        producer.send("u", row=row("a"), on_delivery=lambda metadata, error: delivered.set())
        assert delivered.wait(timeout=60)

    assert len(published(site.open(), "u")) == 1


def test_closed_producer_flushes_nothing_in_the_background(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = lingering(site, monkeypatch)
    producer.send("u", row=row("a"))
    producer.close()
    site.advance_ms(50)
    before = len(store_of(site.open()).steps)

    assert step(producer) is None
    assert len(store_of(site.open()).steps) == before
