"""A compaction's run: what it reports, writes in a dry run, and does when something fails."""

from __future__ import annotations

import pytest

from compaction.compactor import CompactionOptions, compact
from compaction.spec import TopicReport
from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.errors import InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.testing.fault_plan import WRITES, Fault, Operation, on
from txntable.testing.stepping_store import SteppingStore
from txntable.warehouse import Warehouse

HOUR_MS = 3_600_000
TOPICS = ("one", "two")


@pytest.fixture
def site() -> Site:
    """Two topics of one partition: six committed segments, one aborted, in each; old enough."""
    site = Site()
    warehouse = site.create()
    for topic in TOPICS:
        warehouse.admin().create_topic(topic, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for number in range(6):
        with producer.transaction() as transaction:
            for topic in TOPICS:
                transaction.send(topic, row={"account": str(number), "amount": number})
    producer.begin_transaction()
    for topic in TOPICS:
        producer.send(topic, row={"account": "never", "amount": 0})
    producer.flush()
    producer.abort_transaction()
    site.advance_ms(2 * HOUR_MS)
    return site


def data_rows(warehouse: Warehouse, topic: str) -> int:
    files = warehouse.topic_log(topic).segments.refresh().files
    return sum(add.partition_values["_control"] is None for add in files)


def test_report_says_what_was_done(site: Site) -> None:
    size = sum(add.size for add in site.open().topic_log("one").public.refresh().files)

    (report,) = compact(site.open(), ["one"])

    (left,) = site.open().topic_log("one").public.refresh().files
    assert report == TopicReport(
        "one",
        merged_segments=6,
        written_segments=1,
        read_bytes=size,
        written_bytes=left.size,
        aborted_segments=1,
    )
    assert [row["account"] for row in published(site.open(), "one")] == [str(number) for number in range(6)]


def test_all_topics_are_compacted_when_none_is_named_and_only_those_that_are(site: Site) -> None:
    assert [report.topic for report in compact(site.open(), ["two"])] == ["two"]
    assert (data_rows(site.open(), "one"), data_rows(site.open(), "two")) == (7, 1)

    assert [report.topic for report in compact(site.open())] == ["one", "two"]
    assert data_rows(site.open(), "one") == 1


def test_second_run_has_nothing_to_do_and_writes_nothing(site: Site) -> None:
    compact(site.open())
    warehouse = site.open()
    assert isinstance(warehouse.store, SteppingStore)

    reports = compact(warehouse)

    assert reports == [TopicReport("one"), TopicReport("two")]
    assert [step.path for step in warehouse.store.steps if step.operation in WRITES] == ["system/clock"]


def test_dry_run_says_what_would_be_done_and_writes_nothing(site: Site) -> None:
    warehouse = site.open()
    assert isinstance(warehouse.store, SteppingStore)

    (report,) = compact(warehouse, ["one"], execute=False)

    assert (report.merged_segments, report.aborted_segments, report.settled_segments) == (6, 1, 0)
    assert report.read_bytes > 0
    assert (report.written_segments, report.written_bytes) == (0, 0)
    assert {step.path for step in warehouse.store.steps if step.operation in WRITES} <= {"system/clock"}
    assert data_rows(site.open(), "one") == 7


def test_progress_tells_bytes_of_all_and_ends_with_all(site: Site) -> None:
    told: list[tuple[str, int, int]] = []

    compact(site.open(), ["one"], progress=lambda *what: told.append(what))

    assert told
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == told[-1][2]


def test_what_fails_in_one_topic_does_not_stop_the_others(site: Site) -> None:
    damaged = next(iter(site.open().topic_log("one").public.refresh().files))
    site.objects.delete(f"topics/one/{damaged.path}")

    first, second = compact(site.open())

    assert damaged.path.removeprefix("_segments/") in " ".join(first.failures)
    assert (first.merged_segments, second.merged_segments, second.failures) == (0, 6, ())


def test_store_that_can_not_be_reached_for_a_while_is_a_failure_and_the_next_run_does_it(site: Site) -> None:
    before = published(site.open(), "one")
    broken = site.open(on(Operation.PUT_IF_ABSENT, "one/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None))

    (report,) = compact(broken, ["one"])

    assert len(report.failures) == 1
    assert published(site.open(), "one") == before
    assert compact(site.open(), ["one"])[0].merged_segments == 6
    assert published(site.open(), "one") == before


@pytest.mark.parametrize("commit_bytes", [1, 2_000, 1 << 30])
def test_however_much_is_registered_at_once_the_result_is_the_same(site: Site, commit_bytes: int) -> None:
    compact(site.open(), options=CompactionOptions(commit_bytes=commit_bytes))

    for topic in TOPICS:
        assert [row["amount"] for row in published(site.open(), topic)] == list(range(6))


@pytest.mark.parametrize(("memory_bytes", "commit_bytes"), [(0, 1), (1, 0), (-5, 1)])
def test_options_that_are_not_positive_are_refused(memory_bytes: int, commit_bytes: int) -> None:
    with pytest.raises(InvalidRequestError, match="at least 1"):
        CompactionOptions(memory_bytes=memory_bytes, commit_bytes=commit_bytes)


@pytest.mark.parametrize(("topics", "error"), [(["none"], UnknownTopicOrPartitionError), ("one", InvalidRequestError)])
def test_topic_that_there_is_not_is_an_error_before_anything_is_done(
    site: Site, topics: list[str], error: type[TxnTableError]
) -> None:
    with pytest.raises(error):
        compact(site.open(), topics)

    assert data_rows(site.open(), "one") == 7
