"""Leaving a contended log to others now and then (PROTOCOL.md, log rule 9).

Who just won lets the losers, which try at once, go first.  A winner that always wins never sees
another's commit, so politeness outlasts the last one seen, and even who seems to be alone leaves a
gap now and then in which a loser can win.  Must not know what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from txntable.runtime.environment import Environment, Instant

# Waits after each of so many successes once another's commit was seen, and after every so many when none was.
POLITE_COMMITS = 16
ALONE_COMMITS = 64
# A local folder answers faster, but an instant has whole milliseconds.
SHORTEST_ROUND_TRIP_MS = 1.0
# The one that has the turn may have been stopped: who has waited for so long while nothing came, or so long in all,
# asks for no turn for so many commits.
PATIENCE_MS = 500.0
LONGEST_WAIT_MS = 10 * PATIENCE_MS
COMMITS_WITHOUT_TURN = 64
SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS = 0.5, 16.0
# Many entries at once cost less than the same ones by one and two.
LOOK_MS = 25.0


class Fairness:
    """How one writer of one log waits.

    Parameters
    ----------
    environment : Environment
        Waiting, chance.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._round_trip_ms = 0.0
        self._polite_commits = 0
        self._commits_alone = 0
        self._succeeded_at: Instant | None = None
        self._commits_without_turn = 0

    def saw_round_trip(self, asked_at: Instant) -> None:
        """Take note of how long the store took to answer."""
        self._round_trip_ms = max(SHORTEST_ROUND_TRIP_MS, self._environment.since_ms(asked_at))

    def saw_another(self) -> None:
        """Take note of a commit of someone else."""
        self._polite_commits = POLITE_COMMITS

    def forget_others(self) -> None:
        """Take note that the view is a new one: what came since the old one says nothing of now."""
        self._polite_commits = 0

    def succeeded(self) -> None:
        """Take note of a commit of one's own."""
        self._succeeded_at = self._environment.instant()

    def wait_turn(self) -> None:
        """Wait, where it is others' turn, up to one round trip since the last success."""
        self._commits_alone += 1
        if self._succeeded_at is not None and (self._polite_commits or self._commits_alone >= ALONE_COMMITS):
            self._polite_commits = max(0, self._polite_commits - 1)
            self._commits_alone = 0
            wait_ms = self._round_trip_ms * self._environment.uniform(0.0, 1.0)
            rest_ms = wait_ms - self._environment.since_ms(self._succeeded_at)
            if rest_ms > 0:
                self._environment.sleep_ms(rest_ms)

    @contextmanager
    def turn(
        self,
        ask: Callable[[], AbstractContextManager[bool] | None],
        look: Callable[[], bool],
        is_done: Callable[[], bool] | None = None,
    ) -> Iterator[bool]:
        """Wait until no other writer of this machine is at the log, for a while, and have the turn until the end.

        It spares work that would be lost at the slot, and decides nothing: who does not ask, or does not wait, is at
        worst refused there.  Who waits follows the log meanwhile: it has little to read when its turn comes, and sees
        that the one that has the turn is at work.

        Parameters
        ----------
        ask : callable
            :meth:`ObjectStore.turn`.
        look : callable
            Reads the log's tail, and returns whether something was there.
        is_done : callable, optional
            Whether the turn is not needed any more, as far as was read: which is looked at after each pause.

        Yields
        ------
        bool
            Whether others may have committed since this writer last looked.
        """
        if self._commits_without_turn:
            self._commits_without_turn -= 1
            yield False
            return
        waited_ms = idle_ms = unread_ms = 0.0
        while (granted := ask()) is None and idle_ms < PATIENCE_MS and waited_ms < LONGEST_WAIT_MS:
            if is_done is not None and is_done():
                yield True
                return
            # The longer it takes the more are waiting, of whom one asks soon; and each look costs processor time.
            pause_ms = self._environment.uniform(0.5, 1.5) * min(SHORTEST_PAUSE_MS + waited_ms / 2, LONGEST_PAUSE_MS)
            self._environment.sleep_ms(pause_ms)
            waited_ms, idle_ms, unread_ms = waited_ms + pause_ms, idle_ms + pause_ms, unread_ms + pause_ms
            if is_done is not None or unread_ms >= LOOK_MS:
                unread_ms = 0.0
                idle_ms = 0.0 if look() else idle_ms
        if granted is None:
            self._commits_without_turn = COMMITS_WITHOUT_TURN
            yield True
            return
        with granted as is_turn:
            yield is_turn and (waited_ms > 0.0 or self._polite_commits > 0)
