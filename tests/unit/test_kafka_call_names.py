"""Who types a name of Kafka's clients that is not here is told what is called instead."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import txntable
from tests.unit.reading import TOPIC, site_with_topic
from txntable import errors
from txntable.admin.admin import Admin
from txntable.compat import confluent
from txntable.compat.confluent import admin as confluent_admin
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.format.kafka_call_names import (
    ADMIN,
    ADMIN_ARGUMENTS,
    CONSUMER,
    CONSUMER_ARGUMENTS,
    OF_PRODUCERS,
    PRODUCER,
    PRODUCER_ARGUMENTS,
    RECORD,
    RECORD_METADATA,
    TRANSACTION,
    TRANSACTIONS,
    WAREHOUSE_ARGUMENTS,
)
from txntable.format.kafka_error_names import ERRORS
from txntable.format.records import RecordMetadata, TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction
from txntable.runtime.other_names import BY_PLACE, MISSING
from txntable.warehouse.warehouse import Warehouse

PARTITION = TopicPartition(TOPIC, 0)
UNTYPED: Any = Warehouse


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (Admin, "create_topics", "call create_topic for each, with partitions=$"),
        (Admin, "list_groups", "call list_consumer_groups$"),
        (Admin, "listConsumerGroups", "call list_consumer_groups$"),
        (Admin, "deleteTopics", "call delete_topic for each$"),
        (Admin, "describe_cluster", "there are no brokers"),
        (Producer, "produce", r"call send\("),
        (Producer, "beginTransaction", "call begin_transaction$"),
        (Producer, "abort", "call abort_transaction$"),
        (Producer, "commit", "call commit_transaction$"),
        (confluent.Producer, "abort", "call abort_transaction$"),
        (Consumer, "abort_transaction", "call it of one that has a transactional id$"),
        (Warehouse, "transaction", "it is a producer's"),
        (confluent.Consumer, "commit_transaction", "it is a producer's"),
        (Admin, "abort", "call abort_transaction$"),
        (Transaction, "abort", "raise an exception in the block"),
        (Transaction, "commit", "the end of the block commits$"),
        (Consumer, "commitSync", "call commit$"),
        (Consumer, "store_offsets", "what has been processed"),
        (Consumer, "never_heard_of", "'Consumer' object has no attribute 'never_heard_of'$"),
        (Consumer, "_Hidden", "'Consumer' object has no attribute '_Hidden'$"),
    ],
)
def test_attribute_that_kafkas_clients_have_is_told_with_what_is_called_here(kind: type, name: str, said: str) -> None:
    client: object = object.__new__(kind)

    assert not hasattr(client, name)
    with pytest.raises(AttributeError, match=said):
        getattr(client, name)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda warehouse: warehouse.admin().create_topic("x", num_partitions=2), "it is partitions here$"),
        (lambda warehouse: warehouse.admin().create_topic("x", 2), "all but the name are given by name"),
        (lambda warehouse: warehouse.producer().send(TOPIC, b"v", b"k"), "all but topic and value are given by name"),
        (lambda warehouse: warehouse.producer().send(TOPIC, value=b"v", timestamp=1), "it is timestamp_ms here$"),
        (lambda warehouse: warehouse.producer().close(timeout=5), r"call flush\(timeout\) before it$"),
        (lambda warehouse: warehouse.consumer().poll(timeout=1.0), "say the unit: timeout_ms$"),
        (lambda warehouse: warehouse.consumer().close(autocommit=False), "enable_auto_commit"),
        (lambda warehouse: warehouse.consumer(group_id="g").commit(asynchronous=False), "durable when it returns$"),
        (lambda warehouse: warehouse.consumer().seek(TOPIC, 0, 0), r"seek\(TopicPartition"),
        (lambda warehouse: warehouse.consumer().subscribe([TOPIC], onAssign=print), "it is on_assign here$"),
        (lambda warehouse: warehouse.consumer().subscribe([TOPIC], None), "all but topics are given by name"),
        (lambda _: UNTYPED("/data/warehouse"), r"call Warehouse\.open\(url\), or Warehouse\.create\(url\)$"),
        (lambda _: UNTYPED("/data/warehouse", storage_options={}), r"call Warehouse\.open\(url\), or"),
        (lambda warehouse: warehouse.admin().create_partitions("orders", 8), r'create_partitions\(\{"orders": 8\}\)$'),
        (
            lambda warehouse: warehouse.admin().delete_records(TOPIC, 0, 5),
            r'delete_records\(\{TopicPartition\("orders", 0\)',
        ),
        (lambda _: UNTYPED(url="/data/warehouse"), r"call Warehouse\.open\(url\), or"),
    ],
)
def test_argument_that_kafkas_clients_take_is_told_with_what_is_given_here(
    call: Callable[[Warehouse], object], said: str
) -> None:
    _, warehouse = site_with_topic()

    with pytest.raises(TypeError, match=said):
        call(warehouse)


def test_argument_that_nobody_takes_is_pythons_own_error() -> None:
    _, warehouse = site_with_topic()

    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nonsense'$"):
        warehouse.consumer().poll(nonsense=1)  # type: ignore[call-arg]


def test_type_error_of_something_inside_of_a_call_is_not_told_as_an_argument() -> None:
    _, warehouse = site_with_topic()

    def told(consumer: object, partitions: object, timeout: int) -> None:
        """Take one more than a listener is given."""

    consumer = warehouse.consumer(group_id="g")
    consumer.subscribe([TOPIC], on_assign=told)  # type: ignore[arg-type]
    with pytest.raises(TypeError) as raised:
        consumer.poll(timeout_ms=0)

    assert "timeout_ms" not in str(raised.value)
    assert "told" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("kind", "names", "arguments"),
    [
        (Admin, ADMIN, ADMIN_ARGUMENTS),
        (Consumer, CONSUMER, CONSUMER_ARGUMENTS),
        (Producer, PRODUCER, PRODUCER_ARGUMENTS),
        (Transaction, TRANSACTION, {}),
        (Warehouse, OF_PRODUCERS, WAREHOUSE_ARGUMENTS),
        (confluent.Producer, TRANSACTIONS, {}),
        (confluent.Consumer, OF_PRODUCERS, {}),
        (RecordMetadata, RECORD_METADATA, {}),
        (ConsumerRecord, RECORD, {}),
    ],
)
def test_names_that_are_told_of_are_none_of_ours(
    kind: type, names: Mapping[str, str], arguments: Mapping[str, Mapping[str, str]]
) -> None:
    parameters = {name: inspect.signature(getattr(kind, name)).parameters for name in arguments}

    assert [name for name in names if name in dir(kind)] == []
    assert [(call, name) for call in arguments for name in arguments[call] if name in parameters[call]] == []
    named = [
        (call, said.removeprefix("it is ").removesuffix(" here"))
        for call, told in arguments.items()
        for name, said in told.items()
        if name not in (BY_PLACE, MISSING) and said.startswith("it is ")
    ]
    assert [(call, name) for call, name in named if name not in parameters[call]] == []
    called = [said.removeprefix("call ").split("(")[0].split(" ")[0].strip(",") for said in names.values()]
    assert [
        name for name in called if name.startswith(("list_", "describe_", "alter_")) and name not in dir(kind)
    ] == []


def test_alteration_of_settings_by_a_mapping_of_topics_is_told_how_they_are_given() -> None:
    admin: Any = site_with_topic()[0].open().admin()

    with pytest.raises(TypeError, match=r'alter_configs\("orders", \{"retention.ms": "1000"\}\)$'):
        admin.alter_configs({TOPIC: {"retention.ms": "1"}})


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (txntable, "KafkaConsumer", r"call Warehouse\.consumer\(\)"),
        (txntable, "AdminClient", r"call Warehouse\.admin\(\)$"),
        (txntable, "KafkaException", r"it is txntable\.TxnTableError$"),
        (txntable, "ProducerFencedException", r"it is txntable\.ProducerFencedError$"),
        (errors, "KafkaTimeoutError", r"StoreUnavailableError is raised"),
        (errors, "NoBrokersAvailable", r"it is txntable\.StoreUnavailableError$"),
        (errors, "Nonsense", "module 'txntable.errors' has no attribute 'Nonsense'$"),
        (txntable, "abort", r"abort_transaction of a producer, or of Warehouse\.admin\(\)"),
        (txntable, "Nonsense", "module 'txntable' has no attribute 'Nonsense'$"),
        (confluent, "SerializingProducer", "give bytes"),
        (confluent, "version", "importlib"),
        (confluent, "Nonsense", "module 'txntable.compat.confluent' has no attribute 'Nonsense'$"),
        (confluent_admin, "ConfigResource", r"Warehouse\.admin\(\)"),
    ],
)
def test_name_of_a_module_of_kafkas_clients_is_told_with_what_is_called_here(
    module: object, name: str, said: str
) -> None:
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=said):
        getattr(module, name)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("from txntable import KafkaConsumer", r"'KafkaConsumer' from 'txntable': call Warehouse\.consumer\(\)"),
        ("from txntable.errors import KafkaTimeoutError", r"'txntable\.errors': txntable\.StoreUnavailableError"),
        ("from txntable.compat.confluent import SerializingProducer", "'txntable.compat.confluent': give bytes"),
        ("from txntable.compat.confluent.admin import ConfigResource", r"Warehouse\.admin\(\)"),
        ("from txntable import Nonsense", r"cannot import name 'Nonsense' from 'txntable' \("),
        ("from txntable.errors import Nonsense", r"cannot import name 'Nonsense' from 'txntable.errors' \("),
    ],
)
def test_import_of_a_name_of_kafkas_clients_is_told_with_what_is_called_here(statement: str, said: str) -> None:
    with pytest.raises(ImportError, match=said):
        exec(statement, {})


@pytest.mark.parametrize("stem", ["KafkaTimeout", "ProducerFenced", "NoOffsetForPartition", "TopicAuthorizationFailed"])
def test_error_is_told_of_in_pythons_and_in_javas_spelling(stem: str) -> None:
    assert ERRORS[f"{stem}Error"] == ERRORS[f"{stem}Exception"]


def test_errors_that_are_told_of_are_ours() -> None:
    called = {said.removeprefix("it is txntable.") for said in ERRORS.values() if said.startswith("it is ")}

    assert called <= set(errors.__all__)
    assert [
        name for name in errors.__all__ if ERRORS.get(name, f"it is txntable.{name}") != f"it is txntable.{name}"
    ] == []


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: RecordMetadata(TOPIC).get(timeout=10), "after flush or commit_transaction$"),  # type: ignore[attr-defined]
        (lambda: RecordMetadata(TOPIC).add_errback(print), r"give send\(on_delivery=\)$"),  # type: ignore[attr-defined]
        (lambda: a_record().timestamp_type, r"message\.timestamp\.type$"),  # type: ignore[attr-defined]
        (lambda: a_record().never_heard_of, "no attribute 'never_heard_of'$"),  # type: ignore[attr-defined]
    ],
)
def test_attribute_of_kafka_pythons_futures_and_records_is_told_with_what_is_there(
    read: Callable[[], object], said: str
) -> None:
    with pytest.raises(AttributeError, match=said):
        read()


def test_epoch_of_a_leader_in_an_offset_is_told_to_be_left_out() -> None:
    with pytest.raises(TypeError, match="leave out the leader's epoch"):
        OffsetAndMetadata(3, "", -1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="leave out the leader's epoch"):
        OffsetAndMetadata(3, leader_epoch=-1)  # type: ignore[call-arg]


def a_record() -> ConsumerRecord:
    return ConsumerRecord(TOPIC, 0, 0, 0, None, None, [], {}, None)
