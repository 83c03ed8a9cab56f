"""The oldest position that log cleanup has left to snapshots, for errors about what it has deleted.

Owns from which position on the logs have what is needed: one above what T had when the oldest entry of the other log
was written, by the store's times.  Files of that time may be vacuumed all the same.  Must not know what a snapshot
reads.
"""

from __future__ import annotations

from txntable.errors import OffsetOutOfRangeError
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.log.cleanup import log_files, readable_entries
from txntable.log.entry_time import version_as_of, written_by_ms
from txntable.log.log_view import LogContext


def cleaned_up(context: LogContext, root: str, **facts: object) -> OffsetOutOfRangeError:
    """Return the error about a snapshot whose log entries are deleted, with the earliest position that is left.

    Parameters
    ----------
    context : LogContext
        With the store.
    root : str
        The log in which entries are missing, T or another one.
    **facts : object
        What was asked for.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    decided = readable_entries(log_files(context.store, TRANSACTION_LOG_ROOT))
    if not decided:
        return OffsetOutOfRangeError("the log entries of that time are cleaned up; read what there is now", **facts)
    earliest, newest = decided[0], decided[-1]
    if root != TRANSACTION_LOG_ROOT:
        oldest = min(readable_entries(log_files(context.store, root)), default=0)
        then = version_as_of(context, TRANSACTION_LOG_ROOT, newest, written_by_ms(context.store, root, oldest))
        earliest = max(earliest, 0 if then is None else then + 1)
    if earliest > newest:
        # Nothing was decided since: what there is now is what there was.
        return OffsetOutOfRangeError("the log entries of that time are cleaned up; read what there is now", **facts)
    return OffsetOutOfRangeError(
        "the log entries of that time are cleaned up; ask for a position from earliest_position on",
        **facts,
        earliest_position=earliest,
    )
