"""The transaction of a dead writer holds consumers back until its timeout: whoever reads on ends it then."""

from __future__ import annotations

from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, SECOND, commit, consumer_at, poll_all, read_only, send
from tests.unit.producer.producing import started
from txntable.consumer.followed_topic import CATCH_UP_MS
from txntable.coordinator.transaction_state import TransactionState
from txntable.producer.producer import Producer

TIMEOUT_MS = 60_000


def dead_writer(site: Site, *, partitions: tuple[int, ...] = (0,)) -> Producer:
    """Leave a transaction open with a record in each partition; what others commit behind it waits."""
    producer = started(site.open(), "dead", TIMEOUT_MS)
    producer.begin_transaction()
    for partition in partitions:
        send(producer, "lost", partition=partition)
    return producer


def commits_behind(site: Site) -> None:
    commit(started(site.open(), "alive"), "behind")


def state_of(site: Site, transactional_id: str) -> TransactionState:
    (row,) = [each for each in site.open().admin().list_transactions() if each.transactional_id == transactional_id]
    return row.state


def test_consumer_reads_on_when_the_timeout_of_a_dead_writer_has_passed(site: Site) -> None:
    dead_writer(site)
    commits_behind(site)
    consumer = consumer_at(site.open())
    assert poll_all(consumer) == []

    site.advance_ms(TIMEOUT_MS + CATCH_UP_MS)

    assert poll_all(consumer) == ["behind"]
    assert state_of(site, "dead") is TransactionState.COMPLETE_ABORT


def test_consumer_that_begins_after_the_timeout_waits_for_nobody(site: Site) -> None:
    dead_writer(site)
    commits_behind(site)
    site.advance_ms(TIMEOUT_MS + 1_000)

    assert poll_all(consumer_at(site.open())) == ["behind"]


def test_transaction_within_its_timeout_is_left_open_by_consumers(site: Site) -> None:
    writer = dead_writer(site)
    commits_behind(site)
    site.advance_ms(TIMEOUT_MS - 1_000)

    assert poll_all(consumer_at(site.open())) == []

    writer.commit_transaction()
    assert poll_all(consumer_at(site.open())) == ["lost", "behind"]


def test_ending_it_ends_it_in_every_partition_and_topic(site: Site) -> None:
    writer = dead_writer(site, partitions=(0, 1))
    writer.send("u", row={"account": "ann", "amount": 3})
    writer.flush()
    commits_behind(site)
    site.advance_ms(TIMEOUT_MS + 1_000)

    assert poll_all(consumer_at(site.open(), FIRST)) == ["behind"]

    assert site.open().admin().find_blocking_transactions() == []
    assert poll_all(consumer_at(site.open(), SECOND)) == []


def test_prepared_transaction_never_times_out_for_a_consumer(site: Site) -> None:
    producer = started(site.open(), "two-phase", TIMEOUT_MS)
    producer.begin_transaction()
    send(producer, "prepared")
    producer.prepare_transaction()
    commits_behind(site)
    site.advance_ms(10 * TIMEOUT_MS)

    assert poll_all(consumer_at(site.open())) == []
    assert state_of(site, "two-phase") is TransactionState.PREPARED


def test_consumer_that_may_not_write_waits_for_who_may(site: Site) -> None:
    dead_writer(site)
    commits_behind(site)
    site.advance_ms(TIMEOUT_MS + 1_000)
    warehouse, _ = read_only(site)
    consumer = consumer_at(warehouse)
    assert poll_all(consumer) == []

    assert poll_all(consumer_at(site.open())) == ["behind"]
    site.advance_ms(CATCH_UP_MS)

    assert poll_all(consumer) == ["behind"]


def test_snapshot_leaves_it_open_for_it_is_held_back_by_nothing(site: Site) -> None:
    dead_writer(site)
    site.advance_ms(TIMEOUT_MS + 1_000)

    site.open().snapshot().read_arrow("raw").read_all()

    assert state_of(site, "dead") is TransactionState.ONGOING
