"""A compaction's run: what it reports, writes in a dry run, and does when something fails."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from tests.doubles.fault_plan import WRITES, Fault, Operation, on
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.compaction.compactor import CompactionOptions, compact
from txntable.compaction.rewriter import TopicWork
from txntable.compaction.spec import RewriteResult, RewriteTask, TopicReport
from txntable.errors import InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.partition.rewriting import Rewrite, RewriteRequest
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.warehouse.warehouse import Warehouse, open_on

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
    assert (report.written_segments, report.written_bytes, report.dropped_records) == (None, None, None)
    assert {step.path for step in warehouse.store.steps if step.operation in WRITES} <= {"system/clock"}
    assert data_rows(site.open(), "one") == 7


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("policy", "kept"), [("delete", 0), ("delete", 1), ("delete", 3), ("compact,delete", 0)])
def test_dry_run_counts_what_expires_as_gone_before_the_rest_is_merged(
    site: Site, policy: str, kept: int, is_open: bool
) -> None:
    site.advance_ms(48 * HOUR_MS)
    admin = site.open().admin()
    admin.create_topic("three", schema=TWO_COLUMNS, key=["account"], config={"min.cleanable.dirty.ratio": "0"})
    if is_open:
        silent = site.open().producer("silent")
        silent.init_transactions()
        silent.begin_transaction()
        silent.send("three", row={"account": "never", "amount": 0})
        silent.flush()
    producer = site.open().producer("late")
    producer.init_transactions()
    for age in (0, 1):
        for number in range(kept if age else 2):
            with producer.transaction() as transaction:
                transaction.send("three", row={"account": str(number), "amount": age})
        site.advance_ms(12 * HOUR_MS)
    admin.alter_configs("three", {"cleanup.policy": policy, "retention.ms": str(20 * HOUR_MS)})

    (told,) = compact(site.open(), ["three"], execute=False)
    (done,) = compact(site.open(), ["three"])

    assert told.expired_segments > 0
    assert (told.expired_segments, told.merged_segments, told.read_bytes, told.aborted_segments) == (
        done.expired_segments,
        done.merged_segments,
        done.read_bytes,
        done.aborted_segments,
    )


def test_dry_run_needs_no_permission_to_write(site: Site) -> None:
    """By this machine's clock then, which the fixture has moved on with the store's."""
    warehouse = open_on(ReadOnlyStore(site.store()), site.environments[0])

    (report,) = compact(warehouse, ["one"], execute=False)

    assert (report.merged_segments, report.aborted_segments, report.failures) == (6, 1, ())


def test_topic_that_is_named_twice_is_compacted_once(site: Site) -> None:
    assert [report.merged_segments for report in compact(site.open(), ["one", "one"])] == [6]


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


@pytest.mark.parametrize("execute", [True, False])
def test_topic_whose_log_can_not_be_read_does_not_stop_the_others(site: Site, execute: bool) -> None:
    site.objects.put("topics/one/_segments/_delta_log/00000000000000000002.json", b"{")

    first, second = compact(site.open(), execute=execute)

    assert [first.topic, second.topic] == ["one", "two"]
    assert ["00000000000000000002.json" in failure for failure in first.failures] == [True]
    assert (second.merged_segments, second.failures) == (6, ())


@pytest.mark.parametrize("execute", [True, False])
def test_topic_that_was_deleted_has_no_report(site: Site, execute: bool) -> None:
    site.open().admin().delete_topic("one")

    assert [report.topic for report in compact(site.open(), execute=execute)] == ["two"]


@pytest.mark.parametrize("config", [{}, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}])
def test_damaged_segment_holds_back_its_own_partition_and_leaves_no_file_behind_with_each_run(
    config: dict[str, object],
) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("one", partitions=3, schema=TWO_COLUMNS, key=["account"], config=config)
    with warehouse.producer() as producer:
        for number in range(4):
            for partition in range(3):
                producer.send("one", row={"account": "a", "amount": number}, partition=partition)
            producer.flush()
    damaged = next(
        add for add in warehouse.topic_log("one").public.refresh().files if add.partition_values["_partition"] == "1"
    )
    site.objects.put(f"topics/one/{damaged.path}", b"x" * damaged.size)
    site.advance_ms(2 * HOUR_MS)

    (report,) = compact(site.open())
    objects = set(site.objects.snapshot())
    (again,) = compact(site.open())

    assert (report.merged_segments, again.merged_segments) == (8, 0)
    assert [damaged.path.removeprefix("_segments/") in failure for failure in report.failures] == [True]
    assert again.failures == report.failures
    assert set(site.objects.snapshot()) == objects


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


def test_tombstone_stays_when_the_value_that_it_ended_could_not_be_taken_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both go in one compaction, in two commits: where the first one loses a race, the second is not made."""
    monkeypatch.setattr("txntable.compaction.compactor._MOST_ROWS", 1)
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
    site.open().admin().create_topic("keys", schema=TWO_COLUMNS, key=["account"], config=config)
    put(site, "k", 1)
    put(site, "other", 2)
    put(site, "k", None)
    log = site.open().topic_log("keys")
    rows = sorted(log.segments.refresh().files, key=lambda add: add.partition_values["_base_offset"] or "")
    first, other, dead = (add.path for add in rows)

    def rewriter(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult]:
        # Somebody else wrote the old value anew meanwhile.
        plan = RewritePlan(work.segments, 1, site.environment().new_id)
        (source, *_) = tasks[0].sources
        outputs = tuple(rewrite_segments(site.store(), plan, [source]))
        request = RewriteRequest(work.segments.settings.topic_id, (Rewrite(0, (first,), outputs),))
        assert site.open().topic_log("keys").rewrite(request)
        yield RewriteResult(tuple(Rewrite(0, (path,), ()) for path in (first, other, dead)))

    site.advance_ms(2 * HOUR_MS)
    (report,) = compact(site.open(), ["keys"], rewriter=rewriter)

    assert report.lost == 3
    assert [row["amount"] for row in published(site.open(), "keys")] == [1, 2, None]


def put(site: Site, account: str, amount: int | None) -> None:
    with site.open().producer() as producer:
        producer.send("keys", row={"account": account, "amount": amount})
