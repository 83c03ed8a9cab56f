"""A picture of some curves over one axis, as SVG: enough for a report, and no library more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_COLOURS = (
    *("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e"),
    *("#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2"),
)
_WIDTH, _HEIGHT, _LEFT, _TOP, _LEGEND = 420, 260, 60, 40, 200


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: its name, and a value for each place on the axis."""

    name: str
    values: Sequence[float]


def draw(
    axis: Sequence[float],
    charts: Sequence[tuple[str, Sequence[Curve]]],
    *,
    marked: Sequence[float] | None = None,
    scale: Callable[[float], float] = math.log10,
) -> str:
    """Return an SVG with one chart below the other.

    Parameters
    ----------
    axis : sequence of float
        Ascending: the places on the x axis.
    charts : sequence of (str, sequence of Curve)
        Title, and lines; each chart has a y axis of its own from 0.
    marked : sequence of float, optional
        The numbers below the axis; default: each of its places.
    scale : callable
        Where a number is on the axis; default: by its logarithm, so that each must be positive.
    """
    numbers = axis if marked is None else marked
    low, high = (pick(scale(place) for place in (*axis, *numbers)) for pick in (min, max))

    def across(place: float) -> float:
        return _LEFT + _WIDTH * (scale(place) - low) / ((high - low) or 1)

    height = _TOP + len(charts) * (_HEIGHT + 2 * _TOP)
    body = [
        _chart([*map(across, axis)], title, curves, _TOP + index * (_HEIGHT + 2 * _TOP))
        + _numbers([(across(place), place) for place in numbers], _TOP + index * (_HEIGHT + 2 * _TOP))
        for index, (title, curves) in enumerate(charts)
    ]
    size = f'width="{_LEFT + _WIDTH + _LEGEND}" height="{height}"'
    style = 'font-family="sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect width="100%" height="100%" fill="white"/>\n'
        + ("\n".join(body) + "\n</svg>\n")
    )


def _chart(across: Sequence[float], title: str, curves: Sequence[Curve], top: int) -> str:
    highest = max(value for curve in curves for value in curve.values) or 1
    bottom = top + _HEIGHT
    parts = [f'<text x="{_LEFT}" y="{top - 10}" font-size="13">{title}</text>']
    parts += [
        f'<line x1="{_LEFT}" y1="{bottom}" x2="{_LEFT + _WIDTH}" y2="{bottom}" stroke="black"/>',
        f'<line x1="{_LEFT}" y1="{top}" x2="{_LEFT}" y2="{bottom}" stroke="black"/>',
        f'<text x="{_LEFT - 5}" y="{top + 4}" text-anchor="end">{highest:,.4g}</text>',
        f'<text x="{_LEFT - 5}" y="{bottom + 4}" text-anchor="end">0</text>',
    ]
    for index, curve in enumerate(curves):
        colour = _COLOURS[index % len(_COLOURS)]
        places = " ".join(
            f"{x:.1f},{bottom - _HEIGHT * value / highest:.1f}" for x, value in zip(across, curve.values, strict=True)
        )
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{_LEFT + _WIDTH + 12}" y="{top + 14 * (index + 1)}" fill="{colour}">{curve.name}</text>'
        )
    return "\n".join(parts)


def _numbers(places: Sequence[tuple[float, float]], top: int) -> str:
    return "".join(
        f'\n<text x="{x:.0f}" y="{top + _HEIGHT + 15}" text-anchor="middle">{place:,.0f}</text>' for x, place in places
    )
