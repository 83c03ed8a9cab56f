"""Progress of long work on standard error: alive on a terminal, elsewhere a line now and then.

Owns how often it is told.  Whoever works says what is done as often as it likes; the answer on standard output is not
touched.  Must not know what is being done.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text

from txntable.cli.interruption import undone_at_once
from txntable.cli.output import PipeConsole, error_console, tell
from txntable.format.control_characters import escaped
from txntable.runtime.environment import Environment, SystemEnvironment

_STANDARD_ERROR = 2
FIRST_MS = 5_000
"""From the beginning to the first line where nobody is looking: in a log of a scheduler, or in a file."""
INTERVAL_MS = 60_000
"""Between any two lines there."""
_CURSOR_BACK = b"\r\x1b[2K\x1b[?25h"


def _pauses_ms() -> Iterator[int]:
    return itertools.chain((FIRST_MS,), itertools.repeat(INTERVAL_MS))


@contextmanager
def _alive(console: Console, begun: str) -> Iterator[Status]:
    back = undone_at_once(lambda: os.write(console.file.fileno(), _CURSOR_BACK))
    with back, console.status(Text(escaped(begun))) as status:
        yield status


@contextmanager
def progressing(begun: str, environment: Environment | None = None) -> Iterator[Callable[[str], None]]:
    """Show how far a block is.

    Parameters
    ----------
    begun : str
        What is being done, until the block says more.
    environment : Environment, optional
        The clock; default: this machine's.

    Yields
    ------
    callable
        Takes what is done by now, in words; cheap, and may be called as often as one likes, by any thread.
    """
    console = error_console()
    if console.is_terminal:
        with _alive(console, begun) as status:
            yield lambda done: status.update(Text(escaped(done)))
        return
    clock = environment or SystemEnvironment()
    pauses = _pauses_ms()
    last, pause = clock.instant(), next(pauses)

    def told(done: str) -> None:
        nonlocal last, pause
        if clock.since_ms(last) >= pause:
            last, pause = clock.instant(), next(pauses)
            tell(done)

    yield told


@contextmanager
def counting(topic: str, environment: Environment | None = None) -> Iterator[Callable[[int], None]]:
    """Show how many records went to a topic.

    Parameters
    ----------
    topic : str
        The topic's name.
    environment : Environment, optional
        See :func:`progressing`.

    Yields
    ------
    callable
        Takes the number of records so far.
    """
    with progressing(f"records to {topic}", environment) as progress:
        yield lambda records: progress(f"{records:,} records to {topic}")


@contextmanager
def waiting(begun: str) -> Iterator[None]:
    """Show that a block takes its time, in which nothing can be told of how far it is.

    Its own standard error, since the block may lead the process's elsewhere.

    Parameters
    ----------
    begun : str
        What is being done.
    """
    with os.fdopen(os.dup(_STANDARD_ERROR), "w") as file:
        console = PipeConsole(file=file, highlight=False)
        if console.is_terminal:
            with _alive(console, begun):
                yield
            return
        over = threading.Event()

        def tell_again() -> None:
            passed_ms = 0
            for pause_ms in _pauses_ms():
                if over.wait(pause_ms / 1_000):
                    return
                passed_ms += pause_ms
                console.print(Text(escaped(f"{begun}: {passed_ms // 1_000} s")), soft_wrap=True)

        teller = threading.Thread(target=tell_again, name="txntable-waiting", daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()
