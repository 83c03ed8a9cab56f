"""The creation of a warehouse: its identity, and version 0 of its two keyed tables (PROTOCOL.md §2, §3.3).

Writing ``_warehouse.json`` *is* the creation; what is missing after that is made by whoever opens
the warehouse with write access.  Must not know of clients.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from txntable.coordinator.row_json import Fields, decode_object, parse_json
from txntable.errors import (
    DamagedDataError,
    InvalidRequestError,
    StorePermissionError,
    StoreUnavailableError,
    WarehouseAlreadyExistsError,
    WarehouseNotFoundError,
    WarehouseReplacedError,
)
from txntable.format.layout import (
    LONGEST_PATH,
    OFFSET_LOG_ROOT,
    PROBE_FOLDER,
    TOPICS_FOLDER,
    TRANSACTION_LOG_ROOT,
    WAREHOUSE_FILE,
    log_folder,
)
from txntable.format.warehouse_settings import WarehouseSettings, settings_properties
from txntable.log.actions import Action
from txntable.log.asking import Asking, answer
from txntable.log.damage import reading
from txntable.log.delta_log import DeltaLog
from txntable.log.keyed_table import creation_actions
from txntable.log.table_state import TableState
from txntable.offsets.offset_rows import OFFSET_LOG_COLUMNS
from txntable.runtime.environment import Environment
from txntable.segments.topic_metadata import FORMAT, check_format, guard_properties, unsupported_format
from txntable.storage.object_store import ObjectStore
from txntable.storage.probe import probe
from txntable.storage.store_clock import StoreClock
from txntable.topics.topic_log import known
from txntable.transactions.transaction_rows import TRANSACTION_LOG_COLUMNS

_LARGEST_BYTES = 64 * 1024
_ID_PROPERTY = "txntable.warehouse.id"
_IDENTITY: Fields = {"format": str, "warehouse_id": str, "created_at": int, "capabilities": dict}
_WAREHOUSE_ID = re.compile(r"[0-9a-f]{32}")
_TABLES: Mapping[str, pa.Schema] = {
    TRANSACTION_LOG_ROOT: TRANSACTION_LOG_COLUMNS,
    OFFSET_LOG_ROOT: OFFSET_LOG_COLUMNS,
}

LONGEST_KEY_BYTES = 1024
"""Of S3 and of Google Cloud Storage; Azure's are no shorter."""


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


def write_identity(store: ObjectStore, environment: Environment) -> bool:
    """Create a warehouse where there is none; return whether it was this call that did.

    Raises
    ------
    WarehouseAlreadyExistsError
        The location is not empty: choose another.
    DamagedDataError
        It holds a warehouse whose identity is gone: restore that.
    StoreUnsuitableError
        The store's put-if-absent does not hold what it promises.
    InvalidRequestError
        The url's path is too long: choose a shorter one.
    StoreUnavailableError
        Call again.
    """
    if store.get(WAREHOUSE_FILE) is not None:
        return False
    _require_short_prefix(store.spec.url)
    _require_unused(store)
    capabilities = probe(store, environment)
    now_ms = StoreClock(store, environment).now_ms()
    identity = WarehouseIdentity(FORMAT, environment.new_id(), now_ms, asdict(capabilities))
    data = json.dumps(asdict(identity), indent=2).encode()
    try:
        store.put_if_absent(WAREHOUSE_FILE, data)
    except StoreUnavailableError:
        if store.get(WAREHOUSE_FILE) is None:
            raise
    # Whatever the answer was: what is there now tells whose creation it is.
    try:
        return read_identity(store).warehouse_id == identity.warehouse_id
    except WarehouseNotFoundError as error:
        # S3's 409: another creation was under way, and none is done.
        raise StoreUnavailableError("nothing was created; call again", path=WAREHOUSE_FILE) from error


def _require_short_prefix(url: str) -> None:
    """Refuse a prefix below which the longest path would be no key of S3: a topic's first segment would find it out."""
    _, is_remote, place = url.partition("://")
    size, most = len(place.partition("/")[2].strip("/").encode()), LONGEST_KEY_BYTES - 1 - LONGEST_PATH
    if is_remote and size > most:
        raise InvalidRequestError(
            "the path of the warehouse's URL is too long; choose a shorter one", bytes=size, most=most
        )


def _require_unused(store: ObjectStore) -> None:
    for meta in store.list(""):
        if not meta.path.startswith(("system/clock", f"{PROBE_FOLDER}/")):
            _refuse_lost_identity(store)
            raise WarehouseAlreadyExistsError(
                "the location is not empty and holds no warehouse; choose an empty folder or prefix",
                url=store.spec.url,
                found=meta.path,
            )


