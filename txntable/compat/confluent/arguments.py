"""Arguments of the wrong type, refused as confluent-kafka refuses them: by Python's own TypeError.

Owns what each kind of argument may be: at least what confluent-kafka takes.  What a value means and its bounds are the
clients' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, TypeVar

ValueT = TypeVar("ValueT")


def of_type(kind: type[ValueT], given: Any, name: str) -> ValueT:
    """Return an argument that is of a type.

    Raises
    ------
    TypeError
        It is of another one.
    """
    if not isinstance(given, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(given).__name__}")
    return given


def list_of(kind: type[ValueT], given: Any, name: str) -> list[ValueT]:
    """Return a list, or another sequence, of values of one type; a text is none.

    Raises
    ------
    TypeError
        It is none, or one of its values is of another type.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"{name} must be a list of {kind.__name__}, not {type(given).__name__}")
    return [of_type(kind, each, f"each of {name}") for each in given]


def check_callables(given: Iterable[tuple[str, Callable[..., object] | None]]) -> None:
    """Refuse what can not be called; ``None`` need not be.

    Raises
    ------
    TypeError
        One of them is of another type.
    """
    for name, call in given:
        if call is not None and not callable(call):
            raise TypeError(f"{name} must be a callable, not {type(call).__name__}")


def int_of(given: Any, name: str) -> int:
    """Return a whole number.

    Raises
    ------
    TypeError
        It is none.
    """
    try:
        return int(index(given))
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(given).__name__}") from None


def seconds_or_none(timeout: float | None) -> float | None:
    """Return a timeout in seconds; ``None``: as long as it takes.

    Raises
    ------
    TypeError
        It is no number.
    """
    if timeout is not None and not isinstance(timeout, int | float):
        raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}")
    return None if timeout is None or timeout < 0 else timeout
