"""A lock at which others have arrived by the time that the first one gets it.

So what threads do while one of them has a log is tested without a race: each that comes is started when the one before
waits for the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class CrowdedLock:
    """A lock at which others have arrived by the time that the first one gets it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._leader = threading.get_ident()
        self._others: list[Callable[[], None]] = []
        self._arrived = threading.Semaphore(0)
        self.threads: list[threading.Thread] = []

    def will_come(self, other: Callable[[], None]) -> None:
        """Let another thread arrive."""
        self._others.append(other)

    def acquire(self, blocking: bool = True) -> bool:
        """Take it, as the others that arrive one after the other wait for it."""
        if threading.get_ident() != self._leader:
            self._arrived.release()
            return self._lock.acquire(blocking)
        self._lock.acquire()
        while self._others:
            thread = threading.Thread(target=self._others.pop(0))
            self.threads.append(thread)
            thread.start()
            self._arrived.acquire()
        return True

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def __enter__(self) -> None:
        """Take it."""
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        self.release()
