"""The order of what happens in one process, between clients that know nothing of each other.

A producer's abort and a consumer's seek are in an order that the program can tell, and no clock can.
"""

from __future__ import annotations

import itertools

_NUMBERS = itertools.count(1)


def next_in_order() -> int:
    """Return a number above that of everything that has happened in this process: of now; from 1, for any thread."""
    return next(_NUMBERS)
