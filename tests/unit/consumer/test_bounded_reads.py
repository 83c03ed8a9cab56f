"""Bounded reads: from what the group has committed to the end, pinned by the call."""

from __future__ import annotations

import re

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import commit, poll_all, send
from tests.unit.consumer.members import BEAT_MS, GROUP, RAW, copier, member, numbers, offset_of, settle
from tests.unit.producer.producing import started
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.errors import IllegalStateError, InvalidConfigError, InvalidRequestError, OffsetOutOfRangeError

FIRST, SECOND = RAW


def read(consumer: Consumer, topic: str | None = None, most: int | None = None) -> list[str]:
    rows = consumer.read_arrow(topic, max_offsets_per_partition=most).read_all().to_pylist()
    return [row["value"].decode() for row in rows]


def test_range_is_pinned_by_the_call(site: Site) -> None:
    producer, consumer = site.open().producer(), member(site)
    send(producer, "a", "b")

    records = consumer.read_arrow()
    send(producer, "later")

    assert [row["value"] for row in records.read_all().to_pylist()] == [b"a", b"b"]
    assert consumer.ranges() == {FIRST: (0, 2), SECOND: (0, 0)}
    assert consumer.position(FIRST) == 2


def test_range_that_was_not_committed_is_read_again_and_then_the_next_one(site: Site) -> None:
    producer, consumer = site.open().producer(), member(site)
    send(producer, "a", "b")
    assert read(consumer) == read(consumer) == ["a", "b"]

    consumer.commit()
    send(producer, "c")

    assert consumer.ranges() == {}
    assert read(consumer) == ["c"]


def test_range_ends_at_the_last_stable_offset(site: Site) -> None:
    warehouse = site.open()
    commit(started(warehouse, "done"), "a")
    waiting = started(site.open(), "waiting")
    waiting.begin_transaction()
    send(waiting, "open")
    send(warehouse.producer(), "behind")
    consumer = member(site)

    assert read(consumer) == ["a"]
    consumer.commit()
    waiting.commit_transaction()

    assert read(consumer) == ["open", "behind"]


