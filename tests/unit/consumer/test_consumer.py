"""Consumers: what a poll returns at each level, where the position is then, and what a poll costs."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.site import Site
from tests.unit.consumer.consuming import (
    FIRST,
    SECOND,
    abort,
    commit,
    consumer_at,
    offsets,
    paths,
    poll_all,
    read_only,
    send,
    values,
)
from tests.unit.producer.producing import row, started, store_of
from txntable.format.records import TopicPartition

T_AND_P = ["system/transaction_log/_delta_log", "topics/raw/_delta_log"]


# -- records --------------------------------------------------------------------------------


def test_record_has_its_place_time_key_value_headers_row_and_decision(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("raw", key=b"k", value=b"v", partition=0, headers=[("h", b"1"), ("h", b"2")], timestamp_ms=1_234)
    producer.commit_transaction()
    decided = site.open().transactions.refresh()

    (record,) = consumer_at(site.open()).poll()[FIRST]

    assert (record.topic, record.partition, record.offset, record.timestamp_ms) == ("raw", 0, 0, 1_234)
    assert (record.key, record.value, record.headers) == (b"k", b"v", [("h", b"1"), ("h", b"2")])
    assert record.row == {
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": b"2"}],
    }
    assert record.commit == decided


def test_record_of_a_topic_with_its_own_columns_has_them_as_a_row(site: Site) -> None:
    producer = site.open().producer()
    producer.send("u", row=row("ann", 3))
    producer.flush()

    (record,) = consumer_at(site.open(), TopicPartition("u", 0)).poll()[TopicPartition("u", 0)]

    assert record.row == {"account": "ann", "amount": 3}
    assert (record.key, record.value, record.headers, record.commit) == (None, None, [], 0)


def test_batches_have_the_columns_and_move_the_same_positions(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = consumer_at(site.open())

    (first,) = consumer.poll_batches(max_records=2).values()
    rest = consumer.poll()

    assert first.schema.names == ["key", "value", "headers", "_partition", "_offset", "_timestamp", "_commit"]
    assert (first["value"].to_pylist(), first["_offset"].to_pylist()) == ([b"a", b"b"], [0, 1])
    assert values(rest) == ["c"]


@pytest.mark.parametrize(("kilobytes", "polls"), [(10, [12]), (900, [2] * 6)], ids=["small", "large"])
def test_small_batches_are_joined_and_a_large_one_is_handed_out_as_it_is(
    site: Site, kilobytes: int, polls: list[int]
) -> None:
    producer = site.open().producer()
    for letter in "abcdef":
        for _ in range(2):
            producer.send("raw", value=letter.encode() * kilobytes * 1024, partition=0)
        producer.flush()
    consumer = consumer_at(site.open())

    found = [batch for _ in polls for batch in consumer.poll_batches().values()]

    assert [batch.num_rows for batch in found] == polls
    assert b"".join(value[:1] for batch in found for value in batch["value"].to_pylist()) == b"aabbccddeeff"
    assert consumer.poll_batches() == {}


# -- isolation ------------------------------------------------------------------------------


def test_only_committed_records_below_the_last_stable_offset_are_returned_at_read_committed(site: Site) -> None:
    writer = started(site.open())
    commit(writer, "committed")
    abort(writer, "aborted")
    open_producer = started(site.open(), "open")
    open_producer.begin_transaction()
    send(open_producer, "undecided")
    send(site.open().producer(), "plain, above the open one")
    consumer = consumer_at(site.open())

    assert poll_all(consumer) == ["committed"]
    assert consumer.position(FIRST) == consumer.last_stable_offset(FIRST) == 4

    open_producer.commit_transaction()

    assert poll_all(consumer) == ["undecided", "plain, above the open one"]


def test_everything_appended_is_returned_and_no_marker_at_read_uncommitted(site: Site) -> None:
    writer = started(site.open())
    commit(writer, "committed")
    abort(writer, "aborted")
    writer.begin_transaction()
    send(writer, "undecided")
    consumer = consumer_at(site.open(), isolation_level="read_uncommitted")

    polled = consumer.poll()

    assert values(polled) == ["committed", "aborted", "undecided"]
    assert offsets(polled) == [0, 2, 4]
    assert [record.commit for record in polled[FIRST]] == [None, None, None]
    assert consumer.position(FIRST) == consumer.end_offsets([FIRST])[FIRST] == 5
    assert consumer.last_stable_offset(FIRST) == 4


def test_committed_and_aborted_transactions_of_two_topics_are_told_apart_by_level(site: Site) -> None:
    site.open().admin().create_topic("other")
    producer = started(site.open())
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        send(producer, f"raw {number}")
        send(producer, f"other {number}", topic="other")
        end()
    both = [FIRST, TopicPartition("other", 0)]

    committed = poll_all(consumer_at(site.open(), *both))
    everything = poll_all(consumer_at(site.open(), *both, isolation_level="read_uncommitted"))

    assert sorted(committed) == ["other 0", "raw 0"]
    assert sorted(everything) == ["other 0", "other 1", "raw 0", "raw 1"]


def test_interleaved_transactions_are_returned_in_offset_order_without_those_aborted(site: Site) -> None:
    one, two = started(site.open(), "one"), started(site.open(), "two")
    one.begin_transaction()
    two.begin_transaction()
    for number in range(3):
        send(one, f"one {number}")
        send(two, f"two {number}")
    one.abort_transaction()
    consumer = consumer_at(site.open())
    assert poll_all(consumer) == []

    two.commit_transaction()
    polled = consumer.poll()

    assert values(polled) == ["two 0", "two 1", "two 2"]
    assert offsets(polled) == [1, 3, 5]


def test_transaction_of_a_producer_that_died_after_its_decision_is_completed_by_who_polls(site: Site) -> None:
    killed = site.open(on(Operation.PUT_IF_ABSENT, "topics/raw/_segments/_delta_log", Fault.KILL_BEFORE, occurrence=2))
    producer = started(killed)
    consumer = consumer_at(site.open())
    producer.begin_transaction()
    send(producer, "decided")
    with pytest.raises(ProcessKilled):
        producer.commit_transaction()

    assert values(consumer.poll()) == ["decided"]


# -- positions ------------------------------------------------------------------------------


def test_position_is_the_bound_after_everything_below_it_was_returned(site: Site) -> None:
    writer = started(site.open())
    commit(writer, "a", "b")
    abort(writer, "gone")
    consumer = consumer_at(site.open())

    consumer.poll()

    assert consumer.position(FIRST) == consumer.end_offsets([FIRST])[FIRST] == 5
    assert consumer.current_lag(FIRST) == 0


def test_position_passes_markers_and_aborted_records_when_nothing_is_returned(site: Site) -> None:
    consumer = consumer_at(site.open())
    writer = started(site.open())
    abort(writer, "gone")
    writer.begin_transaction()
    send(writer, "again")
    writer.abort_transaction()

    polled = consumer.poll()

    assert polled == {}
    assert consumer.position(FIRST) == 4


def test_position_is_behind_the_last_record_returned_when_the_poll_was_cut(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = consumer_at(site.open())

    polled = consumer.poll(max_records=2)

    assert values(polled) == ["a", "b"]
    assert consumer.position(FIRST) == 2
    assert consumer.current_lag(FIRST) == 1


def test_transaction_decided_while_polled_appears_in_parts_and_in_order(site: Site) -> None:
    writer = started(site.open())
    consumer = consumer_at(site.open(), max_poll_records=2)
    writer.begin_transaction()
    send(writer, "a", "b")
    send(writer, "c")
    assert consumer.poll() == {}
    writer.commit_transaction()

    assert [values(consumer.poll()) for _ in range(3)] == [["a", "b"], ["c"], []]


def test_poll_returns_at_most_max_poll_records(site: Site) -> None:
    send(site.open().producer(), *(f"{number}" for number in range(1_200)))
    consumer = consumer_at(site.open())

    sizes = [len(values(consumer.poll())) for _ in range(4)]

    assert sizes == [500, 500, 200, 0]


# -- partitions -----------------------------------------------------------------------------


def test_no_partition_starves_another(site: Site) -> None:
    producer = site.open().producer()
    send(producer, *["first"] * 50)
    send(producer, *["second"] * 3, partition=1)
    consumer = consumer_at(site.open(), FIRST, SECOND)

    polled = [values(consumer.poll(max_records=3)) for _ in range(3)]

    assert polled[1] == ["second"] * 3
    assert polled[0] == polled[2] == ["first"] * 3


def test_partition_that_gets_records_while_another_has_a_backlog_is_read_too(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    send(producer, *["old"] * 50)
    consumer = consumer_at(warehouse, FIRST, SECOND)
    consumer.poll(max_records=1)
    send(producer, "new", partition=1)
    site.advance_ms(500)

    polled = [*values(consumer.poll(max_records=1)), *values(consumer.poll(max_records=1))]

    assert "new" in polled


def test_paused_partition_is_passed_over_and_keeps_its_position(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "a", "b")
    send(producer, "other", partition=1)
    consumer = consumer_at(site.open(), FIRST, SECOND)
    consumer.poll(max_records=1)

    consumer.pause(FIRST)

    assert poll_all(consumer) == ["other"]
    assert consumer.paused() == {FIRST}
    assert consumer.position(FIRST) == 1
    consumer.resume(FIRST)
    assert poll_all(consumer) == ["b"]


# -- what it costs --------------------------------------------------------------------------


def test_idle_poll_asks_the_transaction_log_and_the_public_table_once_each(site: Site) -> None:
    send(site.open().producer(), "a")
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    assert poll_all(consumer) == ["a"]
    asked = len(store_of(warehouse).steps)

    consumer.poll()

    assert [path.rsplit("/", 1)[0] for path in paths(store_of(warehouse), asked)] == T_AND_P


def test_idle_poll_costs_a_reader_without_write_access_the_same(site: Site) -> None:
    send(site.open().producer(), "a")
    warehouse, counted = read_only(site)
    consumer = consumer_at(warehouse)
    assert poll_all(consumer) == ["a"]
    asked = len(counted.steps)

    consumer.poll()

    assert [path.rsplit("/", 1)[0] for path in paths(counted, asked)] == T_AND_P


def test_idle_poll_of_many_topics_asks_the_transaction_log_once(site: Site) -> None:
    warehouse = site.open()
    consumer = warehouse.consumer()
    consumer.subscribe(["t", "u", "raw"])
    consumer.poll()
    asked = len(store_of(warehouse).steps)

    consumer.poll()

    assert len(paths(store_of(warehouse), asked)) == 4


def test_idle_poll_at_read_uncommitted_is_one_request(site: Site) -> None:
    warehouse = site.open()
    consumer = consumer_at(warehouse, isolation_level="read_uncommitted")
    consumer.poll()
    asked = len(store_of(warehouse).steps)

    consumer.poll()

    assert [path.rsplit("/", 1)[0] for path in paths(store_of(warehouse), asked)] == ["topics/raw/_segments/_delta_log"]


def test_poll_of_what_was_read_ahead_asks_nothing(site: Site) -> None:
    send(site.open().producer(), "a", "b")
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    consumer.poll(max_records=1)
    asked = len(store_of(warehouse).steps)

    consumer.poll(max_records=1)

    assert paths(store_of(warehouse), asked) == []


def test_append_that_its_writer_did_not_live_to_publish_is_found_after_a_while(site: Site) -> None:
    consumer = consumer_at(site.open())
    killed = site.open(on(Operation.PUT_IF_ABSENT, "topics/raw/_delta_log", Fault.KILL_BEFORE))
    with pytest.raises(ProcessKilled):
        send(killed.producer(), "left behind")
    assert consumer.poll() == {}

    site.advance_ms(30_000)

    assert values(consumer.poll()) == ["left behind"]


def test_append_that_its_writer_did_not_live_to_publish_is_found_at_first_use(site: Site) -> None:
    killed = site.open(on(Operation.PUT_IF_ABSENT, "topics/raw/_delta_log", Fault.KILL_BEFORE))
    with pytest.raises(ProcessKilled):
        send(killed.producer(), "left behind")

    assert values(consumer_at(site.open()).poll()) == ["left behind"]
