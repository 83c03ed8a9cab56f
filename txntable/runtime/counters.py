"""Named totals: how often something happened, how much it was, and how long it took.

Owns the one thin layer that counts: shells call :meth:`Counters.add`, pure code never does.  A total costs an addition
under a lock, some 0.2 µs; nothing is computed, and nobody is called, until somebody asks.  Must not know what is
counted, nor who reads it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakSet

GROUP_END = "/"
"""Between a metric's group and its name: ``producer-metrics/record-send-total``."""


class Counters:
    """The totals of a handle, a store or a client; threads may share them.

    Parameters
    ----------
    ticks_ns : callable
        A clock that never goes back, ns.
    parent : Counters, optional
        Which gets everything as well: a handle has the sums of its clients.
    """

    def __init__(self, ticks_ns: Callable[[], int], parent: Counters | None = None) -> None:
        self._ticks_ns, self._parent = ticks_ns, parent
        self._totals: dict[str, int] = {}
        self._lock = threading.Lock()
        _every.add(self)

    def add(self, name: str, by: int = 1) -> None:
        """Raise a total.

        Parameters
        ----------
        name : str
            Its group, :data:`GROUP_END` and its name.
        by : int
            By how much.
        """
        with self._lock:
            self._totals[name] = self._totals.get(name, 0) + by
        if self._parent is not None:
            self._parent.add(name, by)

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the time that a block takes, also one that fails, in ns."""
        began = self._ticks_ns()
        try:
            yield
        finally:
            self.add(name, self._ticks_ns() - began)

    def child(self) -> Counters:
        """Return new totals that are counted here as well."""
        return Counters(self._ticks_ns, self)

    def totals(self) -> dict[str, int]:
        """Return all totals by name, as they are."""
        with self._lock:
            return dict(self._totals)


_every: WeakSet[Counters] = WeakSet()


def _forget_locks() -> None:
    """Let no lock stay taken in a forked process that a thread of the parent had: stores go on there."""
    for counters in list(_every):
        counters._lock = threading.Lock()  # noqa: SLF001


os.register_at_fork(after_in_child=_forget_locks)

Metrics = Mapping[str, Mapping[str, float]]
"""Group -> name -> value, as kafka-python's clients give them."""


def grouped(totals: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return totals by their group, both sorted."""
    found: dict[str, dict[str, float]] = {}
    for full, value in sorted(totals.items()):
        group, _, name = full.partition(GROUP_END)
        found.setdefault(group, {})[name] = value
    return found
