"""Deleting records from the front of partitions, as every reader sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.consumer.consuming import poll_records
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts_in,
    commit,
    leave_open,
    places,
    plain,
    read_only,
    send,
    site_with_topic,
    transactional,
)
from txntable.admin.offset_listing import ListedOffset
from txntable.errors import (
    CommitStateUnknownError,
    DamagedDataError,
    InvalidRequestError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    StorePermissionError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.log.actions import Action, decode_commit_info
from txntable.log.table_state import TableState
from txntable.warehouse.warehouse import Warehouse

PLACE, OTHER = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


@pytest.fixture
def site() -> Site:
    """Three segments of three records in partition 0."""
    made, warehouse = site_with_topic()
    plain(warehouse, "a0", "a1", "a2")
    commit(transactional(warehouse), "b3", "b4", "b5")
    plain(warehouse, "c7", "c8", "c9")
    return made


def earliest(warehouse: Warehouse, place: TopicPartition = PLACE) -> int:
    found = warehouse.admin().list_offsets({place: "earliest"})[place]
    assert isinstance(found, ListedOffset)
    return found.offset


def segments(warehouse: Warehouse, topic: str = TOPIC) -> int:
    """How many segments are live in the partition logs."""
    (described,) = warehouse.admin().describe_topics([topic])
    return sum(partition.segments for partition in described.partitions)


@pytest.mark.parametrize(
    ("offset", "low", "left"),
    [
        (0, 0, "a0 a1 a2 b3 b4 b5 c7 c8 c9"),
        (3, 3, "b3 b4 b5 c7 c8 c9"),
        (4, 4, "b4 b5 c7 c8 c9"),
        (6, 6, "c7 c8 c9"),
        (9, 9, "c9"),
        (10, 10, ""),
        (None, 10, ""),
    ],
)
def test_records_before_the_offset_are_gone_for_every_reader(
    site: Site, offset: int | None, low: int, left: str
) -> None:
    warehouse = site.open()

    assert warehouse.admin().delete_records({PLACE: offset}) == {PLACE: low}

    other = site.open()
    wanted = left.split()
    assert earliest(other) == low
    for level in ("read_committed", "read_uncommitted", "snapshot"):
        assert accounts_in(other.read_arrow(TOPIC, isolation_level=level)) == wanted, level
    assert [row["account"] for row in published(other, TOPIC)] == wanted, "any reader of the public table"
    consumer = other.consumer(auto_offset_reset="earliest")
    consumer.assign([PLACE])
    assert [record.row["account"] for record in poll_records(consumer)] == wanted


def test_offsets_times_and_order_stay_where_a_segment_is_cut(site: Site) -> None:
    warehouse = site.open()
    before = warehouse.read_arrow(TOPIC).read_all().to_pylist()

    warehouse.admin().delete_records({PLACE: 4})

    assert warehouse.read_arrow(TOPIC).read_all().to_pylist() == [row for row in before if row["_offset"] >= 4]


def test_later_producers_and_transactions_go_on(site: Site) -> None:
    warehouse = site.open()
    producer = transactional(warehouse)
    commit(producer, "d10")

    warehouse.admin().delete_records({PLACE: 10})
    commit(producer, "d12")
    plain(warehouse, "e14")

    assert places(site.open().read_arrow(TOPIC)) == [(0, 10, "d10"), (0, 12, "d12"), (0, 14, "e14")]


def test_deletion_below_the_log_start_changes_nothing_and_says_where_it_is(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    admin.delete_records({PLACE: 4})
    log = warehouse.topic_log(TOPIC)
    before = log.segments.refresh().version, log.public.refresh().version

    assert admin.delete_records({PLACE: 2, OTHER: 0}) == {PLACE: 4, OTHER: 0}
    assert (log.segments.refresh().version, log.public.refresh().version) == before


def test_validation_alone_says_where_the_log_would_start_and_changes_nothing(site: Site) -> None:
    warehouse = site.open()

    assert warehouse.admin().delete_records({PLACE: None, OTHER: None}, validate_only=True) == {PLACE: 10, OTHER: 0}
    assert (earliest(warehouse), segments(warehouse)) == (0, 3)


@pytest.mark.parametrize(
    ("before", "error"),
    [
        ({PLACE: 11}, OffsetOutOfRangeError),
        ({PLACE: -1}, OffsetOutOfRangeError),
        ({PLACE: 1, OTHER: 1}, OffsetOutOfRangeError),
        ({PLACE: 1, TopicPartition(TOPIC, 2): 0}, UnknownTopicOrPartitionError),
        ({PLACE: 1, TopicPartition("nowhere", 0): 0}, UnknownTopicOrPartitionError),
        ({PLACE: 1, TopicPartition("compacted", 0): 0}, PolicyViolationError),
        ({PLACE: 1.0}, InvalidRequestError),
        ({TopicPartition(TOPIC, True): 1}, InvalidRequestError),
        ([(PLACE, 1)], InvalidRequestError),
        ({5: 1}, InvalidRequestError),
        ({TOPIC: 1}, InvalidRequestError),
        ({(TOPIC, 0, 1): 1}, InvalidRequestError),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_deletion_is_refused_before_any_partition_is_changed(
    site: Site, before: dict[TopicPartition, int | None], error: type[TxnTableError], validate_only: bool
) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("compacted", config={"cleanup.policy": "compact"})

    with pytest.raises(error):
        warehouse.admin().delete_records(before, validate_only=validate_only)

    assert earliest(warehouse) == 0


def test_refusal_of_minus_one_says_what_stands_for_it_here(site: Site) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="or None for Kafka's -1"):
        site.open().admin().delete_records({PLACE: -1})


def test_records_of_a_topic_that_is_compacted_and_deleted_can_be_deleted() -> None:
    warehouse = Site().create()
    warehouse.admin().create_topic("both", config={"cleanup.policy": "compact,delete"})
    with warehouse.producer() as producer:
        producer.send("both", b"1", key=b"a")

    assert warehouse.admin().delete_records({TopicPartition("both", 0): None}) == {TopicPartition("both", 0): 1}


# -- transactions -------------------------------------------------------------------------------


def test_deletion_cuts_through_an_open_transaction_whose_commit_succeeds_without_the_records(site: Site) -> None:
    warehouse = site.open()
    producer = leave_open(warehouse, "o10", "o11", "o12")
    send(producer, "o13")
    producer.flush()

    assert warehouse.admin().delete_records({PLACE: 12}) == {PLACE: 12}
    assert accounts_in(warehouse.read_arrow(TOPIC)) == []
    producer.commit_transaction()

    assert accounts_in(site.open().read_arrow(TOPIC)) == ["o12", "o13"]
    assert warehouse.admin().delete_records({PLACE: 12}) == {PLACE: 12}
    assert [row["account"] for row in published(site.open(), TOPIC)] == ["o12", "o13"], (
        "the same call trims what waited"
    )


def test_rest_of_an_aborted_transaction_stays_filtered_when_its_beginning_is_deleted(site: Site) -> None:
    warehouse = site.open()
    abort(transactional(warehouse, "other"), "x10", "x11", "x12")

    warehouse.admin().delete_records({PLACE: 11})

    assert accounts_in(site.open().read_arrow(TOPIC)) == []
    assert accounts_in(site.open().read_arrow(TOPIC, isolation_level="read_uncommitted")) == ["x11", "x12"]


def test_stable_offset_is_never_below_the_log_start(site: Site) -> None:
    """Kafka's behaviour 75, with a segment cut in the middle and with whole ones gone."""
    warehouse = site.open()
    leave_open(warehouse, "o10", "o11")
    found = []

    for offset in (9, 11, 12):
        warehouse.admin().delete_records({PLACE: offset})
        (described,) = site.open().admin().describe_topics([TOPIC])
        found.append((described.partitions[0].log_start, described.partitions[0].last_stable_offset))

    assert found == [(9, 10), (11, 11), (12, 12)]


