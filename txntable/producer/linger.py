"""Sending what has waited ``linger_ms``, in the background of a producer without transactions.

Owns when a flush is due; nothing else of a producer runs in a thread of its own.  The two
callables that it is given take the producer's lock themselves; this module holds none of its own
while it calls them.  Must not know what a flush does.
"""

from __future__ import annotations

from collections.abc import Callable

from txntable.errors import TxnTableError
from txntable.runtime.environment import Environment, Instant
from txntable.runtime.stepping_thread import SteppingThread

# Kafka's retry.backoff.ms: after a failure, not sooner than this.
RETRY_MS = 100


class Linger(SteppingThread):
    """The background flushes of one producer; woken when something was sent.

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
        super().__init__("txntable-linger")
        self._linger_ms = linger_ms
        self._environment = environment
        self._flush = flush
        self._waiting_since = waiting_since
        self._failure: TxnTableError | None = None

    def step(self) -> int | None:
        """Flush if a record has waited long enough; return after how many ms to look again."""
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
