"""Time, waiting, identities and chance: the only module that asks the machine for them.

Everything else gets an :class:`Environment` as an argument, so that tests and simulations
own them.  An :class:`Instant` is no date: it is only good for asking how long ago it was.
The *date* that the protocol goes by is the store's (``txntable.storage.store_clock``).
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment on this machine, by two clocks, in milliseconds."""

    boot_ms: int
    wall_ms: int

    def since_ms(self, earlier: Instant) -> int:
        """Return how long before this one another was, by whichever clock says longer."""
        return max(self.boot_ms - earlier.boot_ms, self.wall_ms - earlier.wall_ms)


class Lock(Protocol):
    """A lock that a thread which has it may take again; in a simulation who waits for one leaves others their turns."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; return whether it was taken, which it always is by who waits."""
        ...

    def release(self) -> None:
        """Give it back, once for each time that it was taken."""
        ...

    def __enter__(self) -> object:
        """Take it."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it back."""
        ...


class Environment(Protocol):
    """What the machine gives; see :class:`SystemEnvironment`.

    Attributes
    ----------
    has_background : bool
        Whether what can wait is done by a thread of its own; else nothing happens but what somebody calls for.
    """

    @property
    def has_background(self) -> bool:
        """Whether threads run beside the caller's."""
        ...

    def lock(self) -> Lock:
        """Return a lock for the threads of this process, which a thread that has it may take again."""
        ...

    def instant(self) -> Instant:
        """Return the present moment."""
        ...

    def since_ms(self, instant: Instant) -> int:
        """Return how long ago `instant` was, by whichever clock says longer."""
        ...

    def ticks_ns(self) -> int:
        """Return a time that never goes back, of no beginning, in ns: to measure how long something took."""
        ...

    def sleep_ms(self, milliseconds: float) -> None:
        """Wait."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Return a random number in [low, high]."""
        ...

    def new_id(self) -> str:
        """Return 32 hex digits that no one else has."""
        ...


class SystemEnvironment:
    """The real machine.

    A suspended machine stops ``CLOCK_MONOTONIC``, a corrected one moves the wall clock: the
    age of a view counts by the larger of boot time and wall clock (PROTOCOL.md, log rule 3).
    """

    has_background = True

    def lock(self) -> Lock:
        """Return a lock for the threads of this process, which a thread that has it may take again."""
        return threading.RLock()

    def instant(self) -> Instant:
        """Return the present moment."""
        return Instant(time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000, time.time_ns() // 1_000_000)

    def since_ms(self, instant: Instant) -> int:
        """Return how long ago `instant` was, by whichever clock says longer."""
        return self.instant().since_ms(instant)

    def ticks_ns(self) -> int:
        """Return a time that never goes back, of no beginning, in ns: to measure how long something took."""
        return time.perf_counter_ns()

    def sleep_ms(self, milliseconds: float) -> None:
        """Wait."""
        time.sleep(milliseconds / 1000)

    def uniform(self, low: float, high: float) -> float:
        """Return a random number in [low, high]."""
        return random.uniform(low, high)

    def new_id(self) -> str:
        """Return 32 hex digits that no one else has."""
        return uuid.uuid4().hex
