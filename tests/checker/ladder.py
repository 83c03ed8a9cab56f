"""Ordered facts that are asked for by bisection, so that a check stays near-linear in the history's length."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf
from typing import Any

from tests.checker.written import Written


class Latest:
    """The largest of the numbers that were known before a moment."""

    def __init__(self, known: Iterable[tuple[float, float, Any]]) -> None:
        ordered = sorted(known, key=lambda each: each[0])
        self._moments = [moment for moment, _, _ in ordered]
        self._largest = list(accumulate(((number, what) for _, number, what in ordered), _larger))

    def before(self, moment: float) -> tuple[float, Any] | None:
        """Return the largest number known before a moment, and what it is of."""
        at = bisect_left(self._moments, moment)
        return self._largest[at - 1] if at else None


def _larger(one: tuple[float, Any], other: tuple[float, Any]) -> tuple[float, Any]:
    return one if one[0] >= other[0] else other


class Ladder:
    """The records of a place that must be there, in offset order.

    Parameters
    ----------
    rungs : list of Written
        With known offsets.
    """

    def __init__(self, rungs: Sequence[Written] = ()) -> None:
        self.rungs = sorted(rungs, key=lambda each: each.offset or 0)
        self._offsets = [each.offset or 0 for each in self.rungs]
        self._latest_commits: list[tuple[float, Any]] | None = None

    def between(self, start: float, end: float) -> Sequence[Written]:
        """Return the records at `start` and above, below `end`."""
        return self.rungs[bisect_left(self._offsets, start) : bisect_left(self._offsets, end)]

    def after(self, offset: int, end: int) -> Sequence[Written]:
        """Return the records above `offset`, below `end`."""
        return self.rungs[bisect_right(self._offsets, offset) : bisect_left(self._offsets, end)]

    def last_commit_below(self, end: int) -> tuple[float, Any] | None:
        """Return when the last of the transactions with a record below `end` was asked to commit, and the record."""
        if self._latest_commits is None:
            moments = ((0.0 if each.txn is None else each.txn.commit_invoked, each) for each in self.rungs)
            # Who was committed without having asked tells nothing of when.
            known = ((moment if moment < inf else 0.0, each) for moment, each in moments)
            self._latest_commits = list(accumulate(known, _larger))
        at = bisect_left(self._offsets, end)
        return self._latest_commits[at - 1] if at else None