def test_range_has_at_most_so_many_offsets_of_each_partition(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    send(site.open().producer(), "x", partition=1)
    consumer = member(site)

    assert read(consumer, most=2) == ["a", "b", "x"]
    consumer.commit()
    assert read(consumer, most=2) == ["c"]


@pytest.mark.parametrize("most", [0, True, "1"])
def test_bound_that_is_none_is_refused(site: Site, most: object) -> None:
    with pytest.raises(InvalidRequestError, match="max_offsets_per_partition"):
        member(site).read_arrow(max_offsets_per_partition=most)  # type: ignore[arg-type]


def test_only_the_partitions_of_this_member_are_read(site: Site) -> None:
    for partition in (0, 1):
        send(site.open().producer(), f"in {partition}", partition=partition)
    first, second = member(site), member(site)
    settle(site, first, second)

    found = [read(each) for each in (first, second)]

    assert found == [[f"in {number}" for number in numbers(each)] for each in (first, second)]


def test_empty_range_is_empty_and_leaves_nothing_to_commit(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    consumer.commit(dict.fromkeys(RAW, 0))

    assert read(consumer) == []
    assert consumer.ranges() == {}


def test_beginning_at_the_end_is_there_to_be_committed_so_that_the_next_run_begins_there(site: Site) -> None:
    send(site.open().producer(), "old")
    first = member(site, auto_offset_reset="latest")
    assert read(first) == []
    first.commit()
    first.close()
    send(site.open().producer(), "new")

    assert read(member(site, auto_offset_reset="latest")) == ["new"]


def test_partition_in_which_nothing_was_is_committed_so_that_another_policy_misses_nothing(site: Site) -> None:
    first = member(site)
    assert read(first) == []
    first.commit()
    first.close()
    send(site.open().producer(), "new")

    assert read(member(site, auto_offset_reset="latest")) == ["new"]


def test_committed_offset_that_is_beyond_the_end_is_reset(site: Site) -> None:
    send(site.open().producer(), "a")
    consumer = member(site)
    consumer.poll()
    consumer.commit({FIRST: 99})

    assert read(consumer) == ["a"]
    consumer.commit()
    assert offset_of(consumer, FIRST) == 1


def test_range_without_an_offset_to_begin_at_is_an_error_when_the_reset_is_none(site: Site) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        read(member(site, auto_offset_reset="none"))


def test_seek_chooses_where_the_next_range_begins(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = member(site)
    read(consumer)
    consumer.commit()

    consumer.seek(FIRST, 1)

    assert read(consumer) == ["b", "c"]
    consumer.commit()
    assert read(consumer) == []


def test_several_topics_are_read_one_by_one_and_committed_together(site: Site) -> None:
    send(site.open().producer(), "a")
    with site.open().producer() as plain:
        plain.send("u", row={"account": "x", "amount": 1})
    consumer, producer = member(site, subscribed=False), copier(site)
    consumer.subscribe(["raw", "u"])
    with pytest.raises(IllegalStateError, match="name one"):
        read(consumer)

    with producer.transaction() as txn:
        assert read(consumer, "raw") == ["a"]
        assert consumer.read_arrow("u", columns=["account"]).read_all().to_pylist() == [{"account": "x"}]
        txn.send_offsets(consumer)

    assert {
        each: offset.offset for each, offset in consumer.committed(list(consumer.assignment())).items() if offset
    } == {
        ("raw", 0): 1,
        ("raw", 1): 0,
        ("u", 0): 1,
    }


def test_topic_that_is_not_read_is_refused(site: Site) -> None:
    with pytest.raises(IllegalStateError, match="subscribed to or assigned"):
        read(member(site), "u")


def test_bounded_read_is_never_committed_by_itself(site: Site) -> None:
    send(site.open().producer(), "a")
    consumer = member(site, enable_auto_commit=True)
    read(consumer)
    site.advance_ms(10_000)
    consumer.poll()
    consumer.close()

    assert poll_all(member(site)) == ["a"]


@pytest.mark.parametrize("asked", [{}, {"timeout_ms": 120_000}])
def test_read_waits_for_the_partitions_of_a_member_that_died(site: Site, asked: dict[str, float]) -> None:
    send(site.open().producer(), "a")
    member(site).poll()
    warehouse = site.open()
    consumer = member(warehouse)
    assert consumer.read_arrow(timeout_ms=0).read_all().num_rows == 0
    # What this process waits is everyone's time.
    warehouse.context.environment.sleep_ms = site.advance_ms  # type: ignore[method-assign,assignment]

    assert consumer.read_arrow(**asked).read_all().num_rows == 1  # type: ignore[arg-type]


def test_read_tells_which_partitions_it_is_without_when_a_living_member_keeps_them(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    send(site.open().producer(), "a")
    other = member(site)
    other.poll()
    warehouse = site.open()
    consumer = member(warehouse)

    def wait(milliseconds: float) -> None:
        site.advance_ms(round(milliseconds))
        membership = other._session._place.membership
        assert membership is not None
        membership.tend_in_background()

    warehouse.context.environment.sleep_ms = wait  # type: ignore[method-assign]

    assert consumer.read_arrow().read_all().num_rows == 0
    (told,) = [record.getMessage() for record in caplog.records if "is without partitions" in record.getMessage()]
    assert re.search(rf"group={GROUP} partitions=\w+-[01]$", told)


def test_consumer_without_a_group_reads_from_its_positions(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    consumer = site.open().consumer(auto_offset_reset="earliest")
    consumer.assign([FIRST])
    consumer.poll(max_records=1)

    assert read(consumer) == ["b"]
    assert consumer.ranges() == {}
    assert read(consumer) == []


def test_heartbeats_are_not_lost_over_reads(site: Site) -> None:
    consumer = member(site)
    for _ in range(30):
        read(consumer)
        site.advance_ms(BEAT_MS)
    other = member(site)
    other.poll()

    assert numbers(consumer) == [0, 1]
    assert numbers(other) == []


def test_dataframes_need_spark() -> None:
    with pytest.raises(InvalidConfigError, match="read_arrow"):
        ConsumerConfig().read_dataframe(None, None, {}, {})