def _refuse_lost_identity(store: ObjectStore) -> None:
    """Refuse to take a place for an empty one where a warehouse's logs are: only its identity is gone."""
    found = None
    # Who may not list learns what he asked for.
    with suppress(StorePermissionError):
        logs = (store.list(log_folder(root)) for root in (TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT))
        found = next(chain.from_iterable(logs), None)
    # Looked for once more: it may have been created meanwhile, and the logs after it.
    if found is not None and store.get(WAREHOUSE_FILE) is None:
        raise DamagedDataError(
            f"a warehouse is here whose {WAREHOUSE_FILE} is gone; restore that file, which never changes, from a backup"
            " or an older version, and create nothing over it; or, where the warehouse was deleted on purpose, delete"
            " what is left",
            url=store.spec.url,
            found=found.path,
        )


def create_missing_log(log: DeltaLog[Any], identity: WarehouseIdentity, settings: WarehouseSettings) -> None:
    """Make version 0 of a keyed table that was just read, when an interrupted creation left it out.

    Raises
    ------
    DamagedDataError
        The table is gone although there are topics; or it is missing, and these credentials may not write.
    UnsupportedFormatError
        It has another format than the warehouse: upgrade.
    """
    if log.ensure_fresh().version is None:
        _require_unborn(log)
        _create_log(log, identity, settings)
    metadata = log.ensure_fresh().metadata
    configuration = {} if metadata is None else metadata.configuration
    check_format(configuration, log.root)
    if configuration.get(_ID_PROPERTY, identity.warehouse_id) != identity.warehouse_id:
        _refuse_another_identity(log, identity)


def _refuse_another_identity(log: DeltaLog[Any], identity: WarehouseIdentity) -> None:
    if read_identity(log.context.store) != identity:
        raise WarehouseReplacedError(
            "the warehouse was deleted and created again while it was opened; open it anew", log=log.root
        )
    raise DamagedDataError(
        f"`{WAREHOUSE_FILE}` is of another warehouse than this log: restore it alone, from any backup or older version"
        " (it never changes); where `txntable warehouse verify` says nothing of it, restore the log",
        log=log.root,
        warehouse_id=identity.warehouse_id,
    )


def _require_unborn(log: DeltaLog[Any]) -> None:
    """Refuse to make a log anew that was lost: it would give out positions and producer ids a second time."""
    # Whoever makes a topic has opened the warehouse, hence made both logs before: the log is looked for once more.
    if log.context.store.folders(TOPICS_FOLDER) and log.refresh().version is None:
        raise DamagedDataError(
            "the warehouse has topics but has lost this log: restore the log from a backup. Only where the whole"
            " warehouse was deleted on purpose, and something was put since, delete what is left of it and create"
            " it anew",
            log=log.root,
        )


def _create_log(log: DeltaLog[Any], identity: WarehouseIdentity, settings: WarehouseSettings) -> None:
    name = log.root
    table_id = f"{identity.warehouse_id[:31]}{0 if name == TRANSACTION_LOG_ROOT else 1}"
    properties = {
        **guard_properties(settings.vacuum_retention_ms),
        **settings_properties(settings),
        _ID_PROPERTY: identity.warehouse_id,
    }

    def decide(table: TableState) -> Sequence[Action]:
        if table.version is not None:
            return []
        return creation_actions(name.rsplit("/", 1)[1], table_id, _TABLES[name], properties, log.context.clock.now_ms())

    try:
        known(log.commit("CREATE", decide), name)
    except StorePermissionError as error:
        raise DamagedDataError(
            "the warehouse's creation was interrupted; open it once with write access", log=name
        ) from error


def read_identity(store: ObjectStore) -> WarehouseIdentity:
    """Return what the warehouse says of itself.

    Raises
    ------
    WarehouseNotFoundError
        There is none.
    UnsupportedFormatError
        It has a newer format: upgrade.
    DamagedDataError
        It cannot be read, or is gone while the logs are there.
    """
    return answer(store, reading_identity(store))


def reading_identity(store: ObjectStore) -> Asking[WarehouseIdentity]:
    """Do the same beside other readings."""
    url = store.spec.url
    (found,) = yield [WAREHOUSE_FILE]
    if found is None:
        _refuse_lost_identity(store)
        raise WarehouseNotFoundError("there is no warehouse here; create one, or check the URL", url=url)
    with reading(WAREHOUSE_FILE):
        if len(found.data) > _LARGEST_BYTES:
            raise ValueError("the warehouse's identity is too long")
        document = parse_json(found.data.decode())
        if document["format"] != FORMAT:
            raise unsupported_format(document["format"], url=url)
        identity = WarehouseIdentity(**decode_object(document, "warehouse", _IDENTITY, {}))
        if not _WAREHOUSE_ID.fullmatch(identity.warehouse_id):
            raise ValueError("a warehouse id must have 32 hex digits")
        return identity
