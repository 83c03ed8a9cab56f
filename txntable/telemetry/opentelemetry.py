"""The metrics of a warehouse handle as OpenTelemetry's instruments (``pip install 'txntable[opentelemetry]'``).

Owns the instruments and their names.  They are observable: the collector asks, and reads totals that are counted
anyway, so nothing is called while a transaction runs.  Needs OpenTelemetry's API alone; without an SDK it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from txntable.admin.lag_listing import WarehouseLags
from txntable.admin.readable_part import ReadablePart
from txntable.errors import MissingDependencyError
from txntable.format.records import TopicPartition
from txntable.runtime.counters import GROUP_END
from txntable.warehouse.warehouse import Warehouse

try:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider
except ModuleNotFoundError as missing:
    raise MissingDependencyError(
        "opentelemetry is not installed; pip install 'txntable[opentelemetry]'", missing=missing.name
    ) from missing

METER = "txntable"
PRODUCER, CONSUMER = "producer-metrics", "consumer-fetch-manager-metrics"
COUNTERS: Mapping[str, tuple[str, str]] = {
    "log-metrics/commit-total": ("{commit}", "Entries written to logs."),
    "log-metrics/commit-time-ns-total": ("ns", "Time spent in commits, with waiting for others."),
    "log-metrics/conflict-total": ("{conflict}", "Slots that another commit had: everything was decided again."),
    "log-metrics/retry-total": ("{retry}", "Puts of an entry that were tried again, for want of an answer."),
    "log-metrics/unknown-total": ("{commit}", "Commits that were given up without an answer."),
    "transaction-metrics/timed-out-total": ("{transaction}", "Transactions of others that were aborted here."),
    "store-metrics/get-total": ("{request}", "Reads of objects, or of parts of one."),
    "store-metrics/head-total": ("{request}", "Questions for an object's size and time."),
    "store-metrics/put-total": ("{request}", "Writes of objects."),
    "store-metrics/upload-total": ("{upload}", "Large objects, sent in parts."),
    "store-metrics/list-total": ("{request}", "Listings of folders."),
    "store-metrics/delete-total": ("{request}", "Deleted objects."),
    "store-metrics/failed-attempt-total": ("{request}", "Requests that failed, most of which were made again."),
    "store-metrics/incoming-byte-total": ("By", "Bytes read."),
    "store-metrics/outgoing-byte-total": ("By", "Bytes written, but those of uploads in parts."),
    f"{PRODUCER}/record-send-total": ("{record}", "Records that were uploaded."),
    f"{PRODUCER}/record-error-total": ("{record}", "Records that were dropped: aborted, or refused."),
    f"{PRODUCER}/outgoing-byte-total": ("By", "Bytes of segments."),
    f"{PRODUCER}/batch-total": ("{segment}", "Segments."),
    f"{PRODUCER}/flush-time-ns-total": ("ns", "Time spent in flush."),
    f"{PRODUCER}/txn-init-time-ns-total": ("ns", "Time spent in init_transactions."),
    f"{PRODUCER}/txn-begin-time-ns-total": ("ns", "Time spent in begin_transaction."),
    f"{PRODUCER}/txn-send-offsets-time-ns-total": ("ns", "Time spent in send_offsets_to_transaction."),
    f"{PRODUCER}/txn-commit-time-ns-total": ("ns", "Time spent in commit_transaction."),
    f"{PRODUCER}/txn-abort-time-ns-total": ("ns", "Time spent in abort_transaction."),
    f"{PRODUCER}/txn-commit-total": ("{transaction}", "Committed transactions."),
    f"{PRODUCER}/txn-abort-total": ("{transaction}", "Aborted transactions."),
    f"{CONSUMER}/records-consumed-total": ("{record}", "Records that polls have returned."),
    f"{CONSUMER}/bytes-consumed-total": ("By", "Bytes of these in memory."),
    "consumer-coordinator-metrics/commit-total": ("{commit}", "Commits of a group's offsets."),
    "consumer-coordinator-metrics/rebalance-total": ("{rebalance}", "Times that partitions were assigned."),
    "consumer-metrics/commit-sync-time-ns-total": ("ns", "Time spent in commits of offsets."),
}
"""Total of :meth:`Warehouse.metrics <txntable.warehouse.warehouse.Warehouse.metrics>` -> its unit, and what it is."""
_Callback = Callable[[CallbackOptions], Iterable[Observation]]


def observe(warehouse: Warehouse, meter_provider: MeterProvider | None = None, *, lags: bool = False) -> None:
    """Let OpenTelemetry collect what a handle and its clients count; once for each handle.

    Parameters
    ----------
    warehouse : Warehouse
        The handle; it lives as long as the provider.
    meter_provider : opentelemetry.metrics.MeterProvider, optional
        Default: the global one.
    lags : bool
        Whether each collection also asks how far everything is behind
        (:meth:`Admin.list_lags <txntable.admin.admin.Admin.list_lags>`): some requests for each topic; what cannot be
        read is counted, and hides no other topic.

    Examples
    --------
    >>> from txntable.telemetry.opentelemetry import observe
    >>> observe(warehouse)  # doctest: +SKIP
    """
    meter = (meter_provider or get_meter_provider()).get_meter(METER)
    for name, (unit, description) in COUNTERS.items():
        meter.create_observable_counter(instrument_name(name), [_total(warehouse, name)], unit, description)
    if lags:
        for name, (unit, description, look) in GAUGES.items():
            meter.create_observable_gauge(f"{METER}.{name}", [_gauge(warehouse, look)], unit, description)


def instrument_name(name: str) -> str:
    """Return what an instrument is called: ``txntable.producer.record_send_total``."""
    group, _, rest = name.partition(GROUP_END)
    return f"{METER}.{group.removesuffix('-metrics')}.{rest}".replace("-", "_")


def _total(warehouse: Warehouse, name: str) -> _Callback:
    group, _, rest = name.partition(GROUP_END)

    def read(_: CallbackOptions) -> Iterable[Observation]:
        value = warehouse.metrics().get(group, {}).get(rest)
        return [] if value is None else [Observation(value, {"warehouse": warehouse.url})]

    return read


_Look = Callable[[Warehouse], Sequence[tuple[int, dict[str, str | int]]]]


def _lags(warehouse: Warehouse) -> WarehouseLags:
    return ReadablePart(warehouse.completer, warehouse.topic_log).lags()


def _unreadable(warehouse: Warehouse) -> Sequence[tuple[int, dict[str, str | int]]]:
    part = ReadablePart(warehouse.completer, warehouse.topic_log)
    part.lags()
    return [(len(part.unreadable), {})]


def _place(where: TopicPartition) -> dict[str, str | int]:
    return {"topic": where.topic, "partition": where.partition}


def _stable(warehouse: Warehouse) -> Sequence[tuple[int, dict[str, str | int]]]:
    return [(each.last_stable_offset_lag, _place(each.topic_partition)) for each in _lags(warehouse).partitions]


def _publication(warehouse: Warehouse) -> Sequence[tuple[int, dict[str, str | int]]]:
    return [(lag, {"topic": topic}) for topic, lag in _lags(warehouse).publication_ms]


def _groups(warehouse: Warehouse) -> Sequence[tuple[int, dict[str, str | int]]]:
    return [(one.lag, {"group": one.group_id, **_place(one.topic_partition)}) for one in _lags(warehouse).groups]


GAUGES: Mapping[str, tuple[str, str, _Look]] = {
    "last_stable_offset_lag": ("{offset}", "Offsets that open transactions hold back.", _stable),
    "publication_lag": ("ms", "For how long a public table has lacked what it should show.", _publication),
    "group_lag": ("{offset}", "Offsets from what a group has committed to the last stable offset.", _groups),
    "unreadable": ("{log}", "Topics and logs that cannot be read: of them the others tell nothing.", _unreadable),
}
"""What is measured when it is asked for -> its unit, what it is, and who looks."""


def _gauge(warehouse: Warehouse, look: _Look) -> _Callback:
    def read(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, {"warehouse": warehouse.url, **labels}) for value, labels in look(warehouse)]

    return read
