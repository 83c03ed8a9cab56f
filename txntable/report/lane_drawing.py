"""Where things stand in a drawing of lanes: times as percentages of its width.

Owns the axis and the words of each mark.  Pure.  Must not know of SVG or HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.admin.blocking_words import counted, duration_text
from txntable.report.page_text import name_text, time_text
from txntable.report.warehouse_report import Lane, Span, SpanOutcome, TransactionHistory

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 30, 90, 365, 3650)),
)
_MOST_TICKS = 8
_MOST_TOPICS = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """Something in a lane.

    Attributes
    ----------
    kind : str
        What it is: committed, aborted, open, prepared; or takeover.
    start, end : float
        Percent of the width.
    title : str
        What it tells.
    """

    kind: str
    start: float
    end: float
    title: str


@dataclass(frozen=True, slots=True)
class DrawnLane:
    """A lane and its marks.

    Attributes
    ----------
    lane : Lane
        Whose.
    marks : tuple of Mark
        In the order of time.
    summary : str
        The same in words.
    """

    lane: Lane
    marks: tuple[Mark, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class LaneDrawing:
    """All lanes on one axis.

    Attributes
    ----------
    ticks : tuple of (float, str)
        Percent of the width, and the time there.
    lanes : tuple of DrawnLane
        From the top.
    held_since : float or None
        Where the oldest transaction begins that holds readers back, percent; ``None``: none does.
    """

    ticks: tuple[tuple[float, str], ...]
    lanes: tuple[DrawnLane, ...]
    held_since: float | None


def draw_lanes(history: TransactionHistory, blocking: Sequence[BlockingTransaction]) -> LaneDrawing:
    """Return where everything stands.

    Parameters
    ----------
    history : TransactionHistory
        What is drawn.
    blocking : sequence of BlockingTransaction
        What holds readers back, the oldest first.
    """
    lanes = tuple(
        DrawnLane(lane, tuple(_marks(lane, history)), _summary(lane, history)) for lane in history.lanes.shown
    )
    held_since = _x(blocking[0].start_time_ms, history) if blocking else None
    return LaneDrawing(tuple(_ticks(history)), lanes, held_since)


def _x(at_ms: int, history: TransactionHistory) -> float:
    share = (at_ms - history.since_ms) / (history.until_ms - history.since_ms)
    return round(100 * min(1.0, max(0.0, share)), 2)


def _ticks(history: TransactionHistory) -> list[tuple[float, str]]:
    length = history.until_ms - history.since_ms
    step = next((step for step in _STEPS if length / step <= _MOST_TICKS), _STEPS[-1])
    first = -(-history.since_ms // step) * step
    form = "%H:%M:%S" if step < _MINUTE else "%H:%M" if step < _DAY else "%b %d"
    ticks = []
    for at_ms in range(first, history.until_ms + 1, step):
        at = datetime.fromtimestamp(at_ms / _SECOND, tz=UTC)
        # Midnight tells the day.
        is_day = step < _DAY and at_ms % _DAY == 0
        ticks.append((_x(at_ms, history), f"{at:%b %d}" if is_day else f"{at:{form}}"))
    return ticks


def _marks(lane: Lane, history: TransactionHistory) -> list[Mark]:
    marks = [
        Mark("takeover", _x(each.at_ms, history), _x(each.at_ms, history), _taken(each.at_ms, each.epoch, history))
        for each in lane.takeovers
    ]
    for span in lane.spans:
        start = 0.0 if span.started_ms is None else _x(span.started_ms, history)
        end = 100.0 if span.ended_ms is None else _x(span.ended_ms, history)
        marks.append(Mark(span.outcome.value, start, max(start, end), span_text(span, history)))
    return marks


def _taken(at_ms: int, epoch: int, history: TransactionHistory) -> str:
    fenced = f", which fences epoch {epoch - 1} and all before" if epoch else ""
    return f"{time_text(at_ms, history.until_ms)}: a producer takes the id with epoch {epoch}{fenced}"


def span_text(span: Span, history: TransactionHistory) -> str:
    """Return what there is to tell of a transaction, in one line."""
    until_ms = history.until_ms
    earlier = f"from before {time_text(history.since_ms, until_ms)}"
    began = earlier if span.started_ms is None else time_text(span.started_ms, until_ms)
    parts = [span.outcome.value if span.ended_by is None else f"{span.outcome.value} by {span.ended_by.value}"]
    if span.ended_ms is None or span.started_ms is None or span.ended_ms - span.started_ms >= _SECOND:
        last_ms = until_ms if span.ended_ms is None else span.ended_ms
        parts.append(f"{began} to {'now' if span.ended_ms is None else time_text(last_ms, until_ms)}")
        if span.started_ms is not None:
            parts.append(duration_text(last_ms - span.started_ms))
    else:
        parts.append(began)
    parts.append(f"epoch {span.epoch}")
    if span.position is not None:
        parts.append(f"position {span.position}")
    if span.topics:
        names = [name_text(topic) for topic in span.topics[:_MOST_TOPICS]]
        parts.append(", ".join(names) + (" …" if len(span.topics) > _MOST_TOPICS else ""))
    return "; ".join(parts)


def _summary(lane: Lane, history: TransactionHistory) -> str:
    said = [f"{lane.count(outcome)} {outcome.value}" for outcome in SpanOutcome if lane.count(outcome)]
    text = f"{counted(len(lane.spans), 'transaction')}: {', '.join(said)}" if said else "no transaction"
    later = [each for each in lane.takeovers if each.epoch]
    if later:
        text += f"; taken over {counted(len(later), 'time')}"
    if lane.holds_back:
        text += f"; holds back {', '.join(lane.holds_back[:_MOST_TOPICS])}"
        text += " …" if len(lane.holds_back) > _MOST_TOPICS else ""
    return text
