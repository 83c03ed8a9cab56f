"""Compactions during which something else happens: settings change, records are deleted, or very much time passes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pytest

from tests.simulation.site import Site
from txntable.compaction.compactor import compact
from txntable.compaction.rewriter import Rewriter, TopicWork, rewriter_here
from txntable.compaction.spec import RewriteResult, RewriteTask
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
FIRST = TopicPartition("t", 0)


def values(warehouse: Warehouse) -> list[bytes]:
    return sorted(warehouse.read_arrow("t").read_all()["value"].to_pylist())


def with_two_values_of_a_key(site: Site, partitions: int = 1) -> None:
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    site.create().admin().create_topic("t", partitions=partitions, config=config)
    producer = site.open().producer()
    for value in (b"old", b"new"):
        for partition in range(partitions):
            producer.send("t", value, key=b"a", partition=partition)
        producer.flush()
    site.advance_ms(2 * HOUR_MS)


def doing(warehouse: Warehouse, meanwhile: Callable[[], None]) -> Rewriter:
    """Work on each task, and do something before its result is known."""
    here = rewriter_here(warehouse.context)

    def rewrite(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        for result in here(work, tasks):
            meanwhile()
            yield result

    return rewrite


@pytest.mark.parametrize(("policy", "left"), [("delete", [b"new", b"old"]), ("compact,delete", [b"new"])])
def test_no_record_is_dropped_when_the_topic_is_compacted_no_more_at_the_slot(policy: str, left: list[bytes]) -> None:
    site = Site()
    with_two_values_of_a_key(site)
    warehouse = site.open()

    def alter() -> None:
        site.open().admin().alter_configs("t", {"cleanup.policy": policy})

    (report,) = compact(warehouse, ["t"], rewriter=doing(warehouse, alter))

    assert values(site.open()) == left
    assert (report.lost > 0) == (policy == "delete")
    assert report.failures == ()


def test_rewrite_that_took_too_long_is_a_failure_and_the_next_run_does_it() -> None:
    site = Site()
    with_two_values_of_a_key(site)
    warehouse = site.open()

    slow = compact(warehouse, ["t"], rewriter=doing(warehouse, lambda: site.advance_ms(37 * HOUR_MS)))

    assert [report.failures for report in slow] == [("1 rewrites took longer than 36 hours: work on more cores",)]
    assert values(site.open()) == [b"new", b"old"]
    compact(site.open(), ["t"])
    assert values(site.open()) == [b"new"]


def test_tasks_of_a_run_that_takes_days_are_each_as_young_as_themselves() -> None:
    site = Site()
    with_two_values_of_a_key(site, partitions=3)
    warehouse = site.open()

    (report,) = compact(warehouse, ["t"], rewriter=doing(warehouse, lambda: site.advance_ms(20 * HOUR_MS)))

    assert (report.lost, report.failures) == (0, ())
    assert values(site.open()) == 3 * [b"new"]


def test_segment_that_a_deletion_cut_before_it_was_decided_is_trimmed_by_the_next_round() -> None:
    site = Site()
    site.create().admin().create_topic("t")
    producer = site.open().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(6):
        producer.send("t", b"%d" % number)
    producer.flush()
    site.open().admin().delete_records({FIRST: 3})
    producer.commit_transaction()

    compact(site.open())

    (shown,) = site.open().topic_log("t").public.refresh().files
    assert (shown.partition_values["_base_offset"], shown.partition_values["_last_offset"]) == ("3", "5")
    assert values(site.open()) == [b"3", b"4", b"5"]
