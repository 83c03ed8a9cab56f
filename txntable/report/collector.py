"""Looking at a warehouse once, for a page: everything that a report knows, read in one go.

Owns the order of the readings, and that nothing is written but what tells the store's time: nothing is completed,
published or settled for a report.  A part that cannot be read is a finding, and the rest is shown all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

from txntable.admin.blocking_words import summary
from txntable.errors import DamagedDataError, UnknownTopicOrPartitionError, UnsupportedFormatError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import (
    OFFSET_LOG_ROOT,
    TOPICS_FOLDER,
    TRANSACTION_LOG_ROOT,
    public_root,
    segments_root,
    topic_names,
)
from txntable.log.log_view import refresh_together
from txntable.partition.topic_view import TopicView
from txntable.report.group_standing import group_standings
from txntable.report.newest_records import newest_records
from txntable.report.storage_layers import storage_layers
from txntable.report.topic_standing import topic_standing
from txntable.report.transaction_history import read_history
from txntable.report.warehouse_report import Bounded, NewestRecords, ReportLimits, TopicStanding, WarehouseReport
from txntable.snapshot.snapshot import published_position
from txntable.snapshot.topic_reader import TopicReader
from txntable.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class _Topic:
    reader: TopicReader
    view: TopicView
    standing: TopicStanding


def collect(warehouse: Warehouse, limits: ReportLimits) -> WarehouseReport:
    """Return what a report shows of a warehouse, now.

    Parameters
    ----------
    warehouse : Warehouse
        Which; a reader's permissions are enough.
    limits : ReportLimits
        How much is shown of what may be much.

    Raises
    ------
    StoreUnavailableError, StorePermissionError
        The store does not answer, or does not let us list.
    DamagedDataError, UnsupportedFormatError
        The transaction log or the offset log cannot be read.
    """
    admin, context = warehouse.admin(), warehouse.context
    findings = admin.check_upkeep()
    topics = _topics(warehouse, topic_names(context.store.folders(TOPICS_FOLDER)), limits)
    blocking = admin.find_blocking_transactions(list(topics))
    warehouse.offsets.refresh()
    head = warehouse.transactions.refresh()
    # What others have completed without a row that says so.
    warehouse.completer.look_at(warehouse.transactions.look(warehouse.transactions.log.fold.incomplete))
    now_ms = context.clock.shown_ms()
    history = read_history(warehouse.transactions, blocking, limits, now_ms)
    logs = {
        "transaction log": (TRANSACTION_LOG_ROOT,),
        "offset log": (OFFSET_LOG_ROOT,),
        "partition logs": [segments_root(name) for name in topics],
        "public tables' logs": [public_root(name) for name in topics],
    }
    latest = sorted(topics.values(), key=lambda one: (-(one.standing.last_write_ms or 0), one.standing.name))
    return WarehouseReport(
        url=warehouse.url,
        made_at_ms=now_ms,
        version=version("txntable"),
        head=head,
        published_position=published_position(warehouse.transactions, head),
        blocking=Bounded(tuple(blocking[: limits.blocking]), len(blocking)),
        blocking_summary=" ".join(summary(blocking, len(topics))),
        findings=Bounded(tuple(findings[: limits.findings]), len(findings)),
        topics=Bounded(_chosen([one.standing for one in latest], limits.topics), len(topics)),
        history=history,
        groups=group_standings(warehouse.offsets, {name: one.view for name, one in topics.items()}, limits),
        records=_records(latest, limits),
        layers=storage_layers(context.store, [one.reader.topic for one in topics.values()], logs),
    )


def _topics(warehouse: Warehouse, names: Sequence[str], limits: ReportLimits) -> dict[str, _Topic]:
    """Return the topics that can be read; why another cannot be is a finding."""
    found: dict[str, _Topic] = {}
    for name in names:
        reader = warehouse.topic_reader(name)
        segments, public = reader.topic.segments, reader.topic.public
        # A folder of a deleted topic, too, or of a creation that was killed.
        with suppress(UnknownTopicOrPartitionError, DamagedDataError, UnsupportedFormatError):
            refresh_together(segments, public)
            with segments.lock, public.lock:
                view = reader.view(IsolationLevel.READ_UNCOMMITTED)
                standing = topic_standing(view, segments.table, limits.partitions)
            found[name] = _Topic(reader, view, standing)
    return found


def _chosen(latest: Sequence[TopicStanding], most: int) -> tuple[TopicStanding, ...]:
    """Return those that are held back and then the latest, by name."""
    chosen = sorted(latest, key=lambda one: one.held_back <= 0)[:most]
    return tuple(sorted(chosen, key=lambda one: one.name))


def _records(latest: Sequence[_Topic], limits: ReportLimits) -> Bounded[NewestRecords]:
    if not limits.records:
        return Bounded((), 0)
    written = [one for one in latest if one.standing.segments]
    shown = [
        newest_records(one.reader, one.view, one.reader.topic.segments.fold, limits.records)
        for one in written[: limits.record_topics]
    ]
    return Bounded(tuple(shown), len(written))
