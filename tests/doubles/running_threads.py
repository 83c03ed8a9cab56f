"""Threads of ours that run at this moment, by their names: a test waits for their ends, never for a time."""

from __future__ import annotations

import threading
from collections.abc import Collection


def running(name: str) -> list[threading.Thread]:
    """Return the threads of a name that have not ended."""
    return [thread for thread in threading.enumerate() if thread.name == name]


def all_ended(name: str, besides: Collection[threading.Thread] = ()) -> bool:
    """Wait for the ends of the threads of a name; return whether they have ended within a minute.

    `besides` are those that ran before: another test's, whose client is garbage that nobody has collected yet.
    """
    for thread in running(name):
        if thread not in besides:
            thread.join(timeout=60)
    return set(running(name)) <= set(besides)
