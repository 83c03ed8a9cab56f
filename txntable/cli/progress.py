"""Progress of long work on standard error: alive on a terminal, a line every few seconds elsewhere.

Owns how often it is told.  Whoever works says what is done as often as it likes; the answer on standard output is not
touched.  Must not know what is being done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.text import Text

from txntable.cli.output import error_console, tell
from txntable.format.control_characters import escaped
from txntable.runtime.environment import Environment, SystemEnvironment

INTERVAL_MS = 5_000
"""Between two lines where nobody is looking: in a log of a scheduler, or in a file."""


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
        with console.status(Text(escaped(begun))) as status:
            yield lambda done: status.update(Text(escaped(done)))
        return
    clock = environment or SystemEnvironment()
    last = clock.instant()

    def told(done: str) -> None:
        nonlocal last
        if clock.since_ms(last) >= INTERVAL_MS:
            last = clock.instant()
            tell(done)

    yield told
