"""Time, waiting, identities and chance in a test's hands; see ``txntable.environment``.

The same seed gives the same ids and the same chances; nothing here ever really waits.
"""

from __future__ import annotations

import hashlib
import random
import threading

from txntable.runtime.environment import Instant, Lock

START_MS = 1_700_000_000_000


class ManualEnvironment:
    """A machine whose clocks stand still until they are told.

    Parameters
    ----------
    seed : int
        Two machines of one test get different seeds.
    wall_ms : int
        The wall clock at the start, in ms since 1970.
    """

    has_background = False

    def __init__(self, seed: int = 0, wall_ms: int = START_MS) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._boot_ms = 0.0
        self._wall_ms = float(wall_ms)
        self._ids = 0

    def lock(self) -> Lock:
        """Return a lock for the threads of this process."""
        return threading.RLock()

    def instant(self) -> Instant:
        """Return the present moment."""
        with self._lock:
            return Instant(int(self._boot_ms), int(self._wall_ms))

    def since_ms(self, instant: Instant) -> int:
        """Return how long ago `instant` was, by whichever clock says longer."""
        return self.instant().since_ms(instant)

    def ticks_ns(self) -> int:
        """Return the time on the boot clock."""
        return self.instant().boot_ms * 1_000_000

    def sleep_ms(self, milliseconds: float) -> None:
        """Let the time pass, at once."""
        self.advance_ms(milliseconds)

    def uniform(self, low: float, high: float) -> float:
        """Return a random number in [low, high], by the seed."""
        with self._lock:
            return self._random.uniform(low, high)

    def new_id(self) -> str:
        """Return 32 hex digits, by the seed."""
        with self._lock:
            self._ids += 1
            return hashlib.sha256(f"{self._seed}/{self._ids}".encode()).hexdigest()[:32]

    def advance_ms(self, milliseconds: float) -> None:
        """Let the time pass on both clocks."""
        self.advance_boot_ms(milliseconds)
        self.advance_wall_ms(milliseconds)

    def advance_boot_ms(self, milliseconds: float) -> None:
        """Let the time pass on the boot clock alone: the wall clock was held back."""
        with self._lock:
            self._boot_ms += milliseconds

    def advance_wall_ms(self, milliseconds: float) -> None:
        """Let the wall clock jump, also backwards."""
        with self._lock:
            self._wall_ms += milliseconds


class StoreTime:
    """The store's own clock: goes with an environment's boot clock, plus a skew.

    Parameters
    ----------
    environment : ManualEnvironment
        Whose boot clock is followed.
    base_ms : int
        The store's time when that clock says 0, in ms since 1970.
    skew_ms : int
        May be changed at any time through :attr:`skew_ms`.
    """

    def __init__(self, environment: ManualEnvironment, base_ms: int = START_MS, skew_ms: int = 0) -> None:
        self._environment = environment
        self._base_ms = base_ms
        self.skew_ms = skew_ms

    def __call__(self) -> int:
        """Return the store's time in ms since 1970."""
        return self._base_ms + self._environment.instant().boot_ms + self.skew_ms
