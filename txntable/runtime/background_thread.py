"""Threads in the background, which end before the interpreter does.

A daemon thread that comes back from a native library while the interpreter is finalised is ended by unwinding its
stack.  Through C++ that must not throw, as where Arrow calls a Python file, that ends the whole process: "terminate
called without an active exception", after its work was done.  A thread that is no daemon keeps the process alive until
somebody closes what it works for.  So: daemons that are stopped and waited for at exit, before finalisation begins.

Arrow's own threads do the same where they read a file or bytes of Python's, and let go of the last reference: whoever
lends them such an object, and lets them be several, says so.

Owns those threads; how one is stopped is its owner's business.  Must not know what they do.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

PATIENCE_S = 5.0
"""How long the exit waits for one thread, s: a store that does not answer must not hold it up for long."""

_MOMENT_S = 0.05
_lent_to_arrow: list[str] = []
_running: dict[threading.Thread, Callable[[], None]] = {}


def start_in_background(name: str, run: Callable[[], None], stop: Callable[[], None]) -> threading.Thread:
    """Start a thread.

    Parameters
    ----------
    name : str
        Of the thread.
    run : callable
        What it does.
    stop : callable
        Makes `run` return as soon as it can; called at exit, maybe a second time, and by another thread.

    Returns
    -------
    threading.Thread
        A daemon.
    """

    def run_and_leave() -> None:
        try:
            run()
        except RuntimeError as error:
            # At exit Python lets no thread begin any more: what this one was about to do with several is not done.
            if "interpreter shutdown" not in str(error):
                raise
        finally:
            _running.pop(threading.current_thread(), None)

    thread = threading.Thread(target=run_and_leave, name=name, daemon=True)
    _running[thread] = stop
    thread.start()
    return thread


def threads_may_begin() -> bool:
    """Return whether Python lets threads begin: not any more once the main thread has ended, at the process's exit."""
    return threading.main_thread().is_alive()


def lend_to_arrow(what: str) -> None:
    """Note that Arrow reads an object of Python's in threads of its own: the exit gives them a moment to let go."""
    _lent_to_arrow[:] = [what]


@atexit.register
def _end_all() -> None:
    threads = dict(_running)
    for stop in threads.values():
        stop()
    for thread in threads:
        thread.join(PATIENCE_S)
    if _lent_to_arrow or threads:
        # Arrow's threads let go of such an object after the call that they worked for, and nobody can wait for them.
        threading.Event().wait(_MOMENT_S)


# The child of a fork has none of them, and their locks as they were.
os.register_at_fork(after_in_child=_running.clear)
