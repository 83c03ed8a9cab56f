"""Writing COMPLETE for ids that stay idle, in the background of a handle (PROTOCOL.md §6.4).

Owns when it is due.  An id that goes on within the time has its COMPLETE in its next entry, and nothing is written for
it.  Must not know what COMPLETE is: it is given what writes it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from txntable.errors import TxnTableError
from txntable.runtime.environment import Environment, Instant
from txntable.runtime.stepping_thread import SteppingThread

logger = logging.getLogger(__name__)

LINGER_MS = 500
"""How long an id's last transaction waits for the next one, ms."""


class CompletionLinger(SteppingThread):
    """The ids of a handle whose last transaction waits for COMPLETE.

    Parameters
    ----------
    environment : Environment
        Says how long ago an instant was.
    record : callable
        Transactional ids -> writes COMPLETE for those that are known complete.
    """

    def __init__(self, environment: Environment, record: Callable[[Collection[str]], object]) -> None:
        super().__init__("txntable-complete")
        self._environment = environment
        self._record = record
        self._lock = threading.Lock()
        self._waiting: dict[str, Instant] = {}

    def wait_for(self, transactional_id: str) -> None:
        """Let COMPLETE be written when the id has decided nothing else for as long as :data:`LINGER_MS`."""
        with self._lock:
            is_first = not self._waiting
            self._waiting[transactional_id] = self._environment.instant()
        # A busy handle does not wake it at every commit.
        if is_first or not self.is_running:
            self.wake()

    def forget(self, transactional_id: str) -> None:
        """Write nothing for an id any more: who closes it does."""
        with self._lock:
            self._waiting.pop(transactional_id, None)

    def step(self) -> int | None:
        """Write what is due; return after how many ms to look again."""
        self._write_older_than(LINGER_MS)
        with self._lock:
            waited = [self._environment.since_ms(since) for since in self._waiting.values()]
        return max(1, LINGER_MS - max(waited)) if waited else None

    def last_step(self) -> None:
        """Write all that waits: nobody comes again."""
        self._write_older_than(0)

    def _write_older_than(self, least_ms: int) -> None:
        with self._lock:
            due = [each for each, since in self._waiting.items() if self._environment.since_ms(since) >= least_ms]
            for transactional_id in due:
                del self._waiting[transactional_id]
        if not due:
            return
        try:
            self._record(due)
        except TxnTableError as error:
            logger.warning("COMPLETE is left to others: %s", error)
