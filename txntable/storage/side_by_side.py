"""Independent calls of a store at once, where the store gains by it.

Owns that their answers come in order, and that all have ended when it returns.  Must not know what the calls do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from txntable.storage.object_store import ObjectStore

T = TypeVar("T")


def side_by_side(store: ObjectStore, calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run calls that do not depend on each other, as many at once as the store takes; return their answers in order.

    Parameters
    ----------
    store : ObjectStore
        What they use.
    calls : sequence of callable
        Each without arguments.

    Raises
    ------
    TxnTableError
        The first error in the order of the calls.  Where they run one after the other, those behind it did not run.
    """
    parallel = min(store.parallel_writes, len(calls))
    if parallel < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(parallel) as pool:
        running = [pool.submit(call) for call in calls]
    return [one.result() for one in running]
