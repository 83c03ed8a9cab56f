"""The command ``txntable``: what its process does before anything of ours is imported.

Owns that a signal ends it with one line and no trace while libraries are imported, which takes most of a short
command's time, and again when the command is over: nothing is open then.  What signals do in between is
:mod:`txntable.cli.interruption`'s business.  Before the signals are set, nothing is imported but the package itself,
which loads its errors and no library.
"""

from __future__ import annotations

import os
import signal
from importlib import import_module
from types import FrameType

_STANDARD_ERROR = 2
_WORDS = {signal.SIGINT: b"interrupted\n", signal.SIGTERM: b"terminated\n"}


def _end(number: int, frame: FrameType | None) -> None:
    os.write(_STANDARD_ERROR, _WORDS[signal.Signals(number)])
    os._exit(128 + number)


def main() -> None:
    """Run the command that the arguments of the process say, and exit."""
    for number in _WORDS:
        # Ignored by who started it (nohup, a shell's &): it stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    import_module("txntable.cli.main").main()


if __name__ == "__main__":
    main()
