"""What SIGINT (Ctrl-C) and SIGTERM do to a command: one line, and exit code 130 or 143.

Three stages, of which each signal meets the one that it comes in:

* nothing is open yet, or any more (imports, arguments, the interpreter's end): :mod:`txntable.jobs.command` ends the
  process;
* a command works: :func:`interruptible` raises in the main thread, so that what is open is aborted or committed;
* a command that ends its work itself: :func:`stopped_by_signals`, and the signal counts when it has.

Python runs a handler when the main thread is back from a library, which may wait long for a store that does not
answer.  So another thread watches (:func:`watched`), and ends the process at a second signal, or when the first one was
not taken for so long that nothing can be ended well.  It wakes a main thread that sleeps, too: a signal that comes just
before the call that sleeps does not end that.  What a block has done to the terminal is undone at every end
(:func:`undone_at_once`).  Must not know of commands.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], Any]
PATIENCE_S = 5.0
"""How long a signal waits for the main thread to come back from a library, s."""
_STANDARD_ERROR = 2
# Ends a call that sleeps, and is ignored where nobody takes it; Python then runs the handlers of all that came.
_WAKING = signal.SIGURG
_BETWEEN_WAKINGS_S = 0.1
# Into the watcher's pipe, where else are numbers of signals.
_LOST = b"\0"
_AFTER_THE_HOOK_S = 0.01
# The signals that a handler of this module has taken; a list, since a handler may interrupt whoever holds a lock.
_taken: list[int] = []
_undoing: list[Callable[[], object]] = []


class Terminated(KeyboardInterrupt):
    """SIGTERM came: what is open is ended as for SIGINT, which this is to everything that ends something."""


def exit_code(interruption: KeyboardInterrupt) -> int:
    """Return what a shell shows for a process that the signal ended: 128 and its number."""
    return 128 + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT)


def word(interruption: KeyboardInterrupt) -> str:
    """Return the line that is told, or its beginning."""
    return "terminated" if isinstance(interruption, Terminated) else "interrupted"


def _interruption(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let both signals raise in the block: :class:`KeyboardInterrupt`, or :class:`Terminated`, which is one."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        _taken.append(number)
        raise _interruption(number)

    with _handled(on_signal):
        yield


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Give the block an event that both signals set; when it has ended by that, the first of them is raised.

    Raises
    ------
    KeyboardInterrupt
        The block was stopped by a signal, and has ended well.
    """
    stop = threading.Event()
    came: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        _taken.append(number)
        came.append(number)
        stop.set()

    with _handled(on_signal):
        yield stop
    if came:
        raise _interruption(came[0])


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    """Let a handler take the signals that are not ignored (as `nohup` and a shell's `&` do); then do as before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in taken}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def watched() -> Iterator[None]:
    """Let a signal end the process at once that is the second, or is not taken in time; for a whole process only.

    Python writes the number of a signal into a pipe when it comes, whatever the main thread does; a thread reads it
    here.  An interruption that is raised where Python cannot hand it on (in a finalizer) would print a trace and be
    lost: it is raised again.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    lost: list[int] = []
    watch = threading.Thread(target=_end_at_the_second, args=(reading, lost), name="txntable-signals", daemon=True)
    woken = signal.signal(_WAKING, lambda number, frame: None)
    earlier, hook = signal.set_wakeup_fd(writing, warn_on_full_buffer=False), sys.unraisablehook
    sys.unraisablehook = _raising_again(hook, lost, writing)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier)
        signal.signal(_WAKING, woken)
        sys.unraisablehook = hook
        os.close(writing)
        watch.join()
        os.close(reading)


def _end_at_the_second(reading: int, lost: list[int]) -> None:
    came: list[int] = []
    waited_s = 0.0
    while True:
        is_waiting = bool(came) and not _taken and _is_ours(came[0])
        if not select.select([reading], [], [], _BETWEEN_WAKINGS_S if is_waiting else None)[0]:
            waited_s += _BETWEEN_WAKINGS_S
            if waited_s >= PATIENCE_S and not _taken and _is_ours(came[0]):
                end_at_once(came[0])
            signal.pthread_kill(cast(int, threading.main_thread().ident), _WAKING)
            continue
        found = os.read(reading, 1)
        if not found:
            return
        if found == _LOST:
            select.select([], [], [], _AFTER_THE_HOOK_S)
            os.kill(os.getpid(), lost[-1])
        elif lost and found[0] in SIGNALS:
            lost.pop()
        elif found[0] in SIGNALS:
            came.append(found[0])
            if len(came) > 1:
                end_at_once(found[0])


def _is_ours(number: int) -> bool:
    """Return whether a handler of this module is to take a signal: Spark's session has one that cancels its jobs."""
    return getattr(signal.getsignal(number), "__module__", None) == __name__


def _raising_again(
    hook: Callable[[UnraisableHookArgs], Any], lost: list[int], writing: int
) -> Callable[[UnraisableHookArgs], None]:
    def take(unraisable: UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            lost.append(signal.SIGTERM if isinstance(unraisable.exc_value, Terminated) else signal.SIGINT)
            # Sent by the other thread: here, it would be raised in this hook, and lost like the first.
            os.write(writing, _LOST)
        else:
            hook(unraisable)

    return take


def leave_requests(code: int | str | None) -> None:
    """End the process with its code, where a signal has ended the command while requests wait for answers.

    Their threads would hold up the interpreter's end for as long as the store does not answer.
    """
    threads = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if _taken and isinstance(code, int) and not all(thread.daemon for thread in threads):
        os._exit(code)


@contextmanager
def undone_at_once(undo: Callable[[], object]) -> Iterator[None]:
    """Have what a block does to the terminal undone when the process ends at once within it, too.

    Parameters
    ----------
    undo : callable
        Undoes it, from another thread; must not wait.
    """
    _undoing.append(undo)
    try:
        yield
    finally:
        _undoing.remove(undo)


def end_at_once(number: int) -> None:
    """End the process: nothing that is open is ended, which a transaction's timeout does later."""
    for undo in reversed(_undoing):
        # A terminal that is gone, too, must not keep the process.
        with suppress(Exception):
            undo()
    os.write(_STANDARD_ERROR, f"{word(_interruption(number))} at once\n".encode())
    os._exit(128 + number)
