"""What is stored and cannot be read becomes one kind of error, which names the object (PROTOCOL.md §4.1).

Owns the last line of defence: whoever folds or decodes what a store returned does it inside of
:func:`reading`.  Nothing that a foreign hand wrote there may show as a defect of the program.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import pyarrow as pa

from txntable.errors import DamagedDataError, InvalidCallError, MissingDependencyError, UnsupportedFormatError

# Wrong types, missing fields, numbers out of bounds, too much nesting, and rules that a stored value breaks.  Not want
# of memory, nor what a store answers.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    InvalidCallError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)


def let_arrow_begin() -> None:
    """Let Arrow load what it loads with its first array: what fails there is no damage of what is stored.

    That is pandas, wherever it is installed; of one that does not fit its numpy the import raises a ValueError.

    Raises
    ------
    MissingDependencyError
        Repair what is installed.
    """
    try:
        pa.array([None])
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        raise MissingDependencyError(
            "arrow cannot be used, since what it loads with its first array fails; repair or remove that package",
            package="pandas",
            cause=f"{type(error).__name__}: {error}",
        ) from error


def reading(path: str) -> AbstractContextManager[None]:
    """Let whatever goes wrong with stored bytes inside name the object that they are of.

    Parameters
    ----------
    path : str
        The object, or the row of it, that is read.

    Raises
    ------
    DamagedDataError, UnsupportedFormatError
        As raised inside, with `path` among its facts; every other sign of unreadable data is a DamagedDataError.
    """
    return _Reading(path)


class _Reading(AbstractContextManager[None]):
    """Entered once and more for each entry of a log: no generator, which takes several times as long."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DamagedDataError | UnsupportedFormatError):
            if self._path not in error.facts.values():
                # A row that was named inside keeps its name: this is the object that it stands in.
                name = "object" if "path" in error.facts else "path"
                raise type(error)(error.message, **{name: self._path, **error.facts}) from error
        # Arrow's MemoryError is a kind of ArrowException, and no sign of damage.
        elif isinstance(error, _UNREADABLE) and not isinstance(error, MemoryError):
            raise DamagedDataError(
                "what is stored cannot be read; restore the object from a backup", path=self._path
            ) from error
