"""Many small segments are read in few round trips, in their order, whoever reads them."""

from __future__ import annotations

import pytest

from tests.doubles.round_trip_store import RoundTripStore
from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, consumer_at, values
from txntable.compaction.latest import LatestRecords
from txntable.compaction.spec import KeyCleaning, RewriteTask
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.spark.datasource import pinned_read
from txntable.spark.datasource.pinned_read import PinnedRead
from txntable.spark.scan.offset_bounds import OffsetBounds
from txntable.warehouse.warehouse import Warehouse, open_on

SEGMENTS = 150
MOST = 15
"""Round trips of a process that has not read anything before."""


@pytest.fixture(scope="module")
def site() -> Site:
    """A topic ``raw`` with 150 segments in its first partition, whose logs are maintained."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("raw", partitions=2)
    with warehouse.producer() as producer:
        for number in range(SEGMENTS):
            producer.send("raw", value=f"{number}".encode(), partition=0)
            producer.flush()
    warehouse.coordinator().run_once()
    return site


EXPECTED = [f"{number}" for number in range(SEGMENTS)]


def opened(site: Site) -> tuple[Warehouse, RoundTripStore]:
    store = RoundTripStore(site.objects)
    warehouse = open_on(store, site.environment())
    store.expect(SEGMENTS)
    return warehouse, store


@pytest.mark.parametrize("level", IsolationLevel)
def test_read_of_small_segments_makes_fifteen_round_trips_at_most(site: Site, level: IsolationLevel) -> None:
    warehouse, store = opened(site)

    found = warehouse.read_arrow("raw", isolation_level=level).read_all()

    assert [value.decode() for value in found["value"].to_pylist()] == EXPECTED
    assert store.round_trips <= MOST


def test_second_read_makes_seven_round_trips(site: Site) -> None:
    """T, then P and the end of S at once, then five times 32 segments."""
    warehouse, store = opened(site)
    warehouse.read_arrow("raw").read_all()
    store.expect(SEGMENTS)

    warehouse.read_arrow("raw").read_all()

    assert store.round_trips == 7


def test_polls_of_small_segments_make_fifteen_round_trips_at_most(site: Site) -> None:
    warehouse, store = opened(site)
    consumer = consumer_at(warehouse, FIRST, prefetch=True)

    found: list[str] = []
    while len(found) < SEGMENTS:
        found += values(consumer.poll())
    consumer.close()

    assert found == EXPECTED
    assert store.round_trips <= MOST


def test_polls_of_many_partitions_with_a_segment_each_ask_for_32_at_once() -> None:
    """Of a lone segment nothing is fetched ahead: whoever decodes it asks for it."""
    site, partitions = Site(), 96
    warehouse = site.create()
    warehouse.admin().create_topic("wide", partitions=partitions)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            for number in range(partitions):
                transaction.send("wide", value=b"v", partition=number)
    store = RoundTripStore(site.objects)
    opened = open_on(store, site.environment())
    consumer = consumer_at(opened, *(TopicPartition("wide", each) for each in range(partitions)), prefetch=True)
    store.expect(partitions)

    found = 0
    while found < partitions:
        found += len(values(consumer.poll()))
    consumer.close()

    assert store.round_trips <= MOST


def test_data_source_reads_small_segments_in_five_round_trips(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse, store = opened(site)
    view = warehouse.snapshot().view("raw")
    monkeypatch.setattr(pinned_read, "opened", lambda spec: store)
    level, ranges = IsolationLevel.SNAPSHOT, {0: OffsetBounds(0, SEGMENTS)}
    pinned = PinnedRead(store.spec, view.settings, level, view.position, view.root, ranges, ("value",), 1 << 30)
    store.expect(SEGMENTS)

    found = [value.decode() for batch in pinned.read(view.plan()) for value in batch.column("value").to_pylist()]

    assert found == EXPECTED
    assert store.round_trips == 5


@pytest.mark.parametrize("by_key", [False, True])
def test_compaction_reads_small_segments_in_five_round_trips(site: Site, by_key: bool) -> None:
    copy = site.copy()
    warehouse, store = opened(copy)
    view = warehouse.topic_reader("raw").view(IsolationLevel.READ_UNCOMMITTED)
    sources = tuple(view.plan())
    plan = SegmentPlan(view.root, view.settings, None, 77)
    store.expect(SEGMENTS)

    if by_key:
        cleaning = KeyCleaning(SEGMENTS, 0, frozenset(), 1 << 30)
        latest = LatestRecords(store, plan, RewriteTask(0, sources, cleaning))
        latest.find()
        assert latest.read_records == SEGMENTS
    else:
        (output,) = rewrite_segments(store, RewritePlan(plan, 1 << 30, copy.environment().new_id), sources)
        assert (output.base_offset, output.last_offset) == (0, SEGMENTS - 1)

    assert store.round_trips == 5
