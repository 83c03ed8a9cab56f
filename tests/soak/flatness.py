"""Whether a series of measurements stays as it is: how much it grows over its second half, and how much it may.

Pure.  A trend is the median of all slopes (Theil and Sen): a spike is none, and neither is a fall.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Point = tuple[float, float]
"""When, in seconds, and how much."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a series may grow over the second half of a run.

    Attributes
    ----------
    least : float
        So much in any case, in the series' unit: what no measurement can tell from nothing.
    share : float
        Of its median there.
    """

    least: float
    share: float


@dataclass(frozen=True, slots=True)
class Series:
    """One measurement through a run.

    Attributes
    ----------
    name : str
        Of what.
    points : sequence of Point
        Ascending in time.
    bound : Bound
        Beyond which it is not flat.
    """

    name: str
    points: Sequence[Point]
    bound: Bound

    @property
    def second_half(self) -> Sequence[Point]:
        """The points after the middle of the time."""
        if not self.points:
            return ()
        middle = (self.points[0][0] + self.points[-1][0]) / 2
        return [point for point in self.points if point[0] >= middle]

    @property
    def growth(self) -> float:
        """What the trend of the second half comes to over its time."""
        half = self.second_half
        slopes = [(b - a) / (later - sooner) for (sooner, a), (later, b) in itertools.combinations(half, 2)]
        return median(slopes) * (half[-1][0] - half[0][0]) if slopes else 0.0

    @property
    def allowed(self) -> float:
        """The growth that is taken for none."""
        half = self.second_half
        return max(self.bound.least, self.bound.share * median(value for _, value in half)) if half else 0.0

    @property
    def is_flat(self) -> bool:
        """Whether it has points enough, and does not grow."""
        return len(self.second_half) >= 2 and self.growth <= self.allowed

    def __str__(self) -> str:
        half = self.second_half
        level = median(value for _, value in half) if half else 0.0
        word = "flat" if self.is_flat else "NOT FLAT"
        return f"{word:8} {self.name}: {level:.4g}, grew by {self.growth:+.3g} of {self.allowed:.3g} allowed"
