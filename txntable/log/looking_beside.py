"""Following a log, and looking for an object that its state names in the same round trips (PROTOCOL.md §4.3).

Must not know what the object means.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from txntable.log.asking import Asking, answer
from txntable.log.log_view import LogView
from txntable.log.table_state import TableState


def refresh_beside(view: LogView[Any], place: Callable[[TableState], str | None]) -> tuple[str, bool] | None:
    """Bring a view to its tail, and look whether an object is there that its state names, in no round trip of its own.

    Parameters
    ----------
    view : LogView
        The view.
    place : callable
        Of a state of the table, the object; ``None``: there is none to look for.

    Returns
    -------
    (str, bool) or None
        The object that was looked for last, which an earlier state may have named, and whether it was there.

    Raises
    ------
    TxnTableError
        As :meth:`LogView.refresh`.
    """
    with view.lock:
        view._check_lost()  # noqa: SLF001
        return answer(view.context.store, _looking_beside(view, place))


def _looking_beside(view: LogView[Any], place: Callable[[TableState], str | None]) -> Asking[tuple[str, bool] | None]:
    reading, seen = view._refreshing(), None  # noqa: SLF001
    with closing(reading):
        asked = next(reading, None)
        while asked is not None:
            path = place(view.table)
            found = yield [*asked, *(() if path is None else (path,))]
            seen = seen if path is None else (path, found[-1] is not None)
            try:
                asked = reading.send(found[: len(asked)])
            except StopIteration:
                break
    return seen
