"""Polls that wait for so many records: what comes meanwhile, and what ends the wait early."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.simulation.site import Site
from tests.unit.consumer.consuming import consumer_at, poll_all, send, values
from tests.unit.consumer.members import BEAT_MS, RAW, Told, member, numbers, offset_of, settle
from txntable.errors import InvalidRequestError, StoreUnavailableError

FIRST, SECOND = RAW


def while_it_waits(site: Site, monkeypatch: pytest.MonkeyPatch, does: Callable[[int], None]) -> list[float]:
    """Let something be done each time that a poll waits, by the number of the time; return how long each was."""
    waits: list[float] = []

    def sleep_ms(_: object, milliseconds: float) -> None:
        waits.append(milliseconds)
        site.advance_ms(max(1, round(milliseconds)))
        does(len(waits))

    monkeypatch.setattr(ManualEnvironment, "sleep_ms", sleep_ms)
    return waits


def test_poll_waits_until_there_are_so_many_records(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    producer, consumer = site.open().producer(), consumer_at(site.open(), FIRST, SECOND)
    waits = while_it_waits(site, monkeypatch, lambda time: send(producer, f"{time}", partition=time % 2))

    found = consumer.poll(timeout_ms=60_000, max_records=10, min_records=4)

    assert sorted(values(found)) == ["1", "2", "3", "4"]
    assert len(waits) == 4
    assert consumer.positions() == {FIRST: 2, SECOND: 2}


def test_poll_returns_what_there_is_when_its_time_is_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    producer, consumer = site.open().producer(), consumer_at(site.open())
    waits = while_it_waits(site, monkeypatch, lambda time: send(producer, "a") if time == 1 else None)

    assert values(consumer.poll(timeout_ms=3_000, min_records=4)) == ["a"]
    assert sum(waits) == 3_000
    assert consumer.poll(timeout_ms=1_000, min_records=4) == {}


def test_poll_does_not_wait_for_more_than_the_most_records(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = consumer_at(site.open())
    waits = while_it_waits(site, monkeypatch, lambda _: None)

    assert values(consumer.poll(timeout_ms=9_000, max_records=2, min_records=50)) == ["a", "b"]
    assert values(consumer.poll(timeout_ms=0, max_records=2, min_records=2)) == ["c"]
    assert waits == []
    with pytest.raises(InvalidRequestError):
        consumer.poll(min_records=0)


def test_nothing_is_committed_of_what_a_poll_that_waits_has_not_returned(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(site.open().producer(), "a", "b")
    consumer = member(site.open(), enable_auto_commit=True, auto_commit_interval_ms=1_000)
    committed: list[int | None] = []
    while_it_waits(site, monkeypatch, lambda _: committed.append(offset_of(consumer, FIRST)))

    assert values(consumer.poll(timeout_ms=5_000, min_records=9)) == ["a", "b"]
    assert set(committed) <= {None, 0}
    site.advance_ms(1_000)
    consumer.poll()
    assert offset_of(consumer, FIRST) == 2


def test_poll_that_waits_keeps_nothing_of_a_partition_that_is_revoked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = site.open().producer()
    for partition in (0, 1):
        send(producer, f"{partition}-a", f"{partition}-b", partition=partition)
    told, first, second = Told(), member(site, subscribed=False), member(site)
    first.subscribe(["raw"], listener=told)
    first.poll(max_records=1)
    first.seek_to_beginning()

    def rebalance(time: int) -> None:
        if time == 1:
            second.poll()
        site.advance_ms(BEAT_MS)

    while_it_waits(site, monkeypatch, rebalance)
    found = first.poll(timeout_ms=600_000, min_records=50)

    assert ("revoked", [partition for partition in (0, 1) if partition not in numbers(first)]) in told.calls
    assert {each.partition for each in found} == set(numbers(first))
    settle(site, first, second)
    assert sorted([*values(found), *poll_all(first), *poll_all(second)]) == ["0-a", "0-b", "1-a", "1-b"]


def test_offsets_of_what_a_poll_gathered_are_a_transactions(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    consumer = member(site.open())

    consumer.poll(timeout_ms=200, min_records=9)

    assert {each: new.offset for each, new in consumer.offsets_to_send().offsets.items()} == {("raw", 0): 2}


def test_poll_that_waits_returns_what_it_has_before_an_error_which_the_next_one_raises(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(site.open().producer(), "a", "b")
    consumer = consumer_at(site.open())

    def fails(*_: object) -> None:
        raise StoreUnavailableError("the store failed")

    while_it_waits(site, monkeypatch, lambda _: monkeypatch.setattr(consumer._session, "tend", fails))

    assert values(consumer.poll(timeout_ms=2_000, min_records=9)) == ["a", "b"]
    with pytest.raises(StoreUnavailableError):
        consumer.poll()


def test_no_record_is_lost_when_a_poll_that_waits_is_interrupted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    send(site.open().producer(), "a", "b")
    consumer = consumer_at(site.open())

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        while_it_waits(site, patch, interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(timeout_ms=2_000, min_records=9)

    assert consumer.position(FIRST) == 0
    assert poll_all(consumer) == ["a", "b"]
