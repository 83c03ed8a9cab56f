"""A picture of ratios as SVG: a bar for each, on a logarithmic axis around 1, with its interval and its goal.

It has no background and takes the colour of its text from nobody: it is to be read on light and on dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_LABELS, _AXIS, _NUMBERS = 380, 380, 150
_LINE, _TOP, _BAR = 24, 34, 12
_MET, _MISSED, _PLAIN, _TEXT = "#2a9d5c", "#d9822b", "#5b8def", "#808890"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class Bar:
    """One ratio.

    Attributes
    ----------
    label : str
        What it is of.
    value : float
        The ratio; positive.
    interval : (float, float), optional
        Where it may lie.
    goal : float, optional
        A mark.
    met : bool, optional
        Whether the goal is reached.
    """

    label: str
    value: float
    interval: tuple[float, float] | None = None
    goal: float | None = None
    met: bool | None = None


def draw(title: str, bars: Sequence[Bar]) -> str:
    """Return an SVG with a line for each bar."""
    numbers = [each for bar in bars for each in (bar.value, *(bar.interval or ()), bar.goal or 1)]
    low, high = min(0.5, *numbers) / 1.1, max(2.0, *numbers) * 1.1
    bottom = _TOP + len(bars) * _LINE

    def across(ratio: float) -> float:
        return _LABELS + _AXIS * math.log(ratio / low) / math.log(high / low)

    parts = [
        f'<text x="{across(tick):.1f}" y="{_TOP - 8}" text-anchor="middle">{tick:g} ×</text>'
        f'<line x1="{across(tick):.1f}" y1="{_TOP}" x2="{across(tick):.1f}" y2="{bottom}" '
        f'stroke="{_TEXT}" stroke-width="{1.5 if tick == 1 else 0.3}"/>'
        for tick in _TICKS
        if low <= tick <= high
    ]
    parts += [_bar(bar, across, _TOP + number * _LINE) for number, bar in enumerate(bars)]
    size = f'viewBox="0 0 {_LABELS + _AXIS + _NUMBERS} {bottom + 10}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} font-family="sans-serif" font-size="12" '
        f'fill="{_TEXT}">\n<title>{escape(title)}</title>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _bar(bar: Bar, across: Callable[[float], float], top: int) -> str:
    colour = _PLAIN if bar.met is None else _MET if bar.met else _MISSED
    one, end, middle = across(1), across(bar.value), top + _LINE / 2
    left, width = min(one, end), max(abs(end - one), 1.0)
    parts = [
        f'<text x="{_LABELS - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{left:.1f}" y="{middle - _BAR / 2:.1f}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>',
    ]
    if bar.interval is not None:
        low, high = map(across, bar.interval)
        parts.append(
            f'<path d="M{low:.1f} {middle - 4:.1f}v8M{low:.1f} {middle:.1f}H{high:.1f}M{high:.1f} {middle - 4:.1f}v8" '
            f'stroke="{_TEXT}" fill="none"/>'
        )
    said = f"{bar.value:.2f}"
    if bar.goal is not None:
        place = across(bar.goal)
        parts.append(
            f'<path d="M{place:.1f} {top + 2}v{_LINE - 4}" stroke="{colour}" stroke-width="2" stroke-dasharray="3 2"/>'
        )
        said += f" (goal {bar.goal:g})"
    parts.append(f'<text x="{_LABELS + _AXIS + 8}" y="{middle + 4:.1f}">{said}</text>')
    return "\n".join(parts)
