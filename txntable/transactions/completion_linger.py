"""Writing COMPLETE for ids that stay idle, in the background of a handle (PROTOCOL.md §6.4).

Owns when it is due, and a thread that lives only while something waits.  An id that goes on within the time has its
COMPLETE in its next entry, and nothing is written for it.  Must not know what COMPLETE is: it is given what writes it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from txntable.errors import TxnTableError
from txntable.runtime.background_thread import start_in_background
from txntable.runtime.environment import Environment, Instant

logger = logging.getLogger(__name__)

LINGER_MS = 500
"""How long an id's last transaction waits for the next one, ms."""

_MILLISECONDS = 1000


class CompletionLinger:
    """The ids of a handle whose last transaction waits for COMPLETE.

    Parameters
    ----------
    environment : Environment
        Says how long ago an instant was.
    record : callable
        Transactional ids -> writes COMPLETE for those that are known complete.
    """

    def __init__(self, environment: Environment, record: Callable[[Collection[str]], object]) -> None:
        self._environment = environment
        self._record = record
        self._lock = threading.Lock()
        self._waiting: dict[str, Instant] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def wait_for(self, transactional_id: str) -> None:
        """Let COMPLETE be written when the id has decided nothing else for as long as :data:`LINGER_MS`."""
        with self._lock:
            self._waiting[transactional_id] = self._environment.instant()
            if self._thread is None:
                self._thread = start_in_background("txntable-complete", self._run, self._stopped.set)

    def forget(self, transactional_id: str) -> None:
        """Write nothing for an id any more: who closes it does."""
        with self._lock:
            self._waiting.pop(transactional_id, None)

    def step(self, *, is_last: bool = False) -> int | None:
        """Write what is due.

        Parameters
        ----------
        is_last : bool
            Nobody comes again: all that waits is due.

        Returns
        -------
        int or None
            After how many ms to come again; ``None``: nothing waits any more.
        """
        with self._lock:
            least_ms = 0 if is_last else LINGER_MS
            due = [each for each, since in self._waiting.items() if self._environment.since_ms(since) >= least_ms]
            for transactional_id in due:
                del self._waiting[transactional_id]
        if due:
            try:
                self._record(due)
            except TxnTableError as error:
                logger.warning("COMPLETE is left to others: %s", error)
        with self._lock:
            if not self._waiting:
                self._thread = None
                return None
            return min(max(1, LINGER_MS - self._environment.since_ms(since)) for since in self._waiting.values())

    def _run(self) -> None:
        rest_ms = self.step()
        while rest_ms is not None:
            # At the exit of the process what waits is written, if it can be within the exit's patience.
            rest_ms = self.step(is_last=self._stopped.wait(rest_ms / _MILLISECONDS))
