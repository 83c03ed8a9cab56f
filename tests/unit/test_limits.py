"""What a warehouse takes at most (``infra/REQUESTS.md``): the limit itself passes, and one above it is refused.

Beside these: segments of a commit and of a transaction (``partition/test_limits.py``), a transaction's row
(``coordinator/test_limits.py``), the size of a record (``client/test_record_size.py``), groups
(``coordinator/test_group.py``, ``test_group_shard.py``), the keys of S3 (``tests/integration/test_requests.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.group_members import joined
from tests.unit.consumer.members import member
from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT
from txntable.coordinator.offset_request import MAX_METADATA_BYTES
from txntable.coordinator.row_json import LONGEST_NAME_BYTES
from txntable.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidRequestError,
    InvalidTopicError,
    OffsetMetadataTooLargeError,
    RecordTooLargeError,
    TxnTableError,
)
from txntable.format.layout import (
    LONGEST_PATH,
    checkpoint_path,
    commit_path,
    heartbeat_path,
    key_path,
    marker_path,
    public_root,
    segment_path,
    segments_root,
    state_path,
)
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.topics.topic_creation import check_partitions
from txntable.warehouse.warehouse import Warehouse

PLACE = TopicPartition("t", 0)
LONGEST_TOPIC_NAME = 249


@pytest.fixture
def warehouse() -> Warehouse:
    warehouse = Site().create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    return warehouse


def name_of(size: int) -> str:
    """A name of so many bytes, and fewer letters."""
    return "ü" * (size // 2) + "x" * (size % 2)


def transactional_id(warehouse: Warehouse, size: int) -> None:
    warehouse.producer(name_of(size)).init_transactions()


def batch_name(warehouse: Warehouse, size: int) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction(batch_id=name_of(size)) as txn:
        txn.send("t", row={"account": "a", "amount": 1})


def group(warehouse: Warehouse, size: int) -> None:
    warehouse.admin().alter_consumer_group_offsets(name_of(size), {PLACE: 1})


def member_id(warehouse: Warehouse, size: int) -> None:
    joined(warehouse, member_id=name_of(size), topic="t")


def instance_id(warehouse: Warehouse, size: int) -> None:
    member(warehouse, subscribed=False, group_instance_id=name_of(size))


def topic_name(warehouse: Warehouse, size: int) -> None:
    warehouse.admin().create_topic("x" * size, schema=TWO_COLUMNS)


def partitions(_: Warehouse, number: int) -> None:
    check_partitions(number)


def metadata(warehouse: Warehouse, size: int) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({PLACE: OffsetAndMetadata(1, name_of(size))}, "g")


@pytest.mark.parametrize(
    ("use", "most", "error"),
    [
        (transactional_id, LONGEST_NAME_BYTES, InvalidConfigError),
        (batch_name, LONGEST_NAME_BYTES, InvalidRequestError),
        (group, LONGEST_NAME_BYTES, InvalidRequestError),
        (member_id, LONGEST_NAME_BYTES, InvalidRequestError),
        (instance_id, LONGEST_NAME_BYTES, InvalidConfigError),
        (topic_name, LONGEST_TOPIC_NAME, InvalidTopicError),
        (partitions, LARGEST_PARTITION_COUNT, InvalidPartitionsError),
        (metadata, MAX_METADATA_BYTES, OffsetMetadataTooLargeError),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_limit_is_taken_and_one_above_it_is_refused(
    warehouse: Warehouse, use: Callable[[Warehouse, int], object], most: int, error: type[TxnTableError]
) -> None:
    use(warehouse, most)

    with pytest.raises(error):
        use(warehouse, most + 1)


def test_transaction_at_its_limit_can_be_ended(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(32):
        producer.send_offsets_to_transaction({PLACE: 1}, f"{number:02}" + "g" * (LONGEST_NAME_BYTES - 20))

    with pytest.raises(RecordTooLargeError, match="groups=33"):
        producer.send_offsets_to_transaction({PLACE: 1}, "z" * LONGEST_NAME_BYTES)

    assert producer.state == "ABORTABLE_ERROR"
    producer.abort_transaction()
    assert producer.state == "READY"


def test_longest_path_is_that_of_a_segment_in_a_topic_with_the_longest_name() -> None:
    largest, topic = 2**63 - 1, "x" * LONGEST_TOPIC_NAME
    segments = segments_root(topic)
    paths = [
        f"{segments}/{segment_path('a' * 32, LARGEST_PARTITION_COUNT - 1, (largest, largest), 'b' * 32)}",
        f"{segments}/{marker_path('a' * 32, largest, largest)}",
        f"{segments}/{state_path(LARGEST_PARTITION_COUNT - 1)}",
        *(made(root, largest) for root in (segments, public_root(topic)) for made in (commit_path, checkpoint_path)),
        heartbeat_path("g" * LONGEST_NAME_BYTES, "m"),
        f"system/transaction_log/{key_path('id', 'k' * LONGEST_NAME_BYTES)}",
    ]

    assert [len(path.encode()) for path in paths if len(path) >= LONGEST_PATH] == [LONGEST_PATH]
    assert len(paths[0].encode()) == LONGEST_PATH
