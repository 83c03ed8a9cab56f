"""The thread that keeps a member's session alive while its consumer works between two polls, for hours if need be.

Owns the thread; what is done, and when next, is :meth:`txntable.groups.membership.Membership.tend_in_background`,
which a test may call without a thread.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from txntable.errors import TxnTableError
from txntable.runtime.background_thread import start_in_background
from txntable.runtime.one_process import is_own

logger = logging.getLogger(__name__)

_MILLISECONDS = 1000
# After a failure that does not pass by itself.
_RETRY_MS = 3_000


class HeartbeatThread:
    """Calls again and again; starts at the first :meth:`wake`.

    Parameters
    ----------
    tend : callable
        Does what is due; returns after how many ms to call it again, ``None``: not before :meth:`wake`.
    """

    def __init__(self, tend: Callable[[], int | None]) -> None:
        self._tend = tend
        self._made_in = os.getpid()
        self._changed = threading.Condition()
        self._woken = self._stopped = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Take note that there is a session to keep alive."""
        with self._changed:
            if self._thread is None and not self._stopped:
                self._thread = start_in_background("txntable-heartbeat", self._run, self.stop)
            self._woken = True
            self._changed.notify()

    def stop(self) -> None:
        """Let the thread end; it is not waited for.  A copy in a fork's child has none, and touches no lock of it."""
        if not is_own(self._made_in):
            return
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while not self._stopped:
            self._woken = False
            rest_ms = self._step()
            with self._changed:
                if not (self._woken or self._stopped):
                    self._changed.wait(None if rest_ms is None else rest_ms / _MILLISECONDS)

    def _step(self) -> int | None:
        try:
            return self._tend()
        except TxnTableError as error:
            # Whatever is wrong with the group is met by the consumer's own calls, too.
            logger.warning("the heartbeat failed: %s", error)
            return _RETRY_MS
        except RuntimeError as error:
            # The program ends and has not closed its consumer: Python lets no thread begin any more.
            if "interpreter shutdown" not in str(error):
                raise
            self.stop()
            return None
