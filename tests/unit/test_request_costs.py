"""The requests that operations make stay within their bounds, and ``infra/REQUESTS.md`` says what they are."""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import Any

import pytest

from benchmarks.request_costs import DOCUMENT, TABLES, dollars
from benchmarks.requests import Counted, Place, groups, openings, producers, readers, steady_transactions, transact
from tests.doubles.fault_plan import Operation, Step
from txntable.log.delta_log import DeltaLog

pytestmark = pytest.mark.usefixtures("probes_as_they_are")

TRANSACTIONS = {counted.operation: counted for counted in steady_transactions()}
READERS = {counted.operation: counted for counted in [*readers(), *groups()]}
OPENINGS = {counted.operation: counted for counted in openings()}
ONE_TOPIC = [f"transaction, {partitions}" for partitions in ("1 partition", "3 partitions", "10 partitions")]
# T and O; S and P of each topic.
LOGS_BESIDE_TOPICS, LOGS_OF_A_TOPIC = 2, 2


@pytest.mark.parametrize("operation", ONE_TOPIC)
def test_steady_transaction_of_one_topic_makes_four_puts_beside_its_segments(operation: str) -> None:
    """The marker's file, the decision, the partition log, the public table; the id's next entry is COMPLETE."""
    counted = TRANSACTIONS[operation]

    assert counted.requests["PUT"] - counted.segments == 4
    assert len(counted.steps) - counted.segments <= 6


@pytest.mark.parametrize("operation", TRANSACTIONS)
def test_commit_to_a_log_costs_one_small_get_beside_it_and_no_round_trip(operation: str) -> None:
    steps = TRANSACTIONS[operation].steps

    commits = [step for step in steps if step.operation is Operation.PUT_IF_ABSENT and "/_delta_log/" in step.path]
    assert [step for step in steps if step.looks_beside] == commits


@pytest.mark.parametrize("operation", ONE_TOPIC)
def test_steady_transaction_is_decided_one_round_trip_after_its_upload(operation: str) -> None:
    assert TRANSACTIONS[operation].rounds_to_decision == 1


def test_offsets_are_decided_three_round_trips_after_the_enrolment_that_they_share_with_the_upload() -> None:
    assert TRANSACTIONS["transaction, 1 partition and offsets"].rounds_to_decision == 3


def test_rounds_to_the_decision_count_what_stands_between_the_upload_and_the_commit() -> None:
    steps = TRANSACTIONS["transaction, 1 partition"].steps
    paths = [step.path for step in steps[1:5]]

    assert [re.sub(r"p00000/.*|/\d{20}\.json|[^/]*\.parquet", "", path) for path in paths] == [
        "topics/t0/_segments/",
        "topics/t0/_segments/_delta_log",
        "topics/t0/_segments/markers/",
        "system/transaction_log/_delta_log",
    ]


def test_upload_reading_and_marker_of_a_commit_are_on_their_way_together() -> None:
    place = Place()
    producer = place.producer()
    producer.begin_transaction()
    producer.send("t0", row={"account": 1, "note": "x"})
    met: list[str] = []
    together = threading.Barrier(3, lambda: met.append("upload, reading, marker"))

    def meet(step: Step) -> None:
        if re.search(r"/p00000/|/_segments/_delta_log/|/markers/", step.path) and not met:
            together.wait(30)

    place.store.parallel_writes, place.store.on_step = 16, meet
    producer.commit_transaction()

    assert met == ["upload, reading, marker"]


def test_appends_of_a_flush_to_several_topics_are_on_their_way_together() -> None:
    place = Place(topics=2)
    producer = place.producer()
    producer.begin_transaction()
    for topic in place.topics:
        producer.send(topic, row={"account": 1, "note": "x"})
    met: list[str] = []
    together = threading.Barrier(2, lambda: met.append("both topics"))

    def meet(step: Step) -> None:
        if step.operation is Operation.PUT_IF_ABSENT and "/_segments/_delta_log/" in step.path and not met:
            together.wait(30)

    place.store.parallel_writes, place.store.on_step = 16, meet
    producer.flush()

    assert met == ["both topics"]


