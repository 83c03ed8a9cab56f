"""A warehouse: where it is, what belongs to it, and the clients that work on it (PROTOCOL.md §1, §2).

Owns creation and opening.  Writing ``_warehouse.json`` *is* the creation; what is missing after
that (a log's version 0) is made by whoever opens the warehouse with write access.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from txntable.client.admin import Admin
from txntable.client.coordinator_client import CoordinatorClient
from txntable.client.producer import Producer
from txntable.client.producer_config import ProducerConfig
from txntable.completion import Completer
from txntable.environment import Environment, SystemEnvironment
from txntable.errors import (
    DamagedDataError,
    StorePermissionError,
    StoreUnavailableError,
    UnsupportedFormatError,
    WarehouseAlreadyExistsError,
    WarehouseNotFoundError,
)
from txntable.layout import OFFSET_LOG_ROOT, PROBE_FOLDER, TOPICS_FOLDER, TRANSACTION_LOG_ROOT, WAREHOUSE_FILE
from txntable.log.actions import Action
from txntable.log.delta_log import DeltaLog, LogContext
from txntable.log.keyed_table import creation_actions
from txntable.log.table_state import TableState
from txntable.offset_log import OFFSET_LOG_COLUMNS, OffsetLogFold
from txntable.snapshot import IsolationLevel, Snapshot, read_topic
from txntable.spark.transactional_write import write_dataframe
from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.open import open_store
from txntable.storage.probe import probe
from txntable.storage.store_clock import StoreClock
from txntable.topic_log import TopicLog, known
from txntable.topic_metadata import FORMAT, guard_properties
from txntable.transaction_log import TRANSACTION_LOG_COLUMNS, TransactionLog
from txntable.warehouse_settings import WarehouseSettings, settings_from, settings_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class WarehouseIdentity:
    """What ``_warehouse.json`` says.

    Attributes
    ----------
    format : str
        The format's name.
    warehouse_id : str
        32 hex digits.
    created_at : int
        The store's time, ms since 1970.
    capabilities : Mapping[str, Any]
        What the probe found.
    """

    format: str
    warehouse_id: str
    created_at: int
    capabilities: Mapping[str, Any]


class Warehouse:
    """A handle on a warehouse; made by :meth:`create` or :meth:`open`.  May be shared by threads."""

    def __init__(self, store: ObjectStore, environment: Environment, identity: WarehouseIdentity) -> None:
        self.store = store
        self.identity = identity
        self.url = store.spec.url
        clock = StoreClock(store, environment)
        self.context = LogContext(store, environment, clock, engine=f"txntable/{version('txntable')}")
        self.transactions = TransactionLog(self.context)
        self.offsets: DeltaLog[OffsetLogFold] = DeltaLog(self.context, OFFSET_LOG_ROOT, OffsetLogFold())
        self.completer = Completer(self.transactions, self.topic_log)
        self._topics: dict[str, TopicLog] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Warehouse({self.url!r})"

    # -- creating and opening ---------------------------------------------------------------

    @classmethod
    def create(
        cls,
        url: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
        settings: WarehouseSettings | None = None,
        durability: str = "full",
    ) -> Warehouse:
        """Create a warehouse, or finish a creation that was interrupted.

        Parameters
        ----------
        url : str
            ``s3://bucket/prefix``, ``gs://…``, ``az://…``, or a folder.
        storage_options : Mapping[str, str], optional
            The usual names of the store's client.
        exist_ok : bool
            Whether to open a warehouse that is there already.
        settings : WarehouseSettings, optional
            Retentions and limits.
        durability : str
            Local folders: ``"full"`` survives a power cut; ``"page-cache"`` only the death of a
            process: a power cut may tear transactions.

        Raises
        ------
        WarehouseAlreadyExistsError
            There is one, or the folder is used for something else: choose another place.
        StoreUnsuitableError
            The store's put-if-absent does not hold what it promises.
        """
        environment = SystemEnvironment()
        store = open_store(StoreSpec(url, dict(storage_options or {}), durability))
        return create_on(store, environment, exist_ok=exist_ok, settings=settings or WarehouseSettings())

    @classmethod
    def open(cls, url: str, storage_options: Mapping[str, str] | None = None, *, durability: str = "full") -> Warehouse:
        """Open a warehouse; parameters as for :meth:`create`.

        Raises
        ------
        WarehouseNotFoundError
            There is none.
        UnsupportedFormatError
            It has a newer format: upgrade.
        """
        environment = SystemEnvironment()
        return open_on(open_store(StoreSpec(url, dict(storage_options or {}), durability)), environment)

    # -- what belongs to it -----------------------------------------------------------------

    def topic_log(self, name: str) -> TopicLog:
        """Return the logs of a topic, one shared view for all clients of this handle."""
        with self._lock:
            if name not in self._topics:
                self._topics[name] = TopicLog(self.context, name)
            return self._topics[name]

    def settings(self) -> WarehouseSettings:
        """Return the warehouse's settings."""
        self.transactions.log.ensure_fresh()
        metadata = self.transactions.log.table.metadata
        if metadata is None:
            raise DamagedDataError("the warehouse has lost its transaction log", log=TRANSACTION_LOG_ROOT)
        return settings_from(metadata.configuration)

    def admin(self) -> Admin:
        """Return the admin client."""
        return Admin(self.context, self.transactions, self.completer, self.topic_log, self.settings())

    def producer(
        self,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        enable_idempotence: bool = True,
    ) -> Producer:
        """Return a new producer.

        Parameters
        ----------
        transactional_id : str, optional
            For transactions; without it the producer is idempotent.
        transaction_timeout_ms : int
            From the first enrolment of a transaction on, by the store's time.
        enable_idempotence : bool
            ``False``: at least once.
        """
        config = ProducerConfig(transactional_id, transaction_timeout_ms, enable_idempotence, write_dataframe)
        limit = self.settings().transaction_max_timeout_ms
        client = CoordinatorClient(self.transactions, self.completer, self.topic_log, limit)
        return Producer(config, self.context, client)

    def complete(self) -> int:
        """Abort what has timed out, complete and project all that waits; return how many transactions that were."""
        return self.completer.abort_timed_out() + self.completer.complete_all()

    # -- reading ----------------------------------------------------------------------------

    def snapshot(self, as_of: int | None = None) -> Snapshot:
        """Pin a consistent state of all topics at one decision position.

        Parameters
        ----------
        as_of : int, optional
            A position; default: now.

        Raises
        ------
        OffsetOutOfRangeError
            The position is in the future.
        """
        return Snapshot.pin(self.transactions, self.completer, self.topic_log, as_of)

    def read(
        self,
        spark: SparkSession,
        topic: str,
        *,
        isolation_level: str = IsolationLevel.SNAPSHOT.value,
        as_of: int | None = None,
    ) -> DataFrame:
        """Return a topic as a DataFrame.

        Parameters
        ----------
        spark : SparkSession
            With Delta.
        topic : str
            The topic's name.
        isolation_level : str
            ``"snapshot"``: what is committed; ``"read_uncommitted"``: what is appended.
        as_of : int, optional
            A decision position (snapshot only).
        """
        return read_topic(self, spark, topic, isolation_level, as_of)


