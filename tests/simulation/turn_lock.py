"""A lock for the threads of a simulated process: who waits for it leaves the turns to the others.

Only one thread runs at any time, and it is stopped at storage calls alone.  So a lock needs no lock itself, and a real
one would stop the whole simulation.  Who waits outside of a run waits for ever, which is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Waiting(Protocol):
    """Who may have to wait."""

    def wait_until(self, is_free: Callable[[], bool]) -> None:
        """Leave the turns to the others until something is so; raises ProcessKilled in who is killed meanwhile."""
        ...


_running: dict[int, Waiting] = {}


def runs_here(who: Waiting) -> None:
    """Say who waits when this thread does."""
    _running[threading.get_ident()] = who


def ends_here() -> None:
    """Say that nobody runs in this thread any more."""
    _running.pop(threading.get_ident(), None)


class TurnLock:
    """See :class:`txntable.runtime.environment.Lock`."""

    def __init__(self) -> None:
        self._owner: int | None = None
        self._times = 0

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; return whether it was taken."""
        me = threading.get_ident()
        if not self._is_free_for(me):
            if not blocking:
                return False
            assert me in _running, "a lock is taken, and nobody can give it back"
            _running[me].wait_until(lambda: self._is_free_for(me))
        self._owner, self._times = me, self._times + 1
        return True

    def _is_free_for(self, thread: int) -> bool:
        return self._owner in (None, thread)

    def release(self) -> None:
        """Give it back, once for each time that it was taken."""
        assert self._owner == threading.get_ident(), "a lock is given back by who has it"
        self._times -= 1
        if not self._times:
            self._owner = None

    def __enter__(self) -> TurnLock:
        """Take it."""
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        self.release()