@pytest.mark.parametrize(
    "counted", [*TRANSACTIONS.values(), *producers(), *READERS.values()], ids=lambda one: one.operation
)
def test_steady_work_makes_no_list(counted: Counted) -> None:
    assert counted.requests["LIST"] == 0


@pytest.mark.parametrize("operation", ["poll, nothing new", "group: poll, nothing new"])
def test_poll_of_an_idle_topic_makes_two_gets(operation: str) -> None:
    assert +READERS[operation].requests == Counter(GET=2)


@pytest.mark.parametrize(("operation", "topics"), [("1 topic", 1), ("10 topics", 10)])
def test_cold_open_after_maintenance_reads_each_log_by_sixteen_requests(operation: str, topics: int) -> None:
    """The hint, the checkpoint, its entry, twelve slots above it, and the proof that the entry is still there.

    Of the offset log, which has no checkpoint yet, there are two fewer.
    """
    logs = LOGS_BESIDE_TOPICS + LOGS_OF_A_TOPIC * topics

    assert +OPENINGS[f"open, maintained, {operation}"].requests == Counter(GET=1 + 16 * logs - 2)


@pytest.mark.parametrize("transactions", [0, 1, 10, 33, 49, 98, 130])
def test_first_record_is_there_after_twelve_round_trips_however_old_the_warehouse_is(transactions: int) -> None:
    place = Place()
    producer = place.producer()
    for number in range(transactions):
        transact(producer, offset=number + 1)

    counted = place.count("open and read", place.open_everything if not transactions else place.read_first)

    assert counted.round_trips <= 12
    assert counted.requests["LIST"] == 0


def test_maintained_warehouse_shows_its_first_record_after_eight_round_trips() -> None:
    place = Place()
    producer = place.producer()
    for number in range(33):
        transact(producer, offset=number + 1)
    place.maintain_logs()

    assert place.count("open and read", place.read_first).round_trips == 8


@pytest.mark.parametrize("behind", [1, 30, 90])
def test_follower_that_is_far_behind_asks_for_many_entries_at_once(behind: int) -> None:
    place = Place()
    producer = place.producer()
    place.open_everything()
    follower = place.warehouse.topic_log("t0").public
    for _ in range(behind):
        transact(producer)

    counted = place.count("refresh", follower.refresh)

    assert follower.table.next_version > behind
    assert counted.round_trips <= 4
    assert counted.requests["GET"] <= (4 if behind == 1 else 3 + 1 + 2 + 16 + 96)


def test_follower_at_the_tail_makes_one_request() -> None:
    place = Place()
    place.open_everything()

    assert +place.count("refresh", place.warehouse.topic_log("t0").public.refresh).requests == Counter(GET=1)


@pytest.mark.parametrize("transactions", [0, 1, 5, 20])
def test_cold_open_asks_for_no_more_than_the_entries_and_one_window_that_is_empty(transactions: int) -> None:
    place = Place()
    logs: list[DeltaLog[Any]] = [place.warehouse.transactions.log, place.warehouse.offsets.log]
    logs += [place.warehouse.topic_log("t0").segments, place.warehouse.topic_log("t0").public]
    producer = place.producer()
    for _ in range(transactions):
        transact(producer)
    entries = sum(log.refresh().next_version for log in logs)

    counted = place.count("open", place.open_everything)

    assert entries > 3 * transactions
    assert counted.total <= 1 + (4 + 12 + place.store.parallel_reads) * len(logs) + entries
    assert counted.requests["LIST"] == 0


@pytest.mark.parametrize("name", TABLES)
def test_document_shows_the_table_as_it_is_computed(name: str) -> None:
    """``python -m benchmarks.request_costs`` writes it again."""
    assert f"<!-- table: {name} -->\n{TABLES[name]()}\n<!-- end -->" in DOCUMENT.read_text()


def test_price_of_requests_is_that_of_the_list() -> None:
    assert dollars(Counter(PUT=1000, LIST=1000, GET=1000, HEAD=1000, DELETE=1000)) == pytest.approx(0.0108)
