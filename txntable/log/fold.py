"""What a table's log means beside its state, and the proof that it still means something after an entry.

Owns the order in which an entry is folded, and that nothing is put that its writer has not read itself: an entry and a
checkpoint are decoded from the very bytes, and folded on an overlay of the view (PROTOCOL.md §4.2).  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self

from txntable.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError
from txntable.log.actions import Commit, decode_commit
from txntable.log.checkpoint import decode_checkpoint, encode_checkpoint
from txntable.log.damage import reading
from txntable.log.entry_encoding import encode_commit
from txntable.log.table_state import TableState


class Fold(Protocol):
    """What a table's log means, kept beside its state by the same fold."""

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded (from a checkpoint, or empty)."""
        ...

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state *before* it."""
        ...

    def overlay(self) -> Self:
        """Return a fold that stands where this one does and keeps to itself what it takes; costs the same always."""
        ...


def take(commit: Commit, table: TableState, fold: Fold) -> None:
    """Fold one commit into a table's state and what is kept beside it.

    Raises
    ------
    DamagedDataError, UnsupportedFormatError
        It cannot be folded; state and fold are good for nothing then.
    """
    table.check_follows(commit)
    fold.apply(commit, table)
    table.apply(commit)


def proved_entry(commit: Commit, engine: str, view: tuple[TableState, Fold], path: str) -> tuple[Commit, bytes]:
    """Return the bytes of a log entry that every reader of the view can fold, and the commit that they say.

    Parameters
    ----------
    commit : Commit
        Of the next version.
    engine : str
        For ``commitInfo``.
    view : tuple of TableState and Fold
        Which are left as they are: the cost grows with the entry.
    path : str
        Where it is to be put.

    Raises
    ------
    InvalidRequestError
        Nobody could read it: nothing may be put.
    """
    with _proving(path):
        data = encode_commit(commit, engine)
        found = decode_commit(commit.version, data, path)
        take(found, view[0].overlay(), view[1].overlay())
    return found, data


def proved_checkpoint(table: TableState, fold: Fold, path: str) -> bytes:
    """Return the bytes of a checkpoint that every reader can start from.

    Rows that were proved before are compared, field by field; all others are taken as a start takes them.

    Parameters
    ----------
    table : TableState
        Whose tail of files is absorbed.
    fold : Fold
        Of the table.
    path : str
        Where it is to be put.

    Raises
    ------
    InvalidRequestError
        It is too large, or nobody could start from it: the log goes on without it.
    """
    with _proving(path):
        data = encode_checkpoint(table)
        fold.overlay().restore(decode_checkpoint(table.next_version - 1, data, path, table.files.proved))
    table.files.know_proved()
    return data


@contextmanager
def _proving(path: str) -> Iterator[None]:
    """Let whatever cannot be read again be the caller's error, before anything is put."""
    try:
        with reading(path):
            yield
    except (DamagedDataError, UnsupportedFormatError) as error:
        raise InvalidRequestError(
            "nobody could read what this would write, so nothing was written; mend what was given",
            path=path,
            because=error.__cause__ or error,
        ) from error
