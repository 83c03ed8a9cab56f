"""Where a group stands, as far as a history tells: what it certainly has committed, and what it may have.

An offset that is part of a transaction counts when that is committed.  A group never goes back unless an admin resets
it; what was committed before a reset, or while one was under way, is certain no more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from tests.checker.history_index import Index
from tests.checker.ladder import Latest
from tests.checker.operations import CommitOffsets, FetchOffsets, Level, Operation, Outcome, Place, Read
from tests.checker.written import Ended, returned

GroupPlace = tuple[str, Place]
"""A group and a place."""


class GroupOffsets:
    """The offsets of all groups.

    Parameters
    ----------
    index : Index
        The history.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._resets: dict[GroupPlace, list[tuple[float, float]]] = defaultdict(list)
        self._certain: dict[tuple[GroupPlace, int], list[tuple[float, float, object]]] = defaultdict(list)
        self._possible: dict[GroupPlace, list[tuple[float, float, object]]] = defaultdict(list)
        for operation, call in index.calls(CommitOffsets):
            if call.reset and operation.outcome is not Outcome.FAIL:
                for place in call.offsets:
                    self._resets[call.group, place].append((operation.invoked, returned(operation)))
        self._take_commits()
        for operation, group, offsets, _ in self.observations():
            for place, offset in offsets.items():
                self._take((group, place), operation.invoked, returned(operation), offset)
        self._latest = {key: Latest(known) for key, known in self._certain.items()}
        self._most = {key: Latest(known) for key, known in self._possible.items()}

    def _take_commits(self) -> None:
        for operation, call in self._index.calls(CommitOffsets):
            if call.reset or operation.outcome is Outcome.FAIL:
                continue
            certain = returned(operation) if operation.outcome is Outcome.OK else float("inf")
            if call.txn is not None:
                txn = self._index.txns[call.txn]
                if txn.ended is Ended.ABORTED:
                    continue
                certain = max(certain, txn.commit_acked)
            for place, offset in call.offsets.items():
                self._possible[call.group, place].append((operation.invoked, offset, call))
                self._take((call.group, place), operation.invoked, certain, offset)

    def _take(self, place: GroupPlace, invoked: float, certain: float, offset: int) -> None:
        era = self._era(place, invoked)
        overlapped = any(begun < certain and invoked < ended for begun, ended in self._resets[place])
        if certain < float("inf") and not overlapped:
            self._certain[place, era].append((certain, offset, None))

    def _era(self, place: GroupPlace, moment: float) -> int:
        """Return how many resets had begun by then."""
        return bisect_left(self._resets[place], (moment, 0.0))

    def observations(self) -> Iterator[tuple[Operation, str, dict[Place, int], frozenset[Place]]]:
        """Return who looked at offsets: the call, the group, what it has, and what it was asked for."""
        for operation, fetch in self._index.done(FetchOffsets):
            offsets = {place: each for place, each in fetch.offsets.items() if self._index.is_judged(place)}
            yield operation, fetch.group, offsets, frozenset(filter(self._index.is_judged, fetch.asked))
        for operation, read in self._index.done(Read):
            if read.as_of or read.level is not Level.SNAPSHOT:
                continue
            for group in read.groups:
                mine = {place: offset for (whose, place), offset in read.offsets.items() if whose == group}
                judged = {place: offset for place, offset in mine.items() if self._index.is_judged(place)}
                yield operation, group, judged, frozenset()

    def certain(self, group: str, place: Place, moment: float, end: float) -> int | None:
        """Return what the group has at least from a moment on, until `end`: a reset that may have run is heeded."""
        era = self._era((group, place), end)
        known = self._latest.get(((group, place), era))
        found = None if known is None else known.before(moment)
        return None if found is None else int(found[0])

    def possible(self, group: str, place: Place, moment: float) -> int:
        """Return the most that anybody may have committed by then."""
        known = self._most.get((group, place))
        found = None if known is None else known.before(moment)
        return 0 if found is None else int(found[0])
