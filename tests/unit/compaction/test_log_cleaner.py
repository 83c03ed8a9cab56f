"""Compaction by key as Kafka's log cleaner does it, through producers and consumers (Kafka's behaviours 86 to 95)."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import consumer_at, poll_records
from txntable.compaction.compactor import compact
from txntable.compaction.spec import TopicReport
from txntable.errors import InvalidProducerEpochError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
TOPIC, PLACE = "t", TopicPartition("t", 0)
ALWAYS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
# What Kafka's markers have as keys: version 0, and their type.
MARKER_KEYS = (b"\x00\x00\x00\x00", b"\x00\x00\x00\x01")


@pytest.fixture
def site() -> Site:
    site = Site()
    site.create().admin().create_topic(TOPIC, config=ALWAYS)
    return site


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    return site.open()


def transactional(warehouse: Warehouse, who: str = "etl") -> Producer:
    producer = warehouse.producer(who, transaction_timeout_ms=900_000)
    producer.init_transactions()
    return producer


def put(producer: Producer, **values: str | None) -> None:
    """Append a segment with a record of each key."""
    for key, value in values.items():
        producer.send(TOPIC, None if value is None else value.encode(), key=key.encode())
    producer.flush()


def committed(producer: Producer, **values: str | None) -> None:
    producer.begin_transaction()
    put(producer, **values)
    producer.commit_transaction()


def aborted(producer: Producer, **values: str | None) -> None:
    producer.begin_transaction()
    put(producer, **values)
    producer.abort_transaction()


def clean(site: Site, after_ms: int = 2 * HOUR_MS) -> TopicReport:
    site.advance_ms(after_ms)
    (report,) = compact(site.open(), [TOPIC])
    assert report.failures == ()
    return report


def seen(site: Site, level: str = "read_committed") -> list[tuple[int, str, str | None]]:
    """(offset, key, value) of what a consumer reads from the start."""
    records = poll_records(consumer_at(site.open(), PLACE, isolation_level=level))
    return [(r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode()) for r in records]


def log_of(site: Site) -> TopicLog:
    log = site.open().topic_log(TOPIC)
    log.segments.refresh()
    return log


def markers(site: Site) -> int:
    return len(log_of(site).segments.fold.markers)


def test_undecided_data_is_not_cleaned_nor_what_stands_behind_it(site: Site, warehouse: Warehouse) -> None:
    put(warehouse.producer(), a="1")
    put(warehouse.producer(), a="2")
    going_on = transactional(warehouse, "going on")
    going_on.begin_transaction()
    put(going_on, a="3", b="3")
    put(warehouse.producer(), a="4")

    # Within the transaction's timeout: of these records only the first two may go for now, by their age.
    clean(site, after_ms=0)
    assert [offset for offset, *_ in seen(site, "read_uncommitted")] == [0, 1, 2, 3, 4]
    going_on.commit_transaction()
    clean(site)

    assert seen(site) == [(3, "b", "3"), (4, "a", "4")]


def test_open_transaction_holds_back_only_what_is_behind_its_first_record(site: Site, warehouse: Warehouse) -> None:
    put(warehouse.producer(), a="1")
    put(warehouse.producer(), a="2")
    site.advance_ms(61 * MINUTE_MS)
    going_on = transactional(warehouse, "going on")
    going_on.begin_transaction()
    put(going_on, a="3")

    clean(site, after_ms=MINUTE_MS)

    assert seen(site, "read_uncommitted") == [(1, "a", "2"), (2, "a", "3")]


def test_last_committed_values_stay_and_an_aborted_one_hides_none(site: Site, warehouse: Warehouse) -> None:
    producer = transactional(warehouse)
    committed(producer, a="1", b="1")
    aborted(producer, a="never", c="never")
    committed(producer, b="2")
    aborted(producer, b="never")

    clean(site)

    assert seen(site) == [(0, "a", "1"), (6, "b", "2")]
    assert seen(site, "read_uncommitted") == seen(site)


def test_aborted_tombstone_deletes_nothing(site: Site, warehouse: Warehouse) -> None:
    producer = transactional(warehouse)
    committed(producer, a="1")
    aborted(producer, a=None)

    for _ in range(3):
        clean(site, after_ms=2 * DAY_MS)

    assert seen(site) == [(0, "a", "1")]


def test_transaction_over_several_segments_is_cleaned_in_several_rounds(site: Site, warehouse: Warehouse) -> None:
    """What of it is superseded goes at once, what is not keeps its outcome: here by what a merged segment says."""
    producer = transactional(warehouse)
    producer.begin_transaction()
    for number in range(3):
        put(producer, **{f"k{number}": "1", "same": str(number)})
    producer.commit_transaction()
    aborted(producer, k0="never", k1="never")

    clean(site)
    first = seen(site)
    committed(producer, k0="2")
    clean(site)
    committed(producer, k2="2", k1=None)
    clean(site)

    assert [(key, value) for _, key, value in first] == [("k0", "1"), ("k1", "1"), ("k2", "1"), ("same", "2")]
    assert [(key, value) for _, key, value in seen(site)] == [("same", "2"), ("k0", "2"), ("k2", "2"), ("k1", None)]


def test_offsets_are_never_given_anew(site: Site, warehouse: Warehouse) -> None:
    producer = transactional(warehouse)
    committed(producer, a="1", b="1")
    committed(producer, a="2")
    before = {key: offset for offset, key, _ in seen(site)}

    clean(site)
    put(warehouse.producer(), c="3")

    assert seen(site) == [(before["b"], "b", "1"), (before["a"], "a", "2"), (5, "c", "3")]


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_marker_stays_while_data_of_its_transaction_waits_for_it_and_goes_with_it(
    site: Site, warehouse: Warehouse, ends: str
) -> None:
    """Committed data that stays is told so in its own row: unlike Kafka's, a marker never waits for a horizon."""
    producer = transactional(warehouse)
    (committed if ends == "commit" else aborted)(producer, a="1")
    clean(site, after_ms=MINUTE_MS)
    assert markers(site) == (1 if ends == "commit" else 0)

    clean(site)
    clean(site)

    assert markers(site) == 0
    assert seen(site) == ([(0, "a", "1")] if ends == "commit" else [])


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_producer_is_fenced_and_goes_on_as_before_when_its_data_and_its_marker_are_gone(
    site: Site, warehouse: Warehouse, ends: str
) -> None:
    """Kafka keeps an empty batch, or the marker; here the state entry holds what they tell."""
    zombie, log = transactional(warehouse), warehouse.topic_log(TOPIC)
    zombie.begin_transaction()
    put(zombie, a="1")
    successor = transactional(site.open())
    (committed if ends == "commit" else aborted)(successor, a="2")
    put(warehouse.producer(), a="3")
    before = described(site)

    clean(site)

    assert (markers(site), described(site)) == (0, before)
    log.segments.refresh()
    with pytest.raises(InvalidProducerEpochError):
        put(zombie, a="late")
    committed(successor, b="4")
    assert [(key, value) for _, key, value in seen(site)] == [("a", "3"), ("b", "4")]


