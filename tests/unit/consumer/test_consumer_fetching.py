"""Consumers: bounded memory, reading ahead, damaged segments, interruptions."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, SECOND, consumer_at, poll_all, send, values
from txntable.consumer import fetcher, partition_fetch
from txntable.consumer.fetcher import Fetcher
from txntable.consumer.partition_fetch import PartitionFetch, rows_at_once
from txntable.errors import DamagedDataError, StoreUnavailableError
from txntable.format.records import TopicPartition
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import SegmentReader
from txntable.warehouse.warehouse import Warehouse, open_on

SEGMENT = on(Operation.GET, "_segments/p", Fault.FAIL_BEFORE)


def segment(size: int, records: int | None, last_offset: int) -> PlannedSegment:
    return PlannedSegment(
        path="p",
        partition=0,
        base_offset=10,
        last_offset=last_offset,
        commit=1,
        size=size,
        records=records,
        start=0,
        end=99,
    )


def segment_paths(site: Site, partition: int) -> list[str]:
    return sorted(path for path in site.objects.snapshot() if f"_segments/p0000{partition}/" in path)


@pytest.fixture(params=[False, True], ids=["on demand", "ahead"])
def prefetch(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def memory_warehouse(site: Site) -> Warehouse:
    """A process whose store may be used by threads."""
    return open_on(MemoryStore(site.objects), site.environment())


# -- memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "records", "batch_bytes", "rows"),
    [
        (1_000, 100, 8_000, 100),
        (1_000, 100, 800, 10),
        (10_000_000, 2, 1_000, 1),
        (100, 10_000_000, 1 << 30, 128 * 1024),
        (1_000, None, 800, 10),
    ],
)
def test_records_decoded_at_once_follow_from_what_they_take(
    size: int, records: int | None, batch_bytes: int, rows: int
) -> None:
    assert rows_at_once(segment(size, records, 109), batch_bytes) == rows


def test_partition_is_decoded_piece_by_piece(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    send(site.open().producer(), *(f"{number:06d}" for number in range(2_000)))
    decoded: list[int] = []
    read_all = SegmentReader.read_all

    def counted(*asked: Any):
        for batch in read_all(*asked):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(SegmentReader, "read_all", counted)
    consumer = consumer_at(site.open(), max_partition_fetch_bytes=8 * 1024)

    assert len(values(consumer.poll(max_records=10))) == 10
    assert 0 < sum(decoded) < 500
    assert len(poll_all(consumer)) == 1_990
    assert len(decoded) > 4


def test_partitions_that_do_not_fit_into_memory_together_are_read_one_after_the_other(
    site: Site, prefetch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.open().admin().create_topic("wide", partitions=8)
    partitions = [TopicPartition("wide", number) for number in range(8)]
    producer = site.open().producer()
    for number in range(8):
        for part in "abc":
            send(producer, *(f"{number}{part}{each}" for each in range(20)), partition=number, topic="wide")
    held: list[int] = []
    collect = Fetcher.collect

    def counted(self: Fetcher, limit, decode, enough_bytes=None):
        found = collect(self, limit, decode, enough_bytes)
        held.append(sum(each.reserved_bytes for each in self._fetches.values()))
        return found

    monkeypatch.setattr(Fetcher, "collect", counted)
    monkeypatch.setattr(partition_fetch, "RUN_SEGMENTS", 2)
    monkeypatch.setattr(fetcher, "_TURN_BATCHES", 2)
    settings = {"max_partition_fetch_bytes": 1_000, "fetch_max_bytes": 10_000, "prefetch": prefetch}
    consumer = consumer_at(memory_warehouse(site), *partitions, **settings)

    found = [records for _ in range(300) for records in consumer.poll(max_records=7).items()]

    order: dict[TopicPartition, list[str]] = {partition: [] for partition in partitions}
    for partition, records in found:
        order[partition] += [(each.value or b"").decode() for each in records]
    assert order == {p: [f"{p.partition}{part}{each}" for part in "abc" for each in range(20)] for p in partitions}
    assert 0 < max(held) <= 10_000
    consumer.close()


def test_partition_that_waits_for_memory_gets_it_before_a_large_segment_is_at_its_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = site.open().producer()
    send(producer, *["first"] * 100)
    send(producer, "second", partition=1)
    monkeypatch.setattr(fetcher, "_TURN_BATCHES", 4)
    settings = {"max_partition_fetch_bytes": 100, "fetch_max_bytes": 100, "max_poll_records": 1}
    consumer = consumer_at(site.open(), FIRST, SECOND, **settings)

    found = [value for _ in range(12) for value in values(consumer.poll())]

    assert "second" in found
    assert len(found) == 12
    assert poll_all(consumer) == ["first"] * 89


def test_poll_stops_at_the_bytes_that_may_be_in_memory(site: Site) -> None:
    for _ in range(4):
        send(site.open().producer(), "x" * 1_000)
    consumer = consumer_at(site.open(), fetch_max_bytes=1_500)

    assert [len(values(consumer.poll())) for _ in range(3)] == [2, 2, 0]


# -- reading ahead --------------------------------------------------------------------------


def test_reading_ahead_returns_the_same_records_in_the_same_order(site: Site) -> None:
    producer = site.open().producer()
    for number in range(40):
        send(producer, f"{number:02d}a", f"{number:02d}b", partition=number % 2)
    warehouse = memory_warehouse(site)

    ahead, on_demand = (
        consumer_at(warehouse, FIRST, SECOND, prefetch=prefetch, max_poll_records=3) for prefetch in (True, False)
    )

    assert sorted(poll_all(ahead)) == sorted(poll_all(on_demand))
    for partition in (FIRST, SECOND):
        ahead.seek(partition, 0)
        ahead.pause(*({FIRST, SECOND} - {partition}))
        assert poll_all(ahead) == [f"{n:02d}{x}" for n in range(40) if n % 2 == partition.partition for x in "ab"]
        ahead.resume(FIRST, SECOND)
        ahead.seek_to_end()
    ahead.close()


def test_reading_ahead_is_off_where_a_store_does_not_gain_from_it(site: Site) -> None:
    assert consumer_at(site.open())._partitions._ahead is None


# -- damage and interruptions ---------------------------------------------------------------


def test_damaged_segment_is_an_error_each_time_until_it_is_passed_over(site: Site, prefetch: bool) -> None:
    producer = site.open().producer()
    for value in ("good", "bad", "after"):
        send(producer, value)
    log = site.open().topic_log("raw").public
    (path,) = [add.path for add in log.refresh().files if add.partition_values["_base_offset"] == "1"]
    site.objects.put(f"{log.root}/{path}", b"no parquet")
    consumer = consumer_at(memory_warehouse(site), prefetch=prefetch)

    assert values(consumer.poll()) == ["good"]
    for _ in range(3):
        with pytest.raises(DamagedDataError, match=f"base_offset=1|path=topics/raw/{path}"):
            consumer.poll()
        assert consumer.position(FIRST) == 1
    consumer.seek(FIRST, 2)
    assert values(consumer.poll()) == ["after"]
    consumer.close()


def test_damaged_partition_does_not_hold_another_back(site: Site, prefetch: bool) -> None:
    producer = site.open().producer()
    send(producer, "bad")
    send(producer, "good", "also good", partition=1)
    site.objects.delete(segment_paths(site, 0)[0])
    consumer = consumer_at(memory_warehouse(site), FIRST, SECOND, prefetch=prefetch)
    found, errors = [], 0

    for _ in range(6):
        try:
            found += values(consumer.poll(max_records=1))
        except DamagedDataError:
            errors += 1

    assert found == ["good", "also good"]
    assert errors >= 2
    assert (consumer.position(FIRST), consumer.position(SECOND)) == (0, 2)
    consumer.close()


def test_position_at_the_end_is_kept_while_another_partition_is_damaged(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "bad")
    send(producer, "old", partition=1)
    site.objects.delete(segment_paths(site, 0)[0])
    consumer = consumer_at(site.open(), FIRST, SECOND, auto_offset_reset="latest")
    consumer.seek(FIRST, 0)
    for _ in range(2):
        with pytest.raises(DamagedDataError):
            consumer.poll()

    send(producer, "new", partition=1)
    consumer.pause(FIRST)

    assert poll_all(consumer) == ["new"]


def test_no_record_is_lost_when_the_store_fails_once(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "a")
    send(producer, "b")
    consumer = consumer_at(site.open(SEGMENT))

    with pytest.raises(StoreUnavailableError):
        consumer.poll()

    assert poll_all(consumer) == ["a", "b"]


@pytest.mark.parametrize("place", ["reading", "decoding"])
def test_no_record_is_lost_when_a_poll_is_interrupted(site: Site, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    producer = site.open().producer()
    send(producer, "a", "b")
    send(producer, "c")
    consumer = consumer_at(site.open())
    assert values(consumer.poll(max_records=1)) == ["a"]

    with monkeypatch.context() as patch:
        _interrupt(patch, place)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll()

    assert poll_all(consumer) == ["b", "c"]


def _interrupt(patch: pytest.MonkeyPatch, place: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    if place == "reading":
        patch.setattr(SegmentReader, "_finished", interrupted)
    else:
        patch.setattr("txntable.consumer.polls.records_of", interrupted)


# -- many partitions ------------------------------------------------------------------------


@pytest.mark.parametrize("fetch_max_bytes", [50 * 1024 * 1024, 500_000], ids=["all fit", "some wait"])
def test_each_partition_is_planned_about_once_however_many_polls_read_a_wide_topic(
    site: Site, prefetch: bool, fetch_max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = _wide_topic(site, 100)
    planned: list[int] = []

    def counted(topic: Any, partition: int, *rest: Any) -> Any:
        planned.append(partition)
        return partition_fetch.next_fetch(topic, partition, *rest)

    monkeypatch.setattr(fetcher, "next_fetch", counted)
    consumer = consumer_at(memory_warehouse(site), *wide, prefetch=prefetch, fetch_max_bytes=fetch_max_bytes)

    found = [record for _ in range(120) for record in values(consumer.poll(max_records=1))]

    assert len(found) == 100
    # Where there is not enough room, each fetch that ends lets one more be tried.
    assert set(planned) == set(range(100))
    assert len(planned) <= 210
    consumer.close()


def test_many_small_segments_are_ahead_at_once_in_the_memory_of_a_few_large_ones(site: Site) -> None:
    wide = _wide_topic(site, 100)
    consumer = consumer_at(memory_warehouse(site), *wide, prefetch=True)

    assert len(values(consumer.poll(max_records=100))) == 100
    consumer.close()


@pytest.mark.parametrize(
    ("size", "records", "reserved"),
    [
        # A little file may hide a large record behind a dictionary: 64 KiB at least.
        (3_000, 1, 2 * 65_536 + 3_000),
        (3_000, None, 2 * 65_536 + 3_000),
        (10_000, 100, 2 * 182_400 + 10_000),
        (3_000, 10_000, 2_003_000),
        (1_000_000, 1, 3_000_000),
    ],
)
def test_fetch_reserves_less_than_two_batches_where_a_file_is_small_and_has_few_records(
    size: int, records: int | None, reserved: int
) -> None:
    given = segment(size, records, 19)
    assert PartitionFetch([given], cast("SegmentReader", FakeReader()), 20, 1_000_000, None).reserved_bytes == reserved


class FakeReader:
    """Opens nothing."""

    def read_all(self, *_: object) -> Any:
        return iter(())


def _wide_topic(site: Site, partitions: int) -> list[TopicPartition]:
    site.open().admin().create_topic("wide", partitions=partitions)
    producer = site.open().producer()
    for number in range(partitions):
        producer.send("wide", value=b"%d" % number, partition=number)
    producer.flush()
    return [TopicPartition("wide", number) for number in range(partitions)]
