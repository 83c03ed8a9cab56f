"""A lakehouse table format with Kafka's transactions on object storage.

::

    import txntable

    warehouse = txntable.Warehouse.create("/data/warehouse")
    warehouse.admin().create_topic("orders", partitions=4)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.send("orders", key=b"42", value=b"paid")

Errors are in :mod:`txntable.errors`; all of them are :class:`~txntable.errors.TxnTableError`.
"""

from txntable.client.consumer import Consumer
from txntable.client.consumer_record import ConsumerRecord, OffsetAndTimestamp
from txntable.client.group_commit import OffsetAndMetadata
from txntable.client.producer import Producer
from txntable.client.rebalance_listener import ConsumerRebalanceListener
from txntable.client.records import OffsetRange, RecordMetadata, TopicPartition
from txntable.client.transaction import Transaction
from txntable.client.transaction_coordinator import CoordinatorConfig
from txntable.errors import TxnTableError
from txntable.snapshot import IsolationLevel, Snapshot
from txntable.warehouse import Warehouse
from txntable.warehouse_settings import WarehouseSettings

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
    "TxnTableError",
    "Warehouse",
    "WarehouseSettings",
]
