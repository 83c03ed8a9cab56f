"""The store's time: the only date that the protocol goes by (PROTOCOL.md, log rule 11).

now = Last-Modified of an own fresh object + time passed on this machine since it was written.
The anchor counts from the *answer* to the write, so the estimate is never ahead of the store.
"""

from __future__ import annotations

from txntable.environment import Environment, Instant
from txntable.errors import StorePermissionError, StoreUnavailableError
from txntable.layout import CLOCK_PATH
from txntable.storage.object_store import ObjectStore

_ANCHOR_LIFETIME_MS = 15 * 60_000


class StoreClock:
    """Tells the store's time; anchors itself with one small PUT and one HEAD when it must.

    Parameters
    ----------
    store : ObjectStore
        Where the anchor object is written.
    environment : Environment
        Measures the time since.
    """

    def __init__(self, store: ObjectStore, environment: Environment) -> None:
        self._store = store
        self._environment = environment
        self._anchor: tuple[int, Instant] | None = None

    def now_ms(self) -> int:
        """Return the store's time, in ms since 1970.

        Raises
        ------
        StoreUnavailableError
            The anchor could not be written or read back.
        """
        anchor = self._anchor
        if anchor is None or self._environment.since_ms(anchor[1]) > _ANCHOR_LIFETIME_MS:
            anchor = self._anchor = self._write_anchor()
        return anchor[0] + max(0, self._environment.instant().boot_ms - anchor[1].boot_ms)

    def shown_ms(self) -> int:
        """Return :meth:`now_ms`; or this machine's time to who may not write: to show, and to refuse to read.

        Raises
        ------
        StoreUnavailableError
            As there.
        """
        try:
            return self.now_ms()
        except StorePermissionError:
            return self._environment.instant().wall_ms

    def _write_anchor(self) -> tuple[int, Instant]:
        self._store.put(CLOCK_PATH, b"")
        meta = self._store.head(CLOCK_PATH)
        # After both answers: somebody else may have written it meanwhile, and to be behind is the safe side.
        answered = self._environment.instant()
        if meta is None:
            raise StoreUnavailableError("an object just written is not there; try again", path=CLOCK_PATH)
        return meta.last_modified_ms, answered
