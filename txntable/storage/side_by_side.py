"""Independent calls of a store at once, where the store gains by it.

Owns that their answers come in order, and that all have ended when it returns, unless an interrupt came: that waits for
no store.  Must not know what the calls do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from txntable.runtime.background_thread import threads_may_begin

if TYPE_CHECKING:
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
    with threads(parallel) as pool:
        running = [pool.submit(call) for call in calls]
        wait(running)
    return [one.result() for one in running]


@contextmanager
def threads(most: int) -> Iterator[Executor]:
    """Give a block threads, whose calls have all ended when it has; at the exit of the process the block's own.

    An interrupt of the block leaves what has begun to itself, and what has not begun never does: a store that does not
    answer holds nobody up.  So who uses the threads waits for their answers inside of the block.

    Parameters
    ----------
    most : int
        How many calls run at once.
    """
    if not threads_may_begin():
        yield _OneAfterTheOther()
        return
    pool, interrupted = ThreadPoolExecutor(most), False
    try:
        yield pool
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        pool.shutdown(wait=not interrupted, cancel_futures=interrupted)


class _OneAfterTheOther(Executor):
    """Runs each call as it comes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  told to who asks for the result
            done.set_exception(error)
        return done
