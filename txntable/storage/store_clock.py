"""The store's time: the only date that the protocol goes by (PROTOCOL.md, log rule 11).

now = Last-Modified of an own fresh object + time passed on this machine since it was written.
The anchor counts from the *answer* to the write, so the estimate is never ahead of the store; nor far behind: an answer
that took long (this process slept over it) is no anchor.

Every commit begins with this time, so here a process finds out, before its first one, whether an endpoint still heeds
the condition of a put-if-absent (log rule 6): the anchor is there, so that one more, put if absent, must be refused.
Where it is not, an empty object replaced an empty one, and no harm is done.
"""

from __future__ import annotations

from txntable.errors import StoreFullError, StorePermissionError, StoreUnavailableError, StoreUnsuitableError
from txntable.format.layout import CLOCK_PATH
from txntable.runtime.environment import Environment, Instant
from txntable.runtime.one_process import OfOneProcess
from txntable.storage.object_store import ObjectStore, PutOutcome
from txntable.storage.retries import Attempts

_ANCHOR_LIFETIME_MS = 15 * 60_000
# Half the guard: who is further behind takes what others have just begun for times far ahead.
_LONGEST_ANSWER_MS = 150_000
_ANCHORS = 3


class StoreClock(OfOneProcess):
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
        # What is on this machine is no endpoint that another software may stand behind since yesterday.
        self._is_proved = not store.is_remote

    def now_ms(self) -> int:
        """Return the store's time, in ms since 1970.

        Raises
        ------
        StoreUnavailableError
            The anchor could not be written or read back, or each answer took minutes.
        StoreUnsuitableError
            The store ignores conditions, as it did not when the warehouse was created: nothing may be written to it.
        """
        anchor, now = self._anchor, self._environment.instant()
        if anchor is None or now.since_ms(anchor[1]) > _ANCHOR_LIFETIME_MS:
            anchor, now = self._next_anchor(), self._environment.instant()
            self._anchor = anchor
        return anchor[0] + max(0, now.boot_ms - anchor[1].boot_ms)

    def shown_ms(self) -> int:
        """Return :meth:`now_ms`; or this machine's time where nothing can be written: to show, and to refuse to read.

        Raises
        ------
        StoreUnavailableError
            As there.
        """
        try:
            return self.now_ms()
        except (StoreFullError, StorePermissionError, StoreUnsuitableError):
            return self._environment.instant().wall_ms

    def _next_anchor(self) -> tuple[int, Instant]:
        for _ in range(_ANCHORS):
            asked = self._environment.instant()
            anchor = self._write_anchor()
            if self._environment.since_ms(asked) <= _LONGEST_ANSWER_MS:
                return anchor
        raise StoreUnavailableError("the store takes minutes to tell its time; try again", path=CLOCK_PATH)

    def _write_anchor(self) -> tuple[int, Instant]:
        self._store.put(CLOCK_PATH, b"")
        if not self._is_proved:
            self._prove_conditions()
        meta = self._store.head(CLOCK_PATH)
        # After both answers: somebody else may have written it meanwhile, and to be behind is the safe side.
        answered = self._environment.instant()
        if meta is None:
            raise StoreUnavailableError("an object just written is not there; try again", path=CLOCK_PATH)
        return meta.last_modified_ms, answered

    def _prove_conditions(self) -> None:
        if self._put_if_absent() is not PutOutcome.EXISTS:
            raise StoreUnsuitableError(
                "the store replaced an object that was to be put if absent: it would lose transactions; write to this "
                "warehouse through an endpoint that heeds If-None-Match only",
                url=self._store.spec.url,
            )
        self._is_proved = True

    def _put_if_absent(self) -> PutOutcome:
        attempts = Attempts(self._store.retry_timeout_ms, self._environment)
        while True:
            try:
                return self._store.put_if_absent(CLOCK_PATH, b"")
            except StoreUnavailableError:
                # Whoever did it, and how often: an empty object.
                if not attempts.wait():
                    raise
