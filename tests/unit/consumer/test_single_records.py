"""Polls of one record each: some are decoded at a time, and nobody sees that."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import abort, commit, consumer_at, send, values
from tests.unit.consumer.members import BEAT_MS, RAW, member, offset_of, settle
from txntable.consumer.consumer import Consumer

FIRST, SECOND = RAW


def one(consumer: Consumer) -> str | None:
    return next(iter(values(consumer.poll(max_records=1))), None)


@pytest.fixture
def filled(site: Site) -> Site:
    """Ten records in each of two partitions."""
    producer = site.open().producer()
    for partition in (0, 1):
        send(producer, *(f"{partition}-{number}" for number in range(10)), partition=partition)
    return site


def test_position_is_the_next_records_when_polls_return_one_record(filled: Site) -> None:
    consumer = consumer_at(filled.open())

    assert [(one(consumer), consumer.position(FIRST)) for _ in range(10)] == [(f"0-{n}", n + 1) for n in range(10)]
    assert one(consumer) is None


def test_polls_of_one_record_and_of_more_take_turns_without_a_gap(filled: Site) -> None:
    consumer = consumer_at(filled.open())

    found = [one(consumer), one(consumer), *values(consumer.poll(max_records=3)), one(consumer)]
    batch = consumer.poll_batches(max_records=2)[FIRST]

    assert found == [f"0-{n}" for n in range(6)]
    assert batch.column("value").to_pylist() == [b"0-6", b"0-7"]
    assert [one(consumer), one(consumer), one(consumer)] == ["0-8", "0-9", None]


def test_polls_of_one_record_show_no_aborted_record_and_pass_the_markers(site: Site) -> None:
    producer = site.open().producer("t")
    producer.init_transactions()
    commit(producer, "a", "b")
    abort(producer, "x", "y")
    commit(producer, "c")
    consumer = consumer_at(site.open())

    assert [one(consumer) for _ in range(4)] == ["a", "b", "c", None]
    assert consumer.position(FIRST) == consumer.end_offsets([FIRST])[FIRST]


def test_poll_of_one_record_begins_where_the_user_seeks_to(filled: Site) -> None:
    consumer = consumer_at(filled.open())
    assert [one(consumer), one(consumer)] == ["0-0", "0-1"]

    consumer.seek(FIRST, 7)
    assert [one(consumer), one(consumer)] == ["0-7", "0-8"]
    consumer.seek_to_beginning(FIRST)

    assert [one(consumer), one(consumer)] == ["0-0", "0-1"]


def test_poll_of_one_record_returns_none_of_a_paused_partition_until_it_is_resumed(filled: Site) -> None:
    consumer = consumer_at(filled.open())
    assert [one(consumer), one(consumer)] == ["0-0", "0-1"]

    consumer.pause(FIRST)
    assert one(consumer) is None
    consumer.resume(FIRST)

    assert one(consumer) == "0-2"


def test_poll_of_one_record_returns_none_of_a_partition_that_is_not_assigned_any_more(filled: Site) -> None:
    consumer = consumer_at(filled.open())
    assert [one(consumer), one(consumer)] == ["0-0", "0-1"]

    consumer.assign([SECOND])

    assert [one(consumer) for _ in range(11)] == [*(f"1-{n}" for n in range(10)), None]


def test_only_records_that_were_handed_out_are_committed_when_polls_return_one(filled: Site) -> None:
    consumer = member(filled.open(), enable_auto_commit=True, auto_commit_interval_ms=5_000)
    found = [one(consumer) for _ in range(4)]
    before = {each: sum(str(value).startswith(f"{each.partition}-") for value in found) for each in RAW}

    filled.advance_ms(5_000)
    consumer.poll(max_records=1)

    assert {each: offset_of(consumer, each) or 0 for each in RAW} == before
    consumer.commit()
    assert {each: offset_of(consumer, each) or 0 for each in RAW} == consumer.positions()


def test_member_reads_what_another_gave_up_from_what_was_committed_when_polls_return_one(filled: Site) -> None:
    first, second = member(filled), member(filled)
    first.poll(max_records=1)
    first.poll(max_records=1)
    first.commit()
    settle(filled, first, second)

    found = []
    for _ in range(40):
        filled.advance_ms(BEAT_MS // 10)
        found += [one(first), one(second)]

    kept = sorted(value for value in found if value is not None)
    assert len(kept) == 18
    assert len(set(kept)) == 18


def test_metrics_count_single_records_as_those_of_one_poll(filled: Site) -> None:
    several, single = consumer_at(filled.open()), consumer_at(filled.open())
    several.poll()
    for _ in range(10):
        one(single)

    counted = [each.metrics()["consumer-fetch-manager-metrics"] for each in (several, single)]

    assert [each["records-consumed-total"] for each in counted] == [10, 10]
    assert counted[1]["bytes-consumed-total"] > 0


@pytest.mark.parametrize("polls", [0, 1, 4])
def test_no_single_record_is_lost_when_a_poll_is_interrupted(
    filled: Site, monkeypatch: pytest.MonkeyPatch, polls: int
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    consumer = consumer_at(filled.open())
    found = [one(consumer) for _ in range(polls)]
    for place in ("single_records.records_of", "polls.Polls._count"):
        with monkeypatch.context() as patch:
            patch.setattr(f"txntable.consumer.{place}", interrupted)
            try:
                found.append(one(consumer))
            except KeyboardInterrupt:
                continue

    assert [*found, *(one(consumer) for _ in range(10 - len(found)))] == [f"0-{n}" for n in range(10)]


def test_heartbeat_thread_is_woken_by_a_new_session_and_not_by_every_poll(
    filled: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = member(filled.open(), background_heartbeat=True)
    heartbeats = consumer._session.heartbeats
    assert heartbeats is not None
    woken: list[int] = []
    monkeypatch.setattr(type(heartbeats), "is_running", True)
    monkeypatch.setattr(heartbeats, "wake", lambda: woken.append(1))

    for _ in range(5):
        consumer.poll(max_records=1)
    assert len(woken) == 1
    consumer.unsubscribe()
    consumer.subscribe(["raw"])
    consumer.poll(max_records=1)

    assert len(woken) == 2
