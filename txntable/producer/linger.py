"""Sending what has waited ``linger_ms``, in the background of a producer without transactions.

Owns when a flush is due, and the thread that waits for it; nothing else of a producer runs in a
thread of its own.  The decision is :meth:`Linger.step`, which a test may call without a thread.  The two
callables that it is given take the producer's lock themselves; this module holds none of its own
while it calls them.  Must not know what a flush does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from txntable.errors import TxnTableError
from txntable.runtime.background_thread import start_in_background
from txntable.runtime.environment import Environment, Instant

# Kafka's retry.backoff.ms: after a failure, not sooner than this.
RETRY_MS = 100
_MILLISECONDS = 1000


class Linger:
    """The background flushes of one producer.

    Parameters
    ----------
    linger_ms : int
        How long a record waits at most, ms.
    environment : Environment
        Says how long ago an instant was.
    flush : callable
        Sends everything that waits.
    waiting_since : callable
        Returns when the oldest record that waits was sent; ``None``: none waits.
    """

    def __init__(
        self,
        linger_ms: int,
        environment: Environment,
        flush: Callable[[], None],
        waiting_since: Callable[[], Instant | None],
    ) -> None:
        self._linger_ms = linger_ms
        self._environment = environment
        self._flush = flush
        self._waiting_since = waiting_since
        self._failure: TxnTableError | None = None
        self._changed = threading.Condition()
        self._woken = self._stopped = False
        self._thread: threading.Thread | None = None

    def step(self) -> int | None:
        """Flush if a record has waited long enough.

        Returns
        -------
        int or None
            After how many ms to look again; ``None``: not before something is sent.
        """
        rest_ms = self._rest_ms()
        if rest_ms is None or rest_ms > 0:
            return rest_ms
        try:
            self._flush()
        except TxnTableError as error:
            self._failure = error
            return None if self._rest_ms() is None else RETRY_MS
        self._failure = None
        return self._rest_ms()

    def _rest_ms(self) -> int | None:
        since = self._waiting_since()
        return None if since is None else max(0, self._linger_ms - self._environment.since_ms(since))

    def raise_failure(self) -> None:
        """Raise, once, what the last background flush raised.

        Raises
        ------
        TxnTableError
            As from :meth:`txntable.producer.producer.Producer.flush`.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def wake(self) -> None:
        """Take note that something was sent; the first time the thread starts."""
        with self._changed:
            if self._thread is None and not self._stopped:
                self._thread = start_in_background("txntable-linger", self._run, self.stop)
            self._woken = True
            self._changed.notify()

    def stop(self) -> None:
        """Let the thread end; it is not waited for: who stops it may hold the lock that it waits for."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while not self._stopped:
            self._woken = False
            rest_ms = self.step()
            with self._changed:
                if not (self._woken or self._stopped):
                    self._changed.wait(None if rest_ms is None else rest_ms / _MILLISECONDS)
