"""The clients of a warehouse, each made of what it needs of the handle; loaded when the first one is asked for.

Must not know how a warehouse is opened; what a client's settings mean is its own config's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from txntable.admin.admin import Admin
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_config import ConsumerSettings, consumer_config
from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidConfigError
from txntable.groups.group_client import GroupClient
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.producer.producer import Producer
from txntable.producer.producer_config import ProducerConfig, with_kafka_settings
from txntable.spark.scan.bounded_read import dataframe_reader
from txntable.spark.writing.batch_writer import BatchWriter, Write
from txntable.spark.writing.transactional_write import write_dataframes
from txntable.upkeep.transaction_coordinator import CoordinatorConfig, TransactionCoordinator
from txntable.verification.damage import Progress, Verification
from txntable.warehouse.stored_warehouse import verify_stored

if TYPE_CHECKING:
    from txntable.warehouse.warehouse import Warehouse


class WarehouseClients:
    """Makes the clients of a handle, which documents them.

    Parameters
    ----------
    warehouse : Warehouse
        The handle.
    """

    write_dataframes = staticmethod(write_dataframes)

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def admin(self) -> Admin:
        """Return the admin client."""
        warehouse = self._warehouse
        return Admin(warehouse.completer, warehouse.topic_reader, warehouse.settings())

    def producer(self, config: ProducerConfig, given: Mapping[str, object] | None) -> Producer:
        """Return a new producer."""
        warehouse = self._warehouse
        config = config if given is None else with_kafka_settings(config, given)
        limit = warehouse.settings().transaction_max_timeout_ms
        return Producer(config, warehouse.context, CoordinatorClient(warehouse.completer, warehouse.topic_log, limit))

    def consumer(self, given: Mapping[str, object] | None, named: ConsumerSettings) -> Consumer:
        """Return a new consumer."""
        warehouse = self._warehouse
        config = consumer_config(given, named, dataframe_reader(warehouse.url))
        groups = GroupClient(warehouse.offsets, warehouse.completer)
        return Consumer(config, warehouse.topic_reader, warehouse.transactions, groups)

    def coordinator(self, config: CoordinatorConfig | None) -> TransactionCoordinator:
        """Return a new coordinator job."""
        if not isinstance(config, CoordinatorConfig | None):
            raise InvalidConfigError("the coordinator's config must be a CoordinatorConfig", config=shown(config))
        warehouse = self._warehouse
        return TransactionCoordinator(
            warehouse.transactions,
            warehouse.offsets,
            warehouse.topic_log,
            warehouse.settings,
            config or CoordinatorConfig(),
        )

    def verify(self, topics: Sequence[str] | None, progress: Progress | None) -> Verification:
        """Read everything that is stored, and check it."""
        return verify_stored(self._warehouse.store, topics, progress, self._warehouse.context.environment)

    def batch_writer(self, transactional_id: str, write: Write, transaction_timeout_ms: int) -> BatchWriter:
        """Return what ``foreachBatch`` takes."""
        return BatchWriter(self._warehouse, transactional_id, write, transaction_timeout_ms)