def described(site: Site) -> list[str]:
    return sorted(map(repr, site.open().admin().describe_producers([PLACE])[PLACE]))


def test_idempotent_producer_goes_on_with_its_sequence_when_all_its_records_were_superseded(
    site: Site, warehouse: Warehouse
) -> None:
    producer = warehouse.producer()
    put(producer, a="1")
    put(producer, a="2")
    put(warehouse.producer(), a="3")
    clean(site)
    assert seen(site) == [(2, "a", "3")]

    put(producer, a="4")

    (state,) = [s for s in log_of(site).segments.fold.producers.values() if s.last_offset == 3]
    assert [batch.first_sequence for batch in state.batches] == [0, 1, 2]


@pytest.mark.parametrize("key", MARKER_KEYS)
def test_key_that_looks_like_a_markers_is_a_key_like_any_other(site: Site, warehouse: Warehouse, key: bytes) -> None:
    producer = transactional(warehouse)
    for value in (b"1", b"2"):
        producer.begin_transaction()
        producer.send(TOPIC, value, key=key)
        producer.commit_transaction()

    clean(site)

    assert [(record[0], record[2]) for record in seen(site)] == [(2, "2")]


def test_log_of_which_no_record_is_left_keeps_its_end_and_its_lso(site: Site, warehouse: Warehouse) -> None:
    """Kafka keeps an empty batch at the high watermark; here the offsets have names of their own."""
    producer = transactional(warehouse)
    committed(producer, a="1")
    committed(producer, a=None)
    for _ in range(3):
        clean(site, after_ms=2 * DAY_MS)
        put(warehouse.producer(), b=None)
    clean(site, after_ms=2 * DAY_MS)
    clean(site, after_ms=2 * DAY_MS)
    before = site.open().admin().list_offsets({PLACE: "latest"}, "read_committed")

    put(warehouse.producer(), c="1")

    found = before[PLACE]
    assert found is not None
    assert seen(site)[-1] == (found.offset, "c", "1")


@pytest.mark.parametrize(("after_ms", "stays"), [(DAY_MS - MINUTE_MS, True), (DAY_MS + MINUTE_MS, False)])
def test_tombstone_stays_for_its_retention_after_the_first_cleaning_that_saw_it(
    site: Site, warehouse: Warehouse, after_ms: int, stays: bool
) -> None:
    put(warehouse.producer(), a="1")
    put(warehouse.producer(), a=None)
    # However old it is by its own timestamp.
    clean(site, after_ms=30 * DAY_MS)
    assert seen(site) == [(1, "a", None)]

    site.advance_ms(after_ms - 2 * HOUR_MS)
    put(warehouse.producer(), b="2")
    clean(site)

    assert seen(site) == ([(1, "a", None)] if stays else []) + [(2, "b", "2")]


def test_tombstone_of_a_value_that_comes_back_is_an_older_record_like_any_other(
    site: Site, warehouse: Warehouse
) -> None:
    for value in ("1", None, "2"):
        put(warehouse.producer(), a=value)

    clean(site)

    assert seen(site) == [(2, "a", "2")]


def test_records_without_a_key_of_a_topic_that_becomes_compacted_go(site: Site, warehouse: Warehouse) -> None:
    warehouse.admin().alter_configs(TOPIC, {"cleanup.policy": "delete", "retention.ms": "-1"})
    producer = warehouse.producer()
    producer.send(TOPIC, b"no key")
    producer.flush()
    put(producer, a="1")
    warehouse.admin().alter_configs(TOPIC, {"cleanup.policy": "compact"})

    clean(site)

    assert seen(site) == [(1, "a", "1")]


def test_consumer_in_the_middle_goes_on_behind_what_it_has_read(site: Site, warehouse: Warehouse) -> None:
    for number in range(6):
        put(warehouse.producer(), a=str(number), **{f"k{number}": "1"})
    consumer = consumer_at(site.open(), PLACE)
    consumer.poll(max_records=5)

    clean(site)

    rest = [(r.offset, (r.key or b"").decode()) for r in poll_records(consumer)]
    # Its records may have been there when it last looked.
    assert set(rest) >= {(offset, key) for offset, key, _ in seen(site) if offset >= 5}
    assert [offset for offset, _ in rest] == sorted({offset for offset, _ in rest})
    assert rest[0][0] >= 5
