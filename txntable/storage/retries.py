"""When a request to a remote store is sent again, and for how long: bounded in number and time, with jitter.

Twice the same rule.  obstore sends again what ended in 5xx, 429 or 408, in a lost connection or in a timeout, and asks
for the rest of an object whose bytes broke off.  It leaves three things to its caller, which :class:`Attempts` takes
on: a 409 of a request that had no condition (S3: a conflicting operation is under way), S3's 400 RequestTimeout, and
a listing that broke off.  Neither heeds ``Retry-After``: the wait doubles from a tenth of a second on.  Put-if-absents
are not sent again at all here; the log does that, which can tell whose object it meets (PROTOCOL.md, log rule 1).
Must not know what is sent.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from txntable.environment import Environment

RETRIED_FOR = timedelta(minutes=2)
"""After so long nothing is sent again; what is under way then still has its timeout."""
FIRST_BACKOFF = timedelta(milliseconds=100)
LARGEST_BACKOFF = timedelta(seconds=15)
_PASSING = re.compile(r"status code: 409\b|<Code>RequestTimeout</Code>|Error getting \w+ response body")
_MILLISECOND = timedelta(milliseconds=1)


def obstore_retries(max_retries: int) -> dict[str, Any]:
    """Return obstore's ``retry_config``: the next wait is chance, at most twice the one before.

    Parameters
    ----------
    max_retries : int
        How often a request is sent again; 0: never.
    """
    backoff = {"init_backoff": FIRST_BACKOFF, "max_backoff": LARGEST_BACKOFF, "base": 2}
    return {"max_retries": max_retries, "retry_timeout": RETRIED_FOR, "backoff": backoff}


class Attempts:
    """The attempts at one call.

    Parameters
    ----------
    max_retries : int
        How often it is tried again at most.
    environment : Environment
        Waits.
    """

    def __init__(self, max_retries: int, environment: Environment) -> None:
        self._max_retries = max_retries
        self._environment = environment
        self._began = self._environment.instant()
        self._failed = 0

    @property
    def tried_for_ms(self) -> int:
        """Return how long ago the first attempt began, in ms."""
        return self._environment.since_ms(self._began)

    def again(self, error: Exception) -> bool:
        """Return whether to try again after an error, and wait before that.

        Parameters
        ----------
        error : Exception
            obstore's, of a request that does no harm when it is made twice.
        """
        if _PASSING.search(str(error)) is None:
            return False
        self._failed += 1
        if self._failed > self._max_retries or self.tried_for_ms >= RETRIED_FOR / _MILLISECOND:
            return False
        wait_ms = min(FIRST_BACKOFF * 2 ** (self._failed - 1), LARGEST_BACKOFF) / _MILLISECOND
        self._environment.sleep_ms(wait_ms * self._environment.uniform(0.5, 1.5))
        return True
