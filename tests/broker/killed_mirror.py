"""A program, killed by SIGKILL at a call: ``python -m tests.broker.killed_mirror CALL WHEN ARGUMENTS…``.

CALL is ``module:Class.method``; WHEN is ``before`` or ``after``, or ``flushed``: before it, when all that a producer of
confluent-kafka has buffered is at the broker.  ``-`` for CALL kills nothing.  The program is the command line, or the
file that is the one argument.
"""

from __future__ import annotations

import functools
import importlib
import os
import runpy
import signal
import sys
from typing import Any

from txntable.cli.main import main


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(method: Any, when: str) -> Any:
    @functools.wraps(method)
    def call(client: Any, *args: Any, **named: Any) -> None:
        if when == "flushed":
            client.flush()
        if when == "after":
            method(client, *args, **named)
        _kill()

    return call


def arm(call: str, when: str) -> None:
    """Let the process die at a call."""
    module_name, _, path = call.partition(":")
    class_name, _, method_name = path.partition(".")
    module = importlib.import_module(module_name)
    kind = getattr(module, class_name)
    dying = _dying(getattr(kind, method_name), when)
    try:
        setattr(kind, method_name, dying)
    except TypeError:
        # A class that is written in C.
        setattr(module, class_name, type(class_name, (kind,), {method_name: dying}))


if __name__ == "__main__":
    if sys.argv[1] != "-":
        arm(sys.argv[1], sys.argv[2])
    sys.argv = ["txntable", *sys.argv[3:]]
    if sys.argv[1].endswith(".py"):
        runpy.run_path(sys.argv[1], run_name="__main__")
    else:
        main()
