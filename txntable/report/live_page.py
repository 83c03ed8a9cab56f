"""The page of a warehouse as it is now, for any number of askers: made at most once in a while.

Owns that one look at the warehouse is made at a time, and that a page younger than the interval is not made again.
"""

from __future__ import annotations

from collections.abc import Callable

from txntable.errors import TxnTableError
from txntable.report.page import render_page
from txntable.report.warehouse_report import WarehouseReport
from txntable.runtime.environment import Environment, Instant


class LivePage:
    """What a server answers with.

    Parameters
    ----------
    look : callable
        Looks at the warehouse.
    environment : Environment
        Tells how old a page is.
    interval_s : int
        For how many seconds a page is good enough.
    """

    def __init__(self, look: Callable[[], WarehouseReport], environment: Environment, interval_s: int) -> None:
        self._look, self._environment, self._interval_s = look, environment, interval_s
        self._lock = environment.lock()
        self._made: tuple[Instant, bytes] | None = None

    def current(self) -> bytes:
        """Return the page, not older than the interval.

        Raises
        ------
        TxnTableError
            The warehouse cannot be read now; ask again.
        """
        with self._lock:
            made = self._made
            if made is None or self._environment.since_ms(made[0]) >= self._interval_s * 1000:
                at = self._environment.instant()
                made = self._made = (at, render_page(self._look(), self._interval_s).encode())
            return made[1]

    def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of an answer: a failure is told in its words."""
        try:
            return 200, self.current()
        except TxnTableError as error:
            return 503, f"{error.code} {error}\n".encode()
