"""Following a log, and looking for objects that its state names in the same round trips (PROTOCOL.md §4.3).

Must not know what the objects mean.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from txntable.log.asking import Asking, answer
from txntable.log.log_view import LogView
from txntable.log.table_state import TableState


@dataclass(frozen=True, slots=True)
class Look:
    """Which of some objects were there.

    Attributes
    ----------
    paths : tuple of str
        The objects that were asked for.
    there : tuple of bool
        Of each.
    """

    paths: tuple[str, ...]
    there: tuple[bool, ...]


def refresh_beside(view: LogView[Any], places: Callable[[TableState], tuple[str, ...]]) -> Look:
    """Bring a view to its tail, and look whether objects that its state names are there, at the same time.

    Parameters
    ----------
    view : LogView
        The view.
    places : callable
        Of a state of the table, the objects to look for.

    Returns
    -------
    Look
        Of the objects that the state names now, asked for since the call began.

    Raises
    ------
    TxnTableError
        As :meth:`LogView.refresh`.
    """
    with view.lock:
        view._check_lost()  # noqa: SLF001
        seen = answer(view.context.store, _looking(view, places))
        wanted = places(view.table)
        if seen.paths == wanted:
            return seen
        # What was read last told of others.
        return Look(wanted, tuple(view.context.store.head(path) is not None for path in wanted))


def _looking(view: LogView[Any], places: Callable[[TableState], tuple[str, ...]]) -> Asking[Look]:
    reading, seen = view._refreshing(), Look((), ())  # noqa: SLF001
    with closing(reading):
        asked = next(reading, None)
        while asked is not None:
            paths = places(view.table)
            found = yield [*asked, *paths]
            seen = Look(paths, tuple(each is not None for each in found[len(asked) :]))
            try:
                asked = reading.send(found[: len(asked)])
            except StopIteration:
                break
    return seen