# -- when it goes wrong -------------------------------------------------------------------------


def test_deletion_of_unknown_outcome_is_made_again(site: Site) -> None:
    warehouse = site.open(on(Operation.PUT_IF_ABSENT, "_segments/_delta_log/", Fault.FAIL_BEFORE, occurrence=None))

    with pytest.raises(CommitStateUnknownError):
        warehouse.admin().delete_records({PLACE: 4})

    assert site.open().admin().delete_records({PLACE: 4}) == {PLACE: 4}


def test_deletion_needs_write_access(site: Site) -> None:
    with pytest.raises(StorePermissionError):
        read_only(site).admin().delete_records({PLACE: 4})

    assert earliest(site.open()) == 0


def test_deletion_that_a_deletion_of_the_topic_overtook_spares_the_next_topic_of_the_name(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()

    log = warehouse.topic_log(TOPIC)
    write = log.commit

    def commit_too_late(operation: str, decide: Callable[[TableState, TableState], Sequence[Action]]) -> None:
        other = site.open()
        other.admin().delete_topic(TOPIC)
        other.admin().create_topic(TOPIC, schema=TWO_COLUMNS)
        plain(other, *"abcdefghijkl")
        write(operation, decide)

    log.commit = commit_too_late  # type: ignore[method-assign]
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_records({PLACE: 4})

    assert len(accounts_in(site.open().read_arrow(TOPIC))) == 12


def test_entries_say_what_wrote_them(site: Site) -> None:
    warehouse = site.open()
    log = warehouse.topic_log(TOPIC)
    first = log.segments.refresh().next_version

    warehouse.admin().delete_records({PLACE: 4})

    versions = range(first, log.segments.refresh().next_version)
    assert [operation(site, version) for version in versions] == ["DELETE RECORDS", "COMPACT"]


def operation(site: Site, version: int) -> str:
    path = f"topics/{TOPIC}/_segments/_delta_log/{version:020d}.json"
    return decode_commit_info(site.objects.snapshot()[path].data, path).operation


def test_deletion_that_cuts_a_segment_which_is_gone_says_what_is_deleted_and_up_to_where_to_go_on(site: Site) -> None:
    warehouse = site.open()
    log = warehouse.topic_log(TOPIC)
    log.settings()
    cut = min(add.path for add in log.segments.table.files if add.partition_values["_base_offset"] == "3")
    site.objects.delete(f"{log.segments.root}/{cut}")

    with pytest.raises(DamagedDataError) as raised:
        warehouse.admin().delete_records({PLACE: 4})

    (note,) = raised.value.__notes__
    assert note.startswith("the records below the log start of partition 0 are deleted; ")
    assert note.endswith("when those before offset 6 are deleted")
    assert warehouse.admin().delete_records({PLACE: 6}) == {PLACE: 6}
    assert [
        found.start for found in [site.open().topic_reader(TOPIC).view(IsolationLevel.READ_COMMITTED).bounds[0]]
    ] == [6]
