"""A thread in the background that takes a step, waits, and takes the next one, for as long as there is one.

Owns the thread, when it begins, when it wakes and how it ends.  What a step does, and after how long the next one is
due, is the subclass's: a test may call :meth:`SteppingThread.step` without a thread.  No lock is held during a step.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod

from txntable.runtime.background_thread import start_in_background, threads_may_begin
from txntable.runtime.one_process import is_own

_MILLISECONDS = 1000


class SteppingThread(ABC):
    """Takes steps again and again, from :meth:`wake` until nothing is due.

    Parameters
    ----------
    name : str
        Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._made_in = os.getpid()
        self._changed = threading.Condition()
        self._woken = self._stopped = False
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Return whether there is a thread that takes the next step."""
        return self._thread is not None

    @abstractmethod
    def step(self) -> int | None:
        """Do what is due.

        Returns
        -------
        int or None
            After how many ms to look again; ``None``: not before :meth:`wake`, and the thread ends.
        """

    def last_step(self) -> None:  # noqa: B027  not every subclass has one
        """Do what must not wait any longer, when the thread is stopped while something is due; by default nothing."""

    def wake(self) -> None:
        """Let a step be taken now, by a thread that begins where none runs; at the process's exit none is taken."""
        with self._changed:
            self._woken = True
            if self._thread is None and not self._stopped and threads_may_begin():
                self._thread = start_in_background(self._name, self._run, self.stop)
            self._changed.notify()

    def stop(self) -> None:
        """Let the thread end; it is not waited for: who stops it may hold the lock that a step waits for.

        A copy in a fork's child has no thread, and touches no lock of it.
        """
        if not is_own(self._made_in):
            return
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._woken = False
                rest_ms = self.step()
                with self._changed:
                    if self._woken or self._stopped:
                        continue
                    if rest_ms is None:
                        self._thread = None
                        return
                    self._changed.wait(rest_ms / _MILLISECONDS)
            self.last_step()
        except BaseException:
            # Whatever it was: the next wake begins a thread anew.
            self._leave()
            raise
        self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._thread = None
