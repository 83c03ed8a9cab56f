"""A lakehouse table format with Kafka's transactions on object storage.

::

    import txntable

    warehouse = txntable.Warehouse.create("/data/warehouse")
    warehouse.admin().create_topic("orders", partitions=4)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.send("orders", key=b"42", value=b"paid")

Errors are here too, as ``txntable.<Name>``; all of them are :class:`txntable.TxnTableError`.  A name is imported when
it is first asked for: ``import txntable.coordinator`` loads no library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from txntable import errors
from txntable.errors import *  # noqa: F403 - its __all__ is the list
from txntable.runtime.other_names import told_of_module

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer
    from txntable.consumer.consumer_record import ConsumerRecord, OffsetAndTimestamp
    from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
    from txntable.format.isolation import IsolationLevel
    from txntable.format.records import OffsetRange, RecordMetadata, TopicPartition
    from txntable.format.warehouse_settings import WarehouseSettings
    from txntable.offsets.group_commit import OffsetAndMetadata
    from txntable.producer.producer import Producer
    from txntable.producer.transaction import Transaction
    from txntable.snapshot.snapshot import Snapshot
    from txntable.upkeep.transaction_coordinator import CoordinatorConfig
    from txntable.warehouse.warehouse import Warehouse

_ORIGINS = {
    "Consumer": "consumer.consumer",
    "ConsumerRebalanceListener": "consumer.rebalance_listener",
    "ConsumerRecord": "consumer.consumer_record",
    "CoordinatorConfig": "upkeep.transaction_coordinator",
    "IsolationLevel": "format.isolation",
    "OffsetAndMetadata": "offsets.group_commit",
    "OffsetAndTimestamp": "consumer.consumer_record",
    "OffsetRange": "format.records",
    "Producer": "producer.producer",
    "RecordMetadata": "format.records",
    "Snapshot": "snapshot.snapshot",
    "TopicPartition": "format.records",
    "Transaction": "producer.transaction",
    "Warehouse": "warehouse.warehouse",
    "WarehouseSettings": "format.warehouse_settings",
}

__all__ = [
    "Consumer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "CoordinatorConfig",
    "IsolationLevel",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetRange",
    "Producer",
    "RecordMetadata",
    "Snapshot",
    "TopicPartition",
    "Transaction",
    "Warehouse",
    "WarehouseSettings",
]
__all__ += errors.__all__


def __getattr__(name: str) -> object:
    if name not in _ORIGINS:
        calls, kinds = (import_module(f"txntable.format.kafka_{what}_names") for what in ("call", "error"))
        raise told_of_module(__name__, name, {**kinds.ERRORS, **calls.MODULE})
    found = getattr(import_module(f"txntable.{_ORIGINS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
