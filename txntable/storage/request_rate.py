"""How many requests a second one process makes of a store that asked for fewer (S3's ``SlowDown``).

Free until the store asks.  Then half of what it was, halved once a second at most; each request that goes well adds a
little, until it is free again: additive increase, multiplicative decrease, as TCP's.  Parts of uploads are not counted:
obstore sends them, four at a time.  Must not know what is sent.
"""

from __future__ import annotations

import threading

from txntable.runtime.environment import Environment, Instant

FREE_PER_SECOND = 200.0
"""Above it nothing is counted; half of it is what the first ``SlowDown`` leaves."""
LEAST_PER_SECOND = 1.0
_ADDED_A_SECOND = 10.0
_HALVED_AT_MOST_EVERY_MS = 1_000
_SECOND_MS = 1_000


class RequestRate:
    """The rate of one store's handle; may be shared by threads.

    Parameters
    ----------
    environment : Environment
        Measures and waits.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._next_ms = 0.0
        self._halved: Instant | None = None
        self.per_second: float | None = None
        """``None``: free."""

    def wait(self) -> None:
        """Wait for one's turn to make a request."""
        if self.per_second is None:
            return
        with self._lock:
            now_ms = self._environment.instant().boot_ms
            turn_ms = max(float(now_ms), self._next_ms)
            self._next_ms = turn_ms + _SECOND_MS / (self.per_second or FREE_PER_SECOND)
        if turn_ms > now_ms:
            self._environment.sleep_ms(turn_ms - now_ms)

    def halve(self) -> None:
        """Take note that the store asks for fewer requests."""
        with self._lock:
            if self._halved is None or self._environment.since_ms(self._halved) >= _HALVED_AT_MOST_EVERY_MS:
                self._halved = self._environment.instant()
                self.per_second = max((self.per_second or FREE_PER_SECOND) / 2, LEAST_PER_SECOND)

    def went_well(self) -> None:
        """Take note that the store answered."""
        if self.per_second is None:
            return
        with self._lock:
            if self.per_second is not None:
                raised = self.per_second + _ADDED_A_SECOND / self.per_second
                self.per_second = None if raised >= FREE_PER_SECOND else raised
