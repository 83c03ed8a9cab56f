"""What belongs to the process that made it: a fork copies it, and the copy would go on as if it were the only one.

Two copies of a producer number other records with the same sequences; two copies of a member own the same partitions;
a copied lock may be held by a thread that the child does not have.  So everything that holds a view, a sequence or an
identity derives from :class:`OfOneProcess`, and each of its public calls first asks whose it is.  The logs' views do,
too: what a client forgot would be refused there.  What travels between processes (a store's spec, a plan) does not.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, Self

from txntable.errors import IllegalStateError

_ALSO = frozenset({"__enter__", "__exit__", "__iter__", "__next__"})


def is_own(made_in: int) -> bool:
    """Return whether what was made in a process (its id) is still in it."""
    return os.getpid() == made_in


def check_own(what: str, made_in: int) -> None:
    """Return when this is the process that made something.

    Parameters
    ----------
    what : str
        Its name, for the message.
    made_in : int
        The process's id.

    Raises
    ------
    IllegalStateError
        It is another process, made by a fork: open the warehouse in there, or start it by spawn.
    """
    if not is_own(made_in):
        raise IllegalStateError(
            "this was made before a fork, and does not survive it; open the warehouse in the new process, or start that"
            " by spawn",
            what=what,
            made_in=made_in,
            process=os.getpid(),
        )


class OfOneProcess:
    """Base of what only the process that made it may use: every public call raises IllegalStateError in another.

    Nothing that the copy in the other process does, or leaves undone, harms the original.
    """

    _made_in: int

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Take note of the process; arguments are for ``__init__``."""
        made = super().__new__(cls)
        made._made_in = os.getpid()
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Guard what the class and its bases define, so that none of them can forget it."""
        super().__init_subclass__(**kwargs)
        calls: dict[str, FunctionType] = {}
        for base in reversed(cls.__mro__[:-1]):
            # What a base that derives from here, too, defines is guarded already.
            is_open = base is cls or not issubclass(base, OfOneProcess)
            for name, value in vars(base).items():
                calls.pop(name, None)
                if is_open and isinstance(value, FunctionType) and (name in _ALSO or not name.startswith("_")):
                    calls[name] = value
        for name, call in calls.items():
            setattr(cls, name, _guarded_exit(call) if name == "__exit__" else _guarded(call))


def _guarded(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def run(self: OfOneProcess, /, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() != self._made_in:
            check_own(type(self).__name__, self._made_in)
        return call(self, *args, **kwargs)

    return run


def _guarded_exit(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let an error that leaves a ``with`` block in a copy go on: there is nothing to end.  Who left well is told."""
    guarded = _guarded(call)

    @functools.wraps(call)
    def run(self: OfOneProcess, kind: object, error: BaseException | None, trace: object) -> Any:
        return guarded(self, kind, error, trace) if error is None or is_own(self._made_in) else None

    return run
