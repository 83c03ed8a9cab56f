"""Ages by the store's time, which may have been ahead: what an age below zero says (PROTOCOL.md §4.2 rule 11).

Last-Modified has seconds, and two answers of a store differ a little: a small negative age is young.  Far below zero it
says that a clock was ahead when the object was written, and nothing of how long ago that was.  Whoever only waits for
somebody to be gone must not wait for that clock; whoever is about to delete has to.  Pure.
"""

from __future__ import annotations

AHEAD_MS = 5 * 60_000
"""The guard: further than this no two clocks are apart that a warehouse works with."""


def has_passed(age_ms: int, patience_ms: int) -> bool:
    """Return whether somebody's time is over: by age, or by a time so far ahead that it cannot be waited for.

    Parameters
    ----------
    age_ms : int
        The store's time now less that of the object.
    patience_ms : int
        How long is waited.

    Returns
    -------
    bool
        Wrong where a clock was put right a moment ago: then somebody alive is ended, and told so.  Never to be asked
        before data is deleted.
    """
    return age_ms > patience_ms or age_ms < -(patience_ms + AHEAD_MS)
