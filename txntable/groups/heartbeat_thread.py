"""The thread that keeps a member's session alive while its consumer works between two polls, for hours if need be.

The rules are those of PROTOCOL.md §8.3.

Owns what follows a failure.  What is done, and when next, is
:meth:`txntable.groups.membership.Membership.tend_in_background`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from txntable.errors import TxnTableError
from txntable.runtime.stepping_thread import SteppingThread

logger = logging.getLogger(__name__)

# After a failure that does not pass by itself.
_RETRY_MS = 3_000


class HeartbeatThread(SteppingThread):
    """Calls again and again; woken when there is a session to keep alive.

    Parameters
    ----------
    tend : callable
        Does what is due; returns after how many ms to call it again, ``None``: not before :meth:`wake`.
    """

    def __init__(self, tend: Callable[[], int | None]) -> None:
        super().__init__("txntable-heartbeat")
        self._tend = tend

    def step(self) -> int | None:
        """Tend the session; return after how many ms to do it again."""
        try:
            return self._tend()
        except TxnTableError as error:
            # Whatever is wrong with the group is met by the consumer's own calls, too.
            logger.warning("the heartbeat failed: %s", error)
            return _RETRY_MS
