"""When a request to a store is made again, and for how long: one budget for each call, with a growing wait and chance.

There is one loop.  obstore makes no request twice, but for the parts of an upload, which are gone by the time that the
loop could send them again; these go by :func:`obstore_retries`, with the same timeout.  Put-if-absents are not made
again at the store at all: the log does that, which can tell whose object it meets (PROTOCOL.md, log rule 1).

A call in a call has no budget of its own: :func:`ending_within` bounds all that is tried again inside it, so that loops
share a deadline and never multiply.  ``Retry-After`` is not heeded (obstore hides headers; S3 sends none).
Must not know what is sent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from txntable.errors import StoreUnavailableError
from txntable.runtime.environment import Environment, Instant
from txntable.storage.store_errors import error_code, http_status, key_failure_in, meaning_of

logger = logging.getLogger(__name__)

DEFAULT_RETRY_TIMEOUT_MS = 120_000
"""As Kafka's ``delivery.timeout.ms``."""
FIRST_BACKOFF_MS = 50.0
LARGEST_BACKOFF_MS = 5_000.0
LEAST_BUDGET_MS = 1_000
"""What a call with a shorter timeout of its own spends at least on a store that does not answer."""
_TOLD_AFTER_MS = 5_000
_LEAST_WAIT_MS = 1
# obstore's wait is chance between the first one and this often the last one: with 2 it would hardly grow.
_OBSTORE_BASE = 4
_OBSTORE_ATTEMPTS = 1_000
_PASSING_STATUS = frozenset({"408", "409", "429"})
_NO_ANSWER = re.compile(r"HTTP error|response body|error sending request|timed out|connection", re.IGNORECASE)
_BUSY_STATUS = frozenset({"429", "503"})


@dataclass(frozen=True, slots=True)
class _Deadline:
    environment: Environment
    began: Instant
    timeout_ms: float

    @property
    def left_ms(self) -> float:
        return self.timeout_ms - self.environment.since_ms(self.began)


_deadline: ContextVar[_Deadline | None] = ContextVar("_deadline", default=None)


def _bounded(timeout_ms: float) -> float:
    outer = _deadline.get()
    return timeout_ms if outer is None else min(timeout_ms, outer.left_ms)


@contextmanager
def ending_within(environment: Environment, timeout_ms: float) -> Iterator[None]:
    """Bound all that is tried again inside: nothing is, once the time is over.  The earliest of several bounds counts.

    Parameters
    ----------
    environment : Environment
        Measures the time.
    timeout_ms : float
        From now on.
    """
    token = _deadline.set(_Deadline(environment, environment.instant(), _bounded(timeout_ms)))
    try:
        yield
    finally:
        _deadline.reset(token)


class Attempts:
    """The attempts at one call.

    Parameters
    ----------
    timeout_ms : float
        For how long it is tried again; less where :func:`ending_within` says so.
    environment : Environment
        Waits.
    """

    def __init__(self, timeout_ms: float, environment: Environment) -> None:
        self._timeout_ms = _bounded(timeout_ms)
        self._environment = environment
        self._began = environment.instant()
        self._failed = 0
        self._is_told = False

    @property
    def tried_for_ms(self) -> int:
        """Return how long ago the first attempt began, in ms."""
        return self._environment.since_ms(self._began)

    @property
    def failed(self) -> int:
        """Return how many attempts have failed."""
        return self._failed

    def wait(self) -> bool:
        """Wait, after an attempt that failed, and return whether to make another; the last is made at the deadline."""
        left_ms = self._timeout_ms - self.tried_for_ms
        if left_ms < _LEAST_WAIT_MS:
            return False
        wait_ms = min(FIRST_BACKOFF_MS * 2 ** min(self._failed, 20), LARGEST_BACKOFF_MS)
        self._failed += 1
        if not self._is_told and self.tried_for_ms >= _TOLD_AFTER_MS:
            self._is_told = True
            logger.warning("the store gives no usable answer; trying on for up to %d s", left_ms // 1000)
        self._environment.sleep_ms(min(wait_ms * self._environment.uniform(0.5, 1.5), left_ms))
        return True


def passes(text: str) -> bool:
    """Return whether an error may pass by itself: no answer, a busy or failing store, a conflicting request.

    Parameters
    ----------
    text : str
        Of an error of obstore, of a request that does no harm when it is made twice.
    """
    of_keys = key_failure_in(text)
    if of_keys is not None:
        return of_keys.retriable
    known = meaning_of(error_code(text))
    if known is not None:
        return issubclass(known[0], StoreUnavailableError)
    status = http_status(text)
    if status is not None:
        return status >= "500" or status in _PASSING_STATUS
    return _NO_ANSWER.search(text.partition("\n\nDebug source")[0]) is not None


def asks_for_less(text: str) -> bool:
    """Return whether an error says that the store gets too many requests."""
    known = meaning_of(error_code(text))
    return http_status(text) in _BUSY_STATUS or (known is not None and known == meaning_of("SlowDown"))


def obstore_retries(timeout_ms: int) -> dict[str, Any]:
    """Return obstore's ``retry_config``, for each request of an upload in parts.

    Parameters
    ----------
    timeout_ms : int
        For how long a request is made again; 0: never.
    """
    return {
        "max_retries": _OBSTORE_ATTEMPTS if timeout_ms else 0,
        "retry_timeout": timedelta(milliseconds=timeout_ms),
        "backoff": {
            "init_backoff": timedelta(milliseconds=FIRST_BACKOFF_MS),
            "max_backoff": timedelta(milliseconds=LARGEST_BACKOFF_MS),
            "base": _OBSTORE_BASE,
        },
    }
