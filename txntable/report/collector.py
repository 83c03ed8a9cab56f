"""Looking at a warehouse for a page: everything that a report knows, read in one go.

Owns the order of the readings, and that nothing is written but what tells the store's time: nothing is completed,
published or settled for a report.  A part that cannot be read is a finding, and the rest is shown all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from txntable.admin.blocking_words import summary
from txntable.admin.readable_part import ReadablePart
from txntable.admin.unreadable import topic_at, topic_place
from txntable.admin.upkeep import Duty, Finding, UpkeepLimits
from txntable.admin.upkeep_check import UpkeepCheck
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import (
    OFFSET_LOG_ROOT,
    TRANSACTION_LOG_ROOT,
    public_root,
    segments_root,
)
from txntable.log.cleanup import LogFile
from txntable.log.log_view import refresh_together
from txntable.partition.topic_view import TopicView
from txntable.report.group_standing import group_standings
from txntable.report.newest_records import newest_records
from txntable.report.storage_layers import storage_layers
from txntable.report.topic_standing import topic_standing
from txntable.report.transaction_history import read_history
from txntable.report.warehouse_report import (
    Bounded,
    NewestRecords,
    ReportLimits,
    TopicStanding,
    UnreadableTopic,
    WarehouseReport,
)
from txntable.runtime.environment import Instant
from txntable.snapshot.snapshot import published_position
from txntable.snapshot.topic_reader import TopicReader
from txntable.warehouse.warehouse import Warehouse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Health:
    findings: Sequence[Finding]
    log_files: Mapping[str, Sequence[LogFile]]


@dataclass(frozen=True, slots=True)
class _Topic:
    reader: TopicReader
    view: TopicView
    standing: TopicStanding


class Collector:
    """Looks at a warehouse, as often as a page of it is made.

    Parameters
    ----------
    warehouse : Warehouse
        Which; a reader's permissions are enough.
    limits : ReportLimits
        How much is shown of what may be much.
    check_every_ms : int
        For how long findings are good enough: they take a LIST of each log's folder.
    """

    def __init__(self, warehouse: Warehouse, limits: ReportLimits, check_every_ms: int = 0) -> None:
        self._warehouse, self._limits, self._check_every_ms = warehouse, limits, check_every_ms
        self._checked: tuple[Instant, _Health] | None = None

    def collect(self) -> WarehouseReport:
        """Return what a report shows, now.

        Raises
        ------
        StoreUnavailableError, StorePermissionError
            The store does not answer, or does not let us list.
        DamagedDataError, UnsupportedFormatError
            The transaction log or the offset log cannot be read.
        """
        warehouse, limits, context = self._warehouse, self._limits, self._warehouse.context
        health = self._health()
        part = ReadablePart(warehouse.completer, warehouse.topic_log)
        topics = _topics(warehouse, part, limits)
        blocking = part.blocking()
        warehouse.offsets.refresh()
        head = warehouse.transactions.refresh()
        # What others have completed without a row that says so.
        warehouse.completer.look_at(warehouse.transactions.look(warehouse.transactions.log.fold.incomplete))
        now_ms = context.clock.shown_ms()
        findings = _together(health.findings, part.unreadable)
        unreadable = [one for one in findings if one.duty is Duty.READ]
        lost = [
            UnreadableTopic(name, one) for one in unreadable if (name := topic_at(one.where)) and name not in topics
        ]
        latest = sorted(topics.values(), key=lambda one: (-(one.standing.last_write_ms or 0), one.standing.name))
        return WarehouseReport(
            url=warehouse.url,
            made_at_ms=now_ms,
            version=version("txntable"),
            head=head,
            published_position=published_position(warehouse.transactions, head),
            blocking=_bounded(blocking, limits.blocking),
            blocking_summary=" ".join(summary(blocking, part.searched, unreadable)),
            findings=_bounded(findings, limits.findings),
            unreadable=_bounded(unreadable, limits.findings),
            topics=Bounded(_chosen([one.standing for one in latest], limits.topics), len(topics)),
            unreadable_topics=_bounded(lost, limits.topics),
            history=read_history(warehouse.transactions, blocking, limits, now_ms),
            groups=group_standings(warehouse.offsets, {name: one.view for name, one in topics.items()}, limits),
            records=_records(latest, limits),
            layers=storage_layers([one.reader.topic for one in topics.values()], health.log_files, _roots(topics)),
        )

    def _health(self) -> _Health:
        environment = self._warehouse.context.environment
        if self._checked is None or environment.since_ms(self._checked[0]) >= self._check_every_ms:
            warehouse, at = self._warehouse, environment.instant()
            check = UpkeepCheck(warehouse.completer, warehouse.topic_log, warehouse.settings(), UpkeepLimits())
            self._checked = (at, _Health(check.run(), check.log_files))
        return self._checked[1]


def _bounded(values: Sequence[T], most: int) -> Bounded[T]:
    return Bounded(tuple(values[:most]), len(values))


def _together(checked: Sequence[Finding], unreadable: Sequence[Finding]) -> list[Finding]:
    """Return all findings; what cannot be read by now may not be among those of a check some time ago."""
    known = {one.where for one in checked if one.duty is Duty.READ}
    return [*checked, *(one for one in unreadable if one.where not in known)]


def _roots(names: Iterable[str]) -> dict[str, Sequence[str]]:
    """Return the layers of logs, and the roots of the logs in each."""
    topics = list(names)
    return {
        "transaction log": (TRANSACTION_LOG_ROOT,),
        "offset log": (OFFSET_LOG_ROOT,),
        "partition logs": [segments_root(name) for name in topics],
        "public tables' logs": [public_root(name) for name in topics],
    }


def _topics(warehouse: Warehouse, part: ReadablePart, limits: ReportLimits) -> dict[str, _Topic]:
    """Return the topics that can be read; why another cannot be is a finding."""
    found: dict[str, _Topic] = {}
    for name in part.names:
        reader = warehouse.topic_reader(name)
        segments, public = reader.topic.segments, reader.topic.public
        # Unknown: deleted meanwhile.
        with suppress(UnknownTopicOrPartitionError), part.passing_over(topic_place(name)):
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
