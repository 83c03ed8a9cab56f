"""Machines whose clocks are wrong: each process has a wall clock of its own, which is set now and then.

On a local folder the store's clock jumps as well: the file times of what is written are ahead or behind, the same for
all processes.  Nobody talks about it: what a clock shows is a function of the seed and of the time since the machine
started.  The store's clock jumps by a quarter of a day: what is decided by it, retentions of a day and more, must
hold; a clock that jumps by more than the retention takes it away, as PROTOCOL.md §4.2 rule 11 says whose time it is.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from tests.chaos.premises import Site
from txntable.runtime.environment import Instant, SystemEnvironment
from txntable.storage.unfinished_file import UnfinishedFile

_HOUR_MS = 3_600_000
_AHEAD_MS = (0, _HOUR_MS, 6 * _HOUR_MS, 20 * _HOUR_MS, -_HOUR_MS, -6 * _HOUR_MS, -20 * _HOUR_MS)
_SET_EVERY_MS = 7_000
_STORE_SET_EVERY_MS = 5_000


@contextmanager
def wrong_clocks(site: Site, name: str, store_ms: int) -> Iterator[None]:
    """Let this process go by clocks that are wrong.

    Parameters
    ----------
    site : Site
        Of the run.
    name : str
        Of the process.
    store_ms : int
        How much a folder's clock is ahead or behind at most; 0: not at all.
    """
    right, seal = SystemEnvironment.instant, UnfinishedFile.seal

    def instant(environment: SystemEnvironment) -> Instant:
        now = right(environment)
        return Instant(now.boot_ms, now.wall_ms + _chance(site, name, now.boot_ms // _SET_EVERY_MS).choice(_AHEAD_MS))

    def seal_late(file: UnfinishedFile, *, durable: bool) -> None:
        seal(file, durable=durable)
        now = right(SystemEnvironment())
        ahead_ms = _chance(site, "store", now.boot_ms // _STORE_SET_EVERY_MS).randint(-store_ms, store_ms)
        shown_ns = (now.wall_ms + ahead_ms) * 1_000_000
        if os.path.exists(file.place):
            os.utime(file.place, ns=(shown_ns, shown_ns))

    with ExitStack() as stack:
        stack.enter_context(patch.object(SystemEnvironment, "instant", instant))
        if store_ms and "://" not in site.url:
            stack.enter_context(patch.object(UnfinishedFile, "seal", seal_late))
        yield


def _chance(site: Site, whose: str, epoch: int) -> random.Random:
    return random.Random(f"{site.seed} {whose} {epoch}")
