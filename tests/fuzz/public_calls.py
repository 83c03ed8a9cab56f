"""Every public call, with sound and hostile values for each of its arguments, on a small warehouse.

The tests enumerate the public functions themselves: one without its values here, or with an argument that has none,
fails them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.fuzz import hostile_values as hv
from tests.fuzz.argument import (
    AS_OF,
    BATCH,
    BOUNDS,
    COLUMNS,
    CONFIG,
    CONSUMER,
    FILTERS,
    FLAG,
    GROUP,
    LEVEL,
    MAYBE,
    NAMES,
    NEW_TOPIC,
    NONE,
    NUMBER,
    OFFSETS,
    PLACE,
    PLACES,
    SELECTION,
    SEND,
    STATES,
    STRANGE_NAMES,
    TIMEOUT,
    TOPIC,
    TOPICS,
    WAIT,
    Argument,
)
from tests.fuzz.hostile_values import (
    Value,
    always,
    anything,
    by_place,
    listed,
    made,
    mapped,
    numbers,
    paired,
    texts,
)
from tests.fuzz.stage import Stage
from txntable.admin.admin import Admin
from txntable.admin.offset_listing import OffsetSpec
from txntable.admin.upkeep import UpkeepLimits
from txntable.consumer.consumer import Consumer
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.partition.batch import ProducerEpoch
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction
from txntable.snapshot.snapshot import Snapshot
from txntable.upkeep.transaction_coordinator import CoordinatorConfig, TransactionCoordinator
from txntable.warehouse.warehouse import Warehouse

PUBLIC: Mapping[type, str] = {
    Warehouse: "warehouse",
    Admin: "admin",
    Producer: "producer",
    Transaction: "transaction",
    Consumer: "consumer",
    Snapshot: "snapshot",
    TransactionCoordinator: "coordinator",
}
"""The classes whose objects users hold, and where a stage has one."""

_NEEDS_SPARK = "takes a Spark session or a DataFrame"
_INSIDE = "for other parts of this project"
NOT_CALLED: Mapping[str, str] = {
    "Warehouse.read": _NEEDS_SPARK,
    "Warehouse.read_stream": _NEEDS_SPARK,
    "Warehouse.create_views": _NEEDS_SPARK,
    "Warehouse.batch_writer": _NEEDS_SPARK,
    "Transaction.write": _NEEDS_SPARK,
    "Transaction.write_all": _NEEDS_SPARK,
    "Consumer.read": _NEEDS_SPARK,
    "Consumer.read_together": _NEEDS_SPARK,
    "Snapshot.read": _NEEDS_SPARK,
    "Producer.segment_plan": _INSIDE,
    "Producer.stage": _INSIDE,
    "Producer.spoil": _INSIDE,
    "Consumer.offsets_sent": _INSIDE,
    "Consumer.offsets_decided": _INSIDE,
    "Consumer.refused": _INSIDE,
    "Snapshot.pin": _INSIDE,
    "TransactionCoordinator.run": "runs until it is stopped",
}
"""Public functions without a place below, and why."""

CALLS: Mapping[str, Mapping[str, Argument]] = {
    "Warehouse.admin": NONE,
    "Warehouse.complete": NONE,
    "Warehouse.metrics": NONE,
    "Warehouse.settings": NONE,
    "Warehouse.create": {
        "url": Argument(
            made("a folder", lambda: "made"),
            always("", " ", "\x00", "a\x00b", "\ud800", 7, None, b"x", "http://x", "x://"),
        ),
        "storage_options": Argument(always(None, {}), st.one_of(mapped(texts, anything), anything)),
        "exist_ok": FLAG,
        "settings": Argument(always(None, WarehouseSettings())),
        "durability": Argument(always("page-cache", "full"), st.one_of(texts, anything)),
    },
    "Warehouse.open": {
        "url": Argument(
            made("a folder", lambda: "made"),
            always("", " ", "\x00", "a\x00b", "\ud800", 7, None, b"x", "http://x", "x://"),
        ),
        "storage_options": Argument(always(None, {}), st.one_of(mapped(texts, anything), anything)),
        "durability": Argument(always("page-cache", "full"), st.one_of(texts, anything)),
        "recovering": FLAG,
    },
    "Warehouse.coordinator": {"config": Argument(always(None, CoordinatorConfig()))},
    "Warehouse.producer": {
        "transactional_id": Argument(always(None, "other"), st.one_of(texts, anything)),
        "transaction_timeout_ms": Argument(always(1_000, 60_000), st.one_of(numbers, anything)),
        "enable_idempotence": FLAG,
        "linger_ms": Argument(always(None, 0), st.one_of(numbers, anything)),
        "batch_size": Argument(always(1, 16384), st.one_of(numbers, anything)),
        "max_request_size": Argument(always(1048576), st.one_of(numbers, anything)),
        "partitioner": Argument(always("default", "round_robin"), st.one_of(texts, anything)),
        "partitioner_ignore_keys": FLAG,
        "compression_type": Argument(always("zstd", "none"), st.one_of(texts, anything)),
    },
    "Warehouse.consumer": {
        "isolation_level": Argument(always("read_committed", "read_uncommitted"), st.one_of(texts, anything)),
        "auto_offset_reset": Argument(always("latest", "earliest", "none"), st.one_of(texts, anything)),
        "max_poll_records": Argument(always(1, 500), st.one_of(numbers, anything)),
        "fetch_max_bytes": Argument(always(1, 1024), st.one_of(numbers, anything)),
        "max_partition_fetch_bytes": Argument(always(1, 1024), st.one_of(numbers, anything)),
        "consumer_timeout_ms": Argument(always(None, 0), st.one_of(numbers, anything)),
        "prefetch": Argument(always(False)),
        "group_id": Argument(always("g", "third"), st.one_of(texts, anything)),
        "group_instance_id": Argument(always(None, "i"), st.one_of(texts, anything)),
        "client_id": Argument(always("c"), st.one_of(texts, anything)),
        "enable_auto_commit": FLAG,
        "auto_commit_interval_ms": Argument(always(0, 5000), st.one_of(numbers, anything)),
        "session_timeout_ms": Argument(always(45_000), st.one_of(numbers, anything)),
        "heartbeat_interval_ms": Argument(always(3_000), st.one_of(numbers, anything)),
        "max_poll_interval_ms": Argument(always(300_000), st.one_of(numbers, anything)),
        "partition_assignment_strategy": Argument(always(["range"], ("sticky",)), st.one_of(listed(texts), anything)),
        "default_api_timeout_ms": Argument(always(0, 1), st.one_of(numbers, anything)),
        "metadata_max_age_ms": Argument(always(1), st.one_of(numbers, anything)),
        "background_heartbeat": Argument(always(False)),
    },
    "Warehouse.read_arrow": {
        "topic": TOPIC,
        "isolation_level": LEVEL,
        "as_of": AS_OF,
        "columns": SELECTION,
        "filters": FILTERS,
        "starting_offsets": BOUNDS,
        "ending_offsets": BOUNDS,
    },
    "Warehouse.snapshot": {"as_of": AS_OF},
    "Warehouse.snapshot_of": {"topic": TOPIC, "as_of": AS_OF},
    "Warehouse.topic_log": {"name": TOPIC},
    "Warehouse.topic_reader": {"name": TOPIC},
    "Warehouse.verify": {"topics": TOPICS, "progress": Argument(always(None))},
    "Snapshot.committed_offsets": {"group": GROUP},
    "Snapshot.read_arrow": {
        "topic": TOPIC,
        "columns": SELECTION,
        "filters": FILTERS,
        "starting_offsets": BOUNDS,
        "ending_offsets": BOUNDS,
    },
    "Snapshot.topic_settings": {"topic": TOPIC},
    "Snapshot.version": {"topic": TOPIC},
    "Snapshot.view": {"topic": TOPIC},
    "TransactionCoordinator.claim": NONE,
    "TransactionCoordinator.run_once": NONE,
    "Producer.init_transactions": {"timeout": WAIT, "keep_prepared": FLAG},
    "Producer.resume": {
        "identity": Argument(always(ProducerEpoch(0, 0)), paired(ProducerEpoch, numbers, numbers) | anything)
    },
    "Producer.begin_transaction": {"batch_id": BATCH},
    "Producer.check_batch": {"batch_id": BATCH},
    "Producer.is_committed": {"batch_id": BATCH},
    "Producer.committed_batches": NONE,
    "Producer.transaction": {"batch_id": BATCH},
    "Producer.abort_transaction": {"timeout": WAIT},
    "Producer.commit_transaction": {"timeout": WAIT},
    "Producer.prepare_transaction": NONE,
    "Producer.complete_transaction": {"token": Argument(always(None), st.one_of(texts, anything))},
    "Producer.close": NONE,
    "Producer.flush": {"timeout": WAIT},
    "Producer.metrics": NONE,
    "Producer.partitions_for": {"topic": TOPIC},
    "Producer.topic_log": {"topic": TOPIC},
    "Producer.send": SEND,
    "Producer.send_offsets_of": {"consumer": CONSUMER},
    "Producer.send_offsets_to_transaction": {"offsets": OFFSETS, "group": GROUP},
    "Transaction.send": SEND,
    "Transaction.flush": NONE,
    "Transaction.prepare": NONE,
    "Transaction.send_offsets": {"consumer": CONSUMER},
    "Consumer.assign": {"partitions": PLACES},
    "Consumer.assignment": NONE,
    "Consumer.beginning_offsets": {"partitions": PLACES},
    "Consumer.end_offsets": {"partitions": PLACES},
    "Consumer.close": NONE,
    "Consumer.commit": {"offsets": OFFSETS},
    "Consumer.commit_async": {"offsets": OFFSETS, "callback": Argument(always(None))},
    "Consumer.committed": {"partitions": PLACES, "timeout_ms": TIMEOUT},
    "Consumer.current_lag": {"partition": PLACE},
    "Consumer.consumer_group_metadata": NONE,
    "Consumer.get_watermark_offsets": {"partition": PLACE},
    "Consumer.group_metadata": NONE,
    "Consumer.highwater": {"partition": PLACE},
    "Consumer.last_stable_offset": {"partition": PLACE},
    "Consumer.offsets_for_times": {
        "timestamps": Argument(mapped(hv.PLACES, always(0, 1)), by_place(always(0), numbers))
    },
    "Consumer.offsets_to_send": NONE,
    "Consumer.pause": {"partitions": PLACE},
    "Consumer.partitions_for_topic": {"topic": TOPIC},
    "Consumer.paused": NONE,
    "Consumer.poll": {"timeout_ms": TIMEOUT, "max_records": MAYBE, "min_records": MAYBE},
    "Consumer.poll_batches": {"timeout_ms": TIMEOUT, "max_records": MAYBE},
    "Consumer.position": {"partitions": PLACE},
    "Consumer.positions": NONE,
    "Consumer.ranges": NONE,
    "Consumer.read_arrow": {
        "topic": TOPIC,
        "columns": SELECTION,
        "max_offsets_per_partition": MAYBE,
        "timeout_ms": TIMEOUT,
    },
    "Consumer.resume": {"partitions": PLACE},
    "Consumer.seek": {"partition": PLACE, "offset": NUMBER},
    "Consumer.seek_to_beginning": {"partitions": PLACE},
    "Consumer.seek_to_committed": {"partitions": PLACE},
    "Consumer.seek_to_end": {"partitions": PLACE},
    "Consumer.subscribe": {
        "topics": TOPICS,
        "pattern": Argument(always(None, "t.*"), st.one_of(texts, always("(", "*", "(" * 200), anything)),
        "listener": Argument(always(None)),
        "on_assign": Argument(always(None)),
        "on_revoke": Argument(always(None)),
        "on_lost": Argument(always(None)),
    },
    "Consumer.subscription": NONE,
    "Consumer.metrics": NONE,
    "Consumer.topics": NONE,
    "Consumer.unsubscribe": NONE,
    "Consumer.wakeup": NONE,
    "Admin.abort_transaction": {
        "transactional_id": Argument(always(None, "etl"), st.one_of(texts, anything)),
        "topic": Argument(always(None, "t"), STRANGE_NAMES),
        "partition": MAYBE,
        "start_offset": MAYBE,
        "producer_id": MAYBE,
        "producer_epoch": MAYBE,
        "validate_only": FLAG,
    },
    "Admin.add_columns": {
        "topic": TOPIC,
        "columns": Argument(
            made("a column", lambda: [pa.field("more", pa.string())]), st.one_of(listed(hv.fields), hv.schemas)
        ),
        "inside": Argument(always(()), st.one_of(listed(texts), anything)),
    },
    "Admin.alter_configs": {"topic": TOPIC, "changes": CONFIG, "validate_only": FLAG},
    "Admin.alter_consumer_group_offsets": {"group": Argument(always("idle"), GROUP.hostile), "offsets": OFFSETS},
    "Admin.alter_warehouse": {
        "changes": Argument(
            always({}, {"offsets_retention_ms": 86_400_000}, {"batch_retention_ms": None}),
            mapped(always("vacuum_retention_ms", "offsets_retention_ms", "snapshot_retention_ms"), anything)
            | mapped(texts, always(1))
            | anything,
        ),
        "validate_only": FLAG,
    },
    "Admin.check_upkeep": {"limits": Argument(always(None, UpkeepLimits()))},
    "Admin.create_partitions": {
        "new_totals": Argument(
            mapped(always("t"), always(3)), mapped(always("t"), numbers) | mapped(texts, always(3)) | anything
        ),
        "validate_only": FLAG,
    },
    "Admin.create_topic": {
        "name": NEW_TOPIC,
        "partitions": Argument(always(1, 2), st.one_of(numbers, anything)),
        "schema": Argument(made("columns", lambda: COLUMNS) | always(None), hv.schemas),
        "key": Argument(always((), ["x"]), st.one_of(listed(texts), anything)),
        "config": Argument(always(None, {}), CONFIG.hostile),
        "exist_ok": FLAG,
        "validate_only": FLAG,
    },
    "Admin.delete_consumer_group_offsets": {"group": GROUP, "partitions": PLACES},
    "Admin.delete_consumer_groups": {"ids": NAMES},
    "Admin.delete_records": {
        "before": Argument(mapped(hv.PLACES, always(0, 1, None)), by_place(always(1), numbers)),
        "validate_only": FLAG,
    },
    "Admin.delete_topic": {"name": TOPIC},
    "Admin.describe_configs": {"topics": TOPICS},
    "Admin.describe_consumer_groups": {"ids": NAMES},
    "Admin.describe_producers": {"partitions": PLACES},
    "Admin.describe_topics": {"names": TOPICS},
    "Admin.describe_transactions": {"ids": NAMES},
    "Admin.fence_producers": {"ids": NAMES},
    "Admin.find_blocking_transactions": {"topics": TOPICS},
    "Admin.find_hanging_transactions": {
        "topic": Argument(always(None, "t"), STRANGE_NAMES),
        "partition": MAYBE,
        "max_transaction_timeout_ms": MAYBE,
    },
    "Admin.list_consumer_group_offsets": {
        "group": GROUP,
        "partitions": PLACES,
        "require_stable": FLAG,
        "timeout_ms": WAIT,
    },
    "Admin.list_consumer_groups": {"states": STATES},
    "Admin.list_offsets": {
        "wanted": Argument(mapped(hv.PLACES, always("earliest", OffsetSpec.LATEST, 0)), by_place(always(0), anything)),
        "isolation_level": Argument(always("read_committed", "read_uncommitted")),
    },
    "Admin.list_lags": {"topics": TOPICS},
    "Admin.list_topics": {"deleted": FLAG},
    "Admin.list_transactions": {
        "states": STATES,
        "producer_ids": Argument(always(None, [0]), st.one_of(listed(numbers), anything)),
        "duration_ms": MAYBE,
        "pattern": Argument(always(None, "e.*"), st.one_of(texts, always("(", "(" * 200), anything)),
    },
    "Admin.remove_members_from_consumer_group": {"group": GROUP, "members": NAMES},
    "Admin.topic_twins": {"names": TOPICS},
}
"""Class and function -> its arguments by name."""

VALUES: Mapping[type, Mapping[str, Argument]] = {
    WarehouseSettings: dict.fromkeys(
        (
            "vacuum_retention_ms",
            "transaction_max_timeout_ms",
            "transactional_id_expiration_ms",
            "producer_id_expiration_ms",
            "batch_retention_ms",
            "offsets_retention_ms",
            "snapshot_retention_ms",
        ),
        Argument(always(90 * 86_400_000), st.one_of(numbers, anything)),
    ),
    CoordinatorConfig: {
        **dict.fromkeys(
            (
                "completion_interval_ms",
                "publication_interval_ms",
                "member_expulsion_interval_ms",
                "transactional_id_expiration_interval_ms",
                "producer_id_expiration_interval_ms",
                "offset_expiration_interval_ms",
                "log_cleanup_interval_ms",
                "decision_age_ms",
            ),
            Argument(always(1000), st.one_of(numbers, anything)),
        ),
        "given_up_topics": Argument(always((), ("gone",)), st.one_of(texts, anything)),
    },
}
"""Classes that users make themselves, which look at what they are given."""


def target(stage: Stage, call: str) -> Callable[..., Any]:
    """Return the bound function of a call."""
    owner, name = call.split(".")
    holders = {kind.__name__: place for kind, place in PUBLIC.items()}
    one = getattr(stage, holders[owner])
    if isinstance(one, Consumer):
        # No call waits: whoever polls is woken up at once.
        one.wakeup()
    function: Callable[..., Any] = getattr(one, name)
    return function


def arguments(stage: Stage, call: str, given: Mapping[str, Value]) -> tuple[list[Any], dict[str, Any]]:
    """Return what is handed over: a value for ``*partitions`` is one of them."""
    found = {name: value.make() for name, value in given.items()}
    if "consumer" in found and found["consumer"] is None:
        found["consumer"] = stage.consumer
    if call in STARRED:
        return [found["partitions"]], {}
    return [], found


STARRED = frozenset(
    f"Consumer.{name}" for name in ("pause", "resume", "seek_to_beginning", "seek_to_committed", "seek_to_end")
)
