"""Faults of what is told of transactions that were decided long ago, and of times ahead (PROTOCOL.md §4.2, §6)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_LATE = "coordinator/late_end.py"
_ROW = "coordinator/transaction.py"

OUTCOME_MUTANTS = (
    Mutant(
        "fenced-although-committed",
        "who asks again for a commit is told that it is fenced, once a later transaction of the id was decided",
        "6.3 decide",
        (
            Edit(
                _LATE,
                "    if ended in (None, Ended.NOTHING):\n",
                "    last = row.decision\n    if last is None or request.epoch != last.epoch:\n",
            ),
        ),
        Killer("asked-again", 0),
    ),
    Mutant(
        "silent-after-a-later-transaction",
        "a token of an aborted transaction passes for a committed one's, once a later one of the id was decided",
        "6.3 two-phase commit",
        (
            Edit(
                "coordinator/prepared_token.py",
                "    ended = row.ended(named.epoch) if is_over else None\n",
                "    ended = row.ended(named.epoch) if is_over else None\n"
                "    if is_over and row.decision is not None and named.epoch < row.decision.epoch:\n"
                "        ended = Ended.COMMITTED\n",
            ),
        ),
        Killer("asked-again", 1),
    ),
    Mutant(
        "epochs-without-a-transaction-not-counted",
        "the row's past leaves out the epochs that an init gave up, and so tells of other ones",
        "6.1",
        (
            Edit(
                _ROW,
                "followed_by(_ENDED[last.outcome]).followed_by(Ended.NOTHING, epoch - last.epoch - 1)",
                "followed_by(_ENDED[last.outcome])",
            ),
        ),
        Killer("asked-again", 1),
    ),
    Mutant(
        "future-is-young",
        "a transaction that began under a clock that was ahead is waited for until that time has come",
        "6.6 time-out",
        (
            Edit(
                "coordinator/store_time.py",
                "    return age_ms > patience_ms or age_ms < -(patience_ms + AHEAD_MS)\n",
                "    return age_ms > patience_ms\n",
            ),
        ),
        Killer("clock-ahead", 3),
    ),
)