def create_on(
    store: ObjectStore, environment: Environment, *, exist_ok: bool, settings: WarehouseSettings
) -> Warehouse:
    """Create a warehouse on an open store; see :meth:`Warehouse.create`."""
    if store.get(WAREHOUSE_FILE) is None:
        _require_unused(store)
        capabilities = probe(store, environment)
        identity = WarehouseIdentity(
            FORMAT, environment.new_id(), StoreClock(store, environment).now_ms(), asdict(capabilities)
        )
        data = json.dumps(asdict(identity), indent=2).encode()
        try:
            store.put_if_absent(WAREHOUSE_FILE, data)
        except StoreUnavailableError:
            if store.get(WAREHOUSE_FILE) is None:
                raise
        # Whatever the answer was: what is there now tells whose creation it is.
        created = _read_identity(store).warehouse_id == identity.warehouse_id
    else:
        created = False
    if not created and not exist_ok:
        # A creation that was killed is finished all the same.
        open_on(store, environment, settings)
        raise WarehouseAlreadyExistsError("there is a warehouse already; open it, or say exist_ok", url=store.spec.url)
    return open_on(store, environment, settings)


def _require_unused(store: ObjectStore) -> None:
    for meta in store.list(""):
        if not meta.path.startswith(("system/clock", f"{PROBE_FOLDER}/")):
            raise WarehouseAlreadyExistsError(
                "the place is used for something else; choose an empty folder or prefix",
                url=store.spec.url,
                found=meta.path,
            )


