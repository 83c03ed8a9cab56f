"""Transactional ids over time: what the entries of the transaction log tell of their transactions (PROTOCOL.md §6).

Owns how rows become spans: a transaction begins where its row says it started, and ends with the entry whose version is
its decision position; who ended it is told by that entry's operation.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.coordinator.decision import Outcome
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.log.actions import Add, Commit, Remove
from txntable.log.keyed_table import KIND
from txntable.report.warehouse_report import Bounded, EndedBy, Lane, Span, SpanOutcome, Takeover
from txntable.transactions.transaction_rows import ID_KIND, id_row_of

# Of an entry of T that decides: all others are the producer's own.
_ENDED_BY = {"INIT": EndedBy.NEWER_PRODUCER, "TIME_OUT": EndedBy.TIMEOUT, "TERMINATE": EndedBy.ADMIN}
_OUTCOMES = {Outcome.COMMIT: SpanOutcome.COMMITTED, Outcome.ABORT: SpanOutcome.ABORTED}


@dataclass(slots=True)
class _Drawn:
    """What is known of an id so far."""

    row: TransactionMetadata
    seen_ms: int
    spans: list[Span] = field(default_factory=list)
    takeovers: list[Takeover] = field(default_factory=list)
    open_since_ms: int | None = None
    is_open: bool = False
    topics: tuple[str, ...] = ()
    is_gone: bool = False

    def end(self) -> None:
        """Take note that the id is gone, whatever it was doing."""
        self.is_gone, self.is_open, self.open_since_ms = True, False, None


def lanes_of(
    commits: Iterable[Commit],
    under_way: Mapping[str, TransactionMetadata],
    blocking: Sequence[BlockingTransaction],
    most: int,
) -> Bounded[Lane]:
    """Return what entries of the transaction log tell of the ids in them, and of those with an open transaction.

    Parameters
    ----------
    commits : iterable of Commit
        Entries that count, the oldest first.
    under_way : Mapping of str to TransactionMetadata
        By id the rows of all transactions that are under way, as this process knows them.
    blocking : sequence of BlockingTransaction
        What holds readers back.
    most : int
        How many lanes.
    """
    drawn: dict[str, _Drawn] = {}
    by_path: dict[str, str] = {}
    for commit in commits:
        for action in commit.actions:
            if isinstance(action, Add) and action.partition_values.get(KIND) == ID_KIND:
                row = id_row_of(action)
                by_path[action.path] = row.transactional_id
                _take(drawn, row, commit)
            elif isinstance(action, Remove) and (gone := drawn.get(by_path.get(action.path, ""))) is not None:
                gone.end()
    for transactional_id, row in under_way.items():
        if row.state.is_open:
            # It began before all that was read, and nothing was said of it since.
            drawn.setdefault(transactional_id, _Drawn(row, 0, is_open=True, topics=_topics(row)))
        if transactional_id in drawn:
            drawn[transactional_id].row = row
    chosen = sorted(drawn.values(), key=lambda one: (one.is_open, one.seen_ms, one.row.transactional_id), reverse=True)
    held = {(one.producer_id, one.producer_epoch): one for one in blocking}
    return Bounded(tuple(_lane(one, held) for one in chosen[:most]), len(chosen))


def _take(drawn: dict[str, _Drawn], row: TransactionMetadata, commit: Commit) -> None:
    at_ms = commit.info.timestamp_ms
    one = drawn.setdefault(row.transactional_id, _Drawn(row, at_ms))
    one.row, one.seen_ms, one.is_gone = row, at_ms, False
    decision = row.decision
    if row.state.is_open:
        if not one.is_open:
            one.is_open = True
            # A first row that says an earlier beginning: it was before what was read.
            one.open_since_ms = at_ms if row.started_position == commit.version else None
        one.topics = _topics(row)
    elif decision is not None and decision.position == commit.version:
        began_here = row.started_position in (None, commit.version)
        one.spans.append(
            Span(
                epoch=decision.epoch,
                outcome=_OUTCOMES[decision.outcome],
                started_ms=one.open_since_ms if one.is_open else (at_ms if began_here else None),
                ended_ms=at_ms,
                ended_by=_ENDED_BY.get(commit.info.operation, EndedBy.PRODUCER),
                position=decision.position,
                topics=_topics(row) or one.topics,
            )
        )
        one.is_open, one.open_since_ms, one.topics = False, None, ()
    elif row.state is TransactionState.EMPTY:
        one.takeovers.append(Takeover(at_ms, row.producer_epoch))


def _topics(row: TransactionMetadata) -> tuple[str, ...]:
    return tuple(sorted(topic.name for topic in row.topics.values()))


def _lane(one: _Drawn, held: Mapping[tuple[int, int], BlockingTransaction]) -> Lane:
    row = one.row
    spans = list(one.spans)
    holds_back = None if one.is_gone else held.get((row.producer_id, row.producer_epoch))
    if one.is_open:
        outcome = SpanOutcome.PREPARED if row.state is TransactionState.PREPARED else SpanOutcome.OPEN
        since_ms = one.open_since_ms
        if since_ms is None and holds_back is not None:
            since_ms = holds_back.start_time_ms
        spans.append(Span(row.producer_epoch, outcome, since_ms, topics=one.topics))
    places = () if holds_back is None else holds_back.partitions
    return Lane(
        row.transactional_id,
        row.producer_id,
        row.producer_epoch,
        TransactionState.DEAD if one.is_gone else row.state,
        tuple(spans),
        tuple(one.takeovers),
        tuple(f"{each.topic_partition.topic}-{each.topic_partition.partition}" for each in places),
    )
