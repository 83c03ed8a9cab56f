"""Named totals: what is counted, by whom, and how clients and handles show it."""

from __future__ import annotations

import os
import threading

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.manual_environment import ManualEnvironment
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, row, started, store_of
from txntable.errors import StoreUnavailableError
from txntable.format.records import TopicPartition
from txntable.runtime.counters import Counters, grouped
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store


def counters() -> Counters:
    return Counters(ManualEnvironment().ticks_ns)


def test_child_counts_for_itself_and_its_parent() -> None:
    parent = counters()
    one, other = parent.child(), parent.child()

    one.add("g/n")
    other.add("g/n", 2)

    assert (one.totals(), other.totals(), parent.totals()) == ({"g/n": 1}, {"g/n": 2}, {"g/n": 3})


def test_timing_adds_the_time_of_a_block_that_fails_too() -> None:
    environment = ManualEnvironment()
    found = Counters(environment.ticks_ns)
    with found.timing("g/t"):
        environment.advance_ms(3)
    with pytest.raises(ZeroDivisionError), found.timing("g/t"):
        environment.advance_ms(3 / environment.uniform(0, 0))

    assert found.totals() == {"g/t": 3_000_000}


def test_no_addition_is_lost_among_threads() -> None:
    found = counters()

    def add() -> None:
        for _ in range(2_000):
            found.add("g/n")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found.totals() == {"g/n": 8_000}


def test_forked_process_does_not_wait_for_a_lock_that_a_thread_of_its_parent_had() -> None:
    found = counters()
    with found._lock:
        child = os.fork()
        if child == 0:
            found.add("g/n")
            os._exit(0 if found.totals() == {"g/n": 1} else 1)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


def test_totals_are_grouped_by_what_stands_before_the_slash() -> None:
    assert grouped({"b/x": 1, "a/z": 2, "b/a": 3}) == {"a": {"z": 2}, "b": {"a": 3, "x": 1}}


def test_producer_counts_records_bytes_and_ends_under_kafkas_names(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    for commits in (True, False):
        producer.begin_transaction()
        producer.send("u", row=row("one"))
        producer.send("u", row=row("two"))
        producer.flush()
        producer.send("u", row=row("three"))
        producer.commit_transaction() if commits else producer.abort_transaction()

    found = producer.metrics()["producer-metrics"]

    assert (found["record-send-total"], found["batch-total"]) == (5, 3)
    assert found["record-error-total"] == 1
    assert (found["txn-commit-total"], found["txn-abort-total"]) == (1, 1)
    assert found["outgoing-byte-total"] == sum(
        len(one.data) for path, one in site.objects.snapshot().items() if "/p0" in path
    )
    assert {"txn-init-time-ns-total", "txn-begin-time-ns-total", "txn-commit-time-ns-total"} <= found.keys()
    assert warehouse.metrics()["producer-metrics"] == found


def test_consumer_counts_records_commits_and_its_lag_under_kafkas_names(site: Site) -> None:
    warehouse = site.open()
    with warehouse.producer() as producer:
        for number in range(3):
            producer.send("u", row=row("one", number))
    with warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe(["u"])
        assert len(consumer.poll(timeout_ms=100, max_records=2)[TopicPartition("u", 0)]) == 2
        consumer.commit()

        found = consumer.metrics()

    fetched = found["consumer-fetch-manager-metrics"]
    assert (fetched["records-consumed-total"], fetched["u-0.records-lag"], fetched["records-lag-max"]) == (2, 1, 1)
    assert fetched["bytes-consumed-total"] > 0
    assert found["consumer-coordinator-metrics"] == {
        "commit-total": 1,
        "rebalance-total": 1,
        "assigned-partitions": 1,
    }


def test_handle_counts_commits_conflicts_and_retries(site: Site) -> None:
    mine, others = site.open(), site.open()
    mine.transactions.refresh()
    others.transactions.allocate_producer_ids()
    store_of(mine).plan = (on(PUT, "transaction_log/_delta_log", Fault.FAIL_BEFORE, occurrence=2),)
    mine.transactions.allocate_producer_ids()

    found = mine.metrics()["log-metrics"]

    assert (found["commit-total"], found["conflict-total"], found["retry-total"]) == (1, 1, 1)


def test_transaction_that_a_handle_times_out_is_counted(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse, transaction_timeout_ms=1_000)
    producer.begin_transaction()
    producer.send("u", row=row("open"))
    producer.flush()
    site.advance_ms(2_000)
    other = site.open()

    other.complete()

    assert other.metrics()["transaction-metrics"] == {"timed-out-total": 1}


def test_folder_counts_its_calls_and_bytes(tmp_path: object) -> None:
    store = LocalFolder(StoreSpec(str(tmp_path), durability="page-cache"))
    store.put("a/b", b"123")
    store.put_if_absent("a/c", b"4567")
    store.create_all([("a/d", b"89")])
    store.get("a/b")
    store.get_range("a/c", 0, 2)
    store.head("a/d")
    list(store.list("a"))
    store.folders("")
    store.delete(["a/b", "a/c"])

    assert store.counters.totals() == {
        "store-metrics/put-total": 3,
        "store-metrics/outgoing-byte-total": 6,
        "store-metrics/get-total": 2,
        "store-metrics/incoming-byte-total": 5,
        "store-metrics/head-total": 1,
        "store-metrics/list-total": 2,
        "store-metrics/delete-total": 2,
    }


def test_remote_store_counts_the_same(tmp_path: object) -> None:
    store = open_store(StoreSpec("memory://counting"))
    assert store.counters is not None
    store.put("a/b", b"123")
    store.put_if_absent("a/c", b"4567")
    store.get("a/b")
    store.get_many(["a/b", "a/c", "a/x"])
    list(store.list("a"))
    store.delete(["a/b"])

    assert store.counters.totals() == {
        "store-metrics/put-total": 2,
        "store-metrics/outgoing-byte-total": 7,
        "store-metrics/get-total": 4,
        "store-metrics/incoming-byte-total": 10,
        "store-metrics/list-total": 1,
        "store-metrics/delete-total": 1,
    }


def test_failed_sends_do_not_count_as_sent(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("one"))
    store_of(warehouse).plan = (on(Operation.WRITE, "/p0", Fault.FAIL_BEFORE, occurrence=None),)
    with pytest.raises(StoreUnavailableError):
        producer.flush()

    assert "record-send-total" not in producer.metrics()["producer-metrics"]
