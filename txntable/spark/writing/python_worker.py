"""The Python processes that Spark runs our code in, and keeps for the next task.

Owns what is done once in such a process.  Never to be called in a process that is the user's.
"""

from __future__ import annotations

import gc

_frozen: list[bool] = []


def freeze_loaded() -> None:
    """Take all that is loaded out of the garbage collector's sight, at the first call of this process.

    Spark collects garbage after every task, whatever it did: with our libraries loaded that costs more than a tiny
    task does, and what is loaded is never garbage.
    """
    if not _frozen:
        _frozen.append(True)
        gc.collect()
        gc.freeze()