def open_on(store: ObjectStore, environment: Environment, settings: WarehouseSettings | None = None) -> Warehouse:
    """Open a warehouse on an open store, and make what an interrupted creation left out.

    Raises
    ------
    WarehouseNotFoundError
        There is none.
    UnsupportedFormatError
        It has a newer format: upgrade.
    DamagedDataError
        Its identity can not be read, or a log is gone although there are topics.
    """
    identity = _read_identity(store)
    warehouse = Warehouse(store, environment, identity)
    for log, name, columns in (
        (warehouse.transactions.log, TRANSACTION_LOG_ROOT, TRANSACTION_LOG_COLUMNS),
        (warehouse.offsets, OFFSET_LOG_ROOT, OFFSET_LOG_COLUMNS),
    ):
        if log.refresh().version is None:
            _require_unborn(log, name)
            _create_log(log, name, columns, identity, settings or WarehouseSettings())
    return warehouse


def _require_unborn(log: DeltaLog[Any], name: str) -> None:
    """Refuse to make a log anew that was lost: it would give out positions and producer ids a second time."""
    # Whoever makes a topic has opened the warehouse, hence made both logs before: the log is looked for once more.
    if log.context.store.folders(TOPICS_FOLDER) and log.refresh().version is None:
        raise DamagedDataError("the warehouse has topics but has lost this log; restore it from a backup", log=name)


def _create_log(
    log: DeltaLog[Any], name: str, columns: Any, identity: WarehouseIdentity, settings: WarehouseSettings
) -> None:
    table_id = f"{identity.warehouse_id[:31]}{0 if name == TRANSACTION_LOG_ROOT else 1}"
    properties = {
        **guard_properties(settings.vacuum_retention_ms),
        **settings_properties(settings),
        "txntable.warehouse.id": identity.warehouse_id,
    }

    def decide(table: TableState) -> Sequence[Action]:
        if table.version is not None:
            return []
        return creation_actions(name.rsplit("/", 1)[1], table_id, columns, properties, log.context.clock.now_ms())

    try:
        known(log.commit("CREATE", decide), name)
    except StorePermissionError as error:
        raise DamagedDataError(
            "the warehouse's creation was interrupted; open it once with write access", log=name
        ) from error


def _read_identity(store: ObjectStore) -> WarehouseIdentity:
    found = store.get(WAREHOUSE_FILE)
    if found is None:
        raise WarehouseNotFoundError("there is no warehouse here; create one, or check the url", url=store.spec.url)
    try:
        fields = json.loads(found.data)
        identity = WarehouseIdentity(**fields) if fields["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedDataError("the warehouse's identity can not be read", path=WAREHOUSE_FILE) from error
    if identity is None:
        raise UnsupportedFormatError(
            "the warehouse has a format that this version does not know; upgrade txntable",
            format=fields["format"],
            known=FORMAT,
        )
    return identity
