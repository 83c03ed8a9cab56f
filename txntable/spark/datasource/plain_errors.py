"""How an error of ours leaves the Python processes in which Spark plans reads and commits writes: as its one sentence.

Spark hands the text of a Python traceback to the user unless the process's environment says otherwise, and looks there
when the error has been raised.  Owns that nothing but an error of ours is shortened, and only in such a process.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from txntable.errors import TxnTableError

P = ParamSpec("P")
R = TypeVar("R")

_VARIABLE = "SPARK_HIDE_TRACEBACK"
# Whoever set it, it counts; by its value we know our own.
_OURS = "txntable"


def without_traceback(planned: Callable[P, R]) -> Callable[P, R]:
    """Let Spark tell an error of ours without the traceback of its process; every other error keeps it."""

    @functools.wraps(planned)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        # Spark keeps the process for what comes next, which may fail in another way.
        if os.environ.get(_VARIABLE) == _OURS:
            del os.environ[_VARIABLE]
        try:
            return planned(*args, **kwargs)
        except TxnTableError:
            if _is_of_spark():
                os.environ.setdefault(_VARIABLE, _OURS)
            raise

    return run


def _is_of_spark() -> bool:
    """Return whether Spark started this process, and it is not the user's program."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
