"""Retention as the maintenance runs it: what goes, and what producers and readers notice of it."""

from __future__ import annotations

from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.consumer.consuming import poll_records
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts_in,
    commit,
    leave_open,
    plain,
    segments_of,
    send,
    site_with_topic,
    transactional,
)
from txntable.format.records import TopicPartition
from txntable.partition.stable_offset import last_stable_offset
from txntable.topics.retention import ExpiredRecords, expire_records
from txntable.warehouse.warehouse import Warehouse

PLACE = TopicPartition(TOPIC, 0)
HOUR_MS = 3_600_000


def site_with_retention(**config: object) -> tuple[Site, Warehouse]:
    site = Site()
    warehouse = site.create()
    named = {name.replace("_", "."): value for name, value in config.items()}
    warehouse.admin().create_topic(TOPIC, partitions=2, schema=TWO_COLUMNS, config=named)
    return site, warehouse


def test_segments_expire_by_the_stores_time_and_the_files_stay_for_readers_of_the_past() -> None:
    site, warehouse = site_with_retention(retention_ms=HOUR_MS)
    plain(warehouse, "a", "b")
    plain(warehouse, "c", partition=1)
    site.advance_ms(HOUR_MS // 2)
    plain(warehouse, "d")
    site.advance_ms(HOUR_MS // 2 + 60_000)
    files = segments_of(site)
    expired = expire_records(site.open().topic_log(TOPIC))

    assert (expired.segments, expired.log_starts) == (2, {0: 2, 1: 1})
    assert expired.bytes > 0
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["d"]
    assert [row["account"] for row in published(site.open(), TOPIC)] == ["d"]
    assert segments_of(site) == files
    log = site.open().topic_log(TOPIC).segments
    named = [f"{log.root}/{add.path}" for add in log.refresh().files]
    assert [path for path in named if path not in site.objects.snapshot()] == [], "state entries have their files"


def test_retention_of_what_is_kept_already_writes_nothing() -> None:
    _, warehouse = site_with_retention(retention_ms=HOUR_MS)
    plain(warehouse, "a")
    log = warehouse.topic_log(TOPIC)
    before = log.segments.refresh().version, log.public.refresh().version

    assert expire_records(log) == ExpiredRecords()
    assert (log.segments.refresh().version, log.public.refresh().version) == before


def test_what_was_committed_and_not_published_is_published_before_it_goes() -> None:
    """A process died after its append: the version of the public table that shows it must exist."""
    site, warehouse = site_with_retention(retention_ms=HOUR_MS)
    log = warehouse.topic_log(TOPIC)
    log.project = lambda decided=(): None  # type: ignore[method-assign]
    plain(warehouse, "b", at_ms=0)
    other = site.open().topic_log(TOPIC)
    before = other.public.refresh().version
    assert before is not None

    expire_records(other)

    assert other.public.refresh().version == before + 2
    assert published(site.open(), TOPIC) == []


def test_retention_by_size_keeps_the_newest() -> None:
    site, warehouse = site_with_retention()
    for name in "abcdef":
        plain(warehouse, name)
    (described,) = warehouse.admin().describe_topics([TOPIC])
    one = described.partitions[0].bytes // 6
    warehouse.admin().alter_configs(TOPIC, {"retention.bytes": 2 * one + one // 2})

    expire_records(site.open().topic_log(TOPIC))

    assert accounts_in(site.open().read_arrow(TOPIC)) == ["d", "e", "f"]


def test_old_data_that_is_loaded_expires_by_its_own_times_unless_the_topic_stamps_it() -> None:
    left = []
    for stamps in ("CreateTime", "LogAppendTime"):
        site, warehouse = site_with_retention(retention_ms=HOUR_MS, message_timestamp_type=stamps)
        plain(warehouse, "old", at_ms=0)

        expire_records(warehouse.topic_log(TOPIC))
        left.append(accounts_in(site.open().read_arrow(TOPIC)))

    assert left == [[], ["old"]]


def test_open_transaction_neither_blocks_retention_nor_is_harmed_by_it() -> None:
    site, warehouse = site_with_retention(retention_ms=HOUR_MS)
    producer = transactional(warehouse)
    producer.begin_transaction()
    send(producer, "gone", at_ms=0)
    producer.flush()
    plain(warehouse, "plain")
    send(producer, "kept")
    producer.flush()

    expire_records(site.open().topic_log(TOPIC))
    topic = site.open().topic_log(TOPIC)
    settings = topic.settings()
    lso = last_stable_offset(topic.segments.fold, topic.segments.table, settings.topic_id, 0)
    producer.commit_transaction()

    assert lso == 2, "the data that is left holds back"
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["plain", "kept"]


def test_producers_are_answered_as_before_when_their_data_is_gone() -> None:
    """Kafka's behaviour 80 would forget them with their segments: here they stay until they expire."""
    site, warehouse = site_with_retention(retention_ms=HOUR_MS)
    zombie = leave_open(warehouse, "never", transactional_id="etl")
    etl = transactional(site.open(), "etl")
    commit(etl, "a")
    abort(etl, "b")
    before = warehouse.admin().describe_producers([PLACE])

    site.advance_ms(2 * HOUR_MS)
    expire_records(site.open().topic_log(TOPIC))

    assert site.open().admin().describe_producers([PLACE]) == before
    commit(etl, "c")
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["c"]
    assert zombie.producer_epoch is not None
    assert etl.producer_epoch is not None
    assert etl.producer_epoch > zombie.producer_epoch


def test_consumer_whose_position_expired_goes_on_where_it_is_told_to() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, "a", "b")
    consumer = site.open().consumer(auto_offset_reset="earliest", max_poll_records=1)
    consumer.assign([PLACE])
    first = [record.offset for records in consumer.poll().values() for record in records]

    site.advance_ms(8 * 24 * HOUR_MS)
    plain(warehouse, "c")
    expire_records(site.open().topic_log(TOPIC))

    rest = [record.offset for record in poll_records(consumer)]
    assert first == [0]
    assert rest in ([2], [1, 2]), "what was fetched before may still be returned"
