"""More partitions for a topic that has records, and everyone who knows it from before."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.consumer.consuming import poll_all
from tests.unit.reading import TOPIC, commit, leave_open, places, segments_of, send, site_with_topic, transactional
from txntable.errors import (
    CommitStateUnknownError,
    InvalidPartitionsError,
    InvalidRequestError,
    PolicyViolationError,
    TransactionAbortableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.key import partition_of
from txntable.format.records import RecordMetadata
from txntable.partition.batch import batch_of
from txntable.producer.producer import Producer

KEYED = "keyed"
# A key that maps to another partition of two than of five.
KEY = next(name for name in "abcdefgh" if partition_of(name.encode(), 2) != partition_of(name.encode(), 5))


@pytest.fixture
def site() -> Site:
    made, warehouse = site_with_topic()
    warehouse.admin().create_topic(KEYED, partitions=2, schema=TWO_COLUMNS, key=["account"])
    return made


def grown(site: Site, topic: str = KEYED) -> None:
    """Another process gives the topic five partitions."""
    site.open().admin().create_partitions({topic: 5})


def send_keyed(producer: Producer, **options: object) -> RecordMetadata:
    return producer.send(KEYED, row={"account": KEY, "amount": 1}, **options)  # type: ignore[arg-type]


def keyed_places(site: Site) -> list[tuple[int, int, str]]:
    return places(site.open().read_arrow(KEYED))


# -- the call -------------------------------------------------------------------------------


def test_topics_have_the_partitions_that_were_asked_for_in_both_tables_and_keep_all_else(site: Site) -> None:
    warehouse = site.open()
    commit(transactional(warehouse), "old", partition=1)
    before = warehouse.topic_log(TOPIC).segments.table.metadata

    made = warehouse.admin().create_partitions({TOPIC: 3, KEYED: 4})

    topic = site.open().topic_log(TOPIC)
    assert topic.settings() == made[TOPIC]
    assert (made[TOPIC].partitions, made[KEYED].partitions) == (3, 4)
    after = topic.segments.table.metadata
    assert before is not None
    assert after is not None
    assert {name for name, value in after.configuration.items() if before.configuration[name] != value} == {
        "txntable.topic.partitions"
    }
    assert (after.table_id, after.created_ms, after.schema) == (before.table_id, before.created_ms, before.schema)
    public = topic.public.refresh().metadata
    assert public is not None
    assert public.configuration["txntable.topic.partitions"] == "3"
    (described,) = site.open().admin().describe_topics([TOPIC])
    assert [each.high_watermark for each in described.partitions] == [0, 2, 0]


@pytest.mark.parametrize(
    ("new_totals", "refusal", "names"),
    [
        ({TOPIC: 2}, InvalidPartitionsError, "as many .* partitions=2 current_partitions=2"),
        ({TOPIC: 1}, InvalidPartitionsError, "never taken away.* partitions=1 current_partitions=2"),
        ({TOPIC: 0}, InvalidPartitionsError, "between 1 and 100000"),
        ({TOPIC: 100_001}, InvalidPartitionsError, "between 1 and 100000"),
        ({TOPIC: "3"}, InvalidPartitionsError, "'3'"),
        ({TOPIC: True}, InvalidPartitionsError, "True"),
        ({"nowhere": 3}, UnknownTopicOrPartitionError, "topic=nowhere"),
        ([(TOPIC, 3)], InvalidRequestError, "mapping"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_can_not_be_is_refused_and_no_topic_is_changed(
    site: Site, new_totals: Mapping[str, int], refusal: type[TxnTableError], names: str, validate_only: bool
) -> None:
    objects = site.objects.snapshot()
    wanted = {KEYED: 3, **new_totals} if isinstance(new_totals, Mapping) else new_totals

    with pytest.raises(refusal, match=names):
        site.open().admin().create_partitions(wanted, validate_only=validate_only)

    assert site.objects.snapshot() == objects


def test_validation_writes_nothing_and_tells_what_is(site: Site) -> None:
    objects = site.objects.snapshot()

    found = site.open().admin().create_partitions({TOPIC: 3}, validate_only=True)

    assert found[TOPIC].partitions == 2
    assert site.objects.snapshot() == objects


def test_deleted_topic_gets_no_partitions(site: Site) -> None:
    site.open().admin().delete_topic(TOPIC)

    with pytest.raises(UnknownTopicOrPartitionError):
        grown(site, TOPIC)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_topic_gets_more_partitions_only_while_it_has_had_no_record(site: Site, policy: str) -> None:
    admin = site.open().admin()
    admin.alter_configs(KEYED, {"cleanup.policy": policy})

    grown(site)
    with site.open().producer() as producer:
        send_keyed(producer)
        producer.flush()
    for validate_only in (True, False):
        with pytest.raises(PolicyViolationError, match=f"copy the latest rows topic={KEYED} partitions=6 current_part"):
            admin.create_partitions({TOPIC: 3, KEYED: 6}, validate_only=validate_only)

    assert [one.settings.partitions for one in site.open().admin().describe_topics([TOPIC, KEYED])] == [2, 5]


def test_second_of_two_admins_is_refused_when_the_first_took_its_slot(site: Site) -> None:
    second = site.open()
    store = second.store
    assert isinstance(store, SteppingStore)
    second.topic_log(TOPIC).settings()

    def overtake(step: object) -> None:
        if getattr(step, "operation", None) is Operation.PUT_IF_ABSENT:
            store.on_step = None
            grown(site, TOPIC)

    store.on_step = overtake
    with pytest.raises(InvalidPartitionsError, match="partitions=4 current_partitions=5"):
        second.admin().create_partitions({TOPIC: 4})

    assert site.open().topic_log(TOPIC).settings().partitions == 5


# -- producers ------------------------------------------------------------------------------


def test_keys_map_to_the_new_partitions_and_records_that_are_there_stay(site: Site) -> None:
    with site.open().producer() as producer:
        send_keyed(producer)
        producer.flush()
        grown(site)
        send_keyed(producer)

    old, new = partition_of(KEY.encode(), 2), partition_of(KEY.encode(), 5)
    assert sorted(keyed_places(site)) == sorted([(old, 0, KEY), (new, 0, KEY)])


def test_transaction_with_keys_mapped_before_says_to_abort_and_send_again_which_succeeds(site: Site) -> None:
    producer = transactional(site.open())
    producer.begin_transaction()
    send_keyed(producer)
    grown(site)

    with pytest.raises(TransactionAbortableError, match=r"send the records again .*partitions=2 current_partitions=5"):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    send_keyed(producer)
    producer.commit_transaction()

    assert keyed_places(site) == [(partition_of(KEY.encode(), 5), 0, KEY)]


@pytest.mark.parametrize("idempotent", [False, True])
def test_plain_producer_with_keys_mapped_before_tells_each_record_and_goes_on(site: Site, idempotent: bool) -> None:
    told: list[TxnTableError | None] = []
    with site.open().producer(enable_idempotence=idempotent) as producer:
        send_keyed(producer, on_delivery=lambda _, error: told.append(error))
        grown(site)
        with pytest.raises(TransactionAbortableError, match="send the records again"):
            producer.flush()
        send_keyed(producer, on_delivery=lambda _, error: told.append(error))

    assert [None if error is None else error.code for error in told] == ["TRANSACTION_ABORTABLE", None]
    assert keyed_places(site) == [(partition_of(KEY.encode(), 5), 0, KEY)]


def test_transaction_with_records_that_no_key_led_goes_on(site: Site) -> None:
    producer = transactional(site.open())
    producer.begin_transaction()
    send(producer, "sent before", partition=1)
    grown(site, TOPIC)

    producer.commit_transaction()
    commit(producer, "sent after", partition=4)

    assert sorted(places(site.open().read_arrow(TOPIC))) == [(1, 0, "sent before"), (4, 0, "sent after")]


def test_open_transaction_may_go_on_in_the_new_partitions(site: Site) -> None:
    producer = leave_open(site.open(), "before")
    grown(site, TOPIC)

    send(producer, "after", partition=4)
    producer.commit_transaction()

    assert sorted(places(site.open().read_arrow(TOPIC))) == [(0, 0, "before"), (4, 0, "after")]


@pytest.mark.parametrize("idempotent", [False, True])
def test_append_of_unknown_outcome_that_is_there_is_answered_and_not_written_again(
    site: Site, idempotent: bool
) -> None:
    """Were it refused since its keys are mapped otherwise now, its caller would send it again: twice in the log."""
    warehouse = site.open()
    store = warehouse.store
    assert isinstance(store, SteppingStore)
    producer = warehouse.producer(enable_idempotence=idempotent)
    metadata = send_keyed(producer)
    slots = f"{KEYED}/_segments/_delta_log"
    store.plan = (
        on(Operation.PUT_IF_ABSENT, slots, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, slots, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    store.plan = ()
    grown(site)

    producer.flush()

    assert metadata.offset == 0
    assert keyed_places(site) == [(partition_of(KEY.encode(), 2), 0, KEY)]
    assert len(segments_of(site, KEYED)) == 1


def test_keyed_transaction_is_mapped_by_what_the_topic_has_at_its_slot_whenever_it_grows(site: Site) -> None:
    """Another process makes the partitions before each storage call of a transaction, one after the other."""
    ends = set()
    for number in range(1, 1_000):
        place = site.copy()
        warehouse = place.open()
        store = warehouse.store
        assert isinstance(store, SteppingStore)
        start = len(store.steps)

        def grow_at(step: Step, place: Site = place, at: int = start + number, store: SteppingStore = store) -> None:
            if step.number == at:
                store.on_step = None
                grown(place)

        store.on_step = grow_at
        producer = transactional(warehouse)
        producer.begin_transaction()
        try:
            send_keyed(producer)
            producer.commit_transaction()
            ends.add("committed")
        except TransactionAbortableError:
            producer.abort_transaction()
            producer.begin_transaction()
            send_keyed(producer)
            producer.commit_transaction()
            ends.add("sent again")
        if store.on_step is not None:
            break
        segments = place.open().topic_log(KEYED).segments
        segments.refresh()
        (batch,) = (batch_of(add) for add in segments.table.files if add.partition_values["_control"] is None)
        assert batch.partition == partition_of(KEY.encode(), batch.partition_count or 0), number
        assert [account for _, _, account in keyed_places(place)] == [KEY], number
    assert ends == {"committed", "sent again"}


# -- consumers ------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_consumer_that_subscribed_before_reads_the_new_partitions_from_their_beginning(site: Site, level: str) -> None:
    site.open().admin().create_topic("raw", partitions=2)
    consumer = site.open().consumer(isolation_level=level, prefetch=False)
    consumer.subscribe(["raw"])
    consumer.poll()
    grown(site, "raw")
    with site.open().producer() as producer:
        producer.send("raw", value=b"new", partition=4)

    site.advance_ms(1_000)

    assert poll_all(consumer) == ["new"]
    assert len(consumer.assignment()) == 5
