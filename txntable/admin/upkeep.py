"""Which maintenance a warehouse needs, when it counts as overdue, and what is reported then.

Owns the duties, their limits and the remedies, for people and for alarms.  :mod:`txntable.admin.upkeep_check` does the
checking.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidConfigError

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
# Kept out of a limit's value: what is longer than the warehouse itself can be is a slip of the finger.
_LARGEST = 2**53


class Duty(Enum):
    """A background duty; its value is its name in an alarm."""

    READ = "unreadable"
    COMPLETE = "decided, not complete"
    TIME_OUT = "timed out, not aborted"
    END_PREPARED = "prepared for long"
    END_HANGING = "hanging transaction"
    COORDINATE = "no coordinator"
    PUBLISH = "not published"
    WRITE_CHECKPOINT = "long tail"
    CLEAN_UP = "log not cleaned up"
    MERGE = "small segments"
    COMPACT_BY_KEY = "not compacted by key"
    VACUUM = "removed files not deleted"
    CONSUME = "group lags"
    STAND_WITHIN = "group beyond the end"
    CORRECT_CLOCK = "time ahead"


_JOB = "run `txntable transactions run --once`, and find out why its scheduler does not"
REMEDIES: Mapping[Duty, str] = {
    Duty.READ: "see the error: restore what `txntable warehouse verify` calls damaged, or grant access",
    Duty.COMPLETE: _JOB,
    Duty.TIME_OUT: _JOB,
    Duty.END_PREPARED: "start its program, which completes it as its database decided; only where that rolled back,"
    " `txntable transactions abort`",
    Duty.END_HANGING: "`txntable transactions find-hanging`, then `txntable transactions abort`",
    Duty.COORDINATE: _JOB,
    Duty.PUBLISH: _JOB,
    Duty.WRITE_CHECKPOINT: _JOB,
    Duty.CLEAN_UP: _JOB,
    Duty.MERGE: "run `txntable compact`, and find out why its scheduler does not",
    Duty.COMPACT_BY_KEY: "run `txntable compact`, and find out why its scheduler does not",
    Duty.VACUUM: "run `txntable vacuum --execute`, and find out why its scheduler does not",
    Duty.CONSUME: "check whether the group's consumers run and keep up",
    Duty.STAND_WITHIN: "stop its consumers, which would begin anew as `auto_offset_reset` says, and the topic's"
    " writers, and run `txntable warehouse verify`: the topic may be an older copy. Else set its offsets with"
    " `txntable groups reset-offsets`",
    Duty.CORRECT_CLOCK: "compare this machine's clock with the store's; if the store's was ahead, transactions and"
    " members still end, but compaction, retention and expiry of what was written since wait until then",
}


@dataclass(frozen=True, slots=True)
class UpkeepLimits:
    """When something counts as overdue; ages are in milliseconds.

    Attributes
    ----------
    decision_age_ms : int
        Age of a decision that is not complete.
    timeout_grace_ms : int
        Time since the timeout of a transaction that is still open.
    prepared_age_ms : int
        Time since the start of a prepared transaction, which never times out.
    coordinator_age_ms : int
        Time since the coordinator job's last claim of its lease; 0: not checked.  A job that keeps running claims
        once, a scheduled one each time: of the former, only the work that it leaves undone shows that it is dead.
    publication_age_ms : int
        Age of a commit that a public table should show but does not.
    tail_entries : int
        Entries of a log above its newest checkpoint; for large logs three times the interval of checkpoints.
    chain_entries : int
        How many of the newest entries of each log are read to verify their chain, a GET for each; 0: only those above
        the newest checkpoint, as every reader does.
    cleanup_grace_ms : int
        Time since log entries could have been deleted.
    compaction_age_ms : int
        Added to the warehouse's ``snapshot_retention_ms``: younger segments count neither as small nor as dirty.
    small_segments : int
        Number of segments in one partition that are smaller than half of ``segment.bytes``.
    vacuum_grace_ms : int
        Time since removed files could have been deleted.
    lag_records : int
        Lag of one group in one partition, up to the last stable offset; 0: not checked.
    clock_ahead_ms : int
        How far a log's newest times may be in the future of the machine that checks.

    Raises
    ------
    InvalidConfigError
        A limit is not an integer of at least 0.
    """

    decision_age_ms: int = 15 * _MINUTE_MS
    timeout_grace_ms: int = 15 * _MINUTE_MS
    prepared_age_ms: int = _DAY_MS
    coordinator_age_ms: int = 0
    publication_age_ms: int = 15 * _MINUTE_MS
    tail_entries: int = 300
    chain_entries: int = 0
    cleanup_grace_ms: int = 3 * _DAY_MS
    compaction_age_ms: int = _DAY_MS
    small_segments: int = 100
    vacuum_grace_ms: int = 7 * _DAY_MS
    lag_records: int = 0
    clock_ahead_ms: int = 15 * _MINUTE_MS

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if type(value) is not int or not 0 <= value <= _LARGEST:
                raise InvalidConfigError(
                    "a limit must be an integer of at least 0", limit=each.name, value=shown(value)
                )


def limits_from_text(values: Mapping[str, str]) -> UpkeepLimits:
    """Return limits given as text; the others have their defaults.

    Raises
    ------
    InvalidConfigError
        A limit is unknown, or its value is not a number: the message lists the known ones.
    """
    known = [each.name for each in fields(UpkeepLimits)]
    for name, value in values.items():
        if name not in known:
            raise InvalidConfigError("unknown limit; use one of the known ones", name=name, known=",".join(known))
        if not (value.isascii() and value.isdecimal()):
            raise InvalidConfigError("a limit must be an integer of at least 0", limit=name, value=shown(value))
    return UpkeepLimits(**{name: int(value) for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is late, or cannot be told.

    Attributes
    ----------
    duty : Duty
        What was not done.
    where : str
        The transactional id, topic, partition or log.
    found, limit : int or None
        How late, or how many; above the limit.  ``None``: no number.
    unit : str or None
        Of both; ``None``: no number.
    note : str
        What else is known; of what cannot be read the error.
    """

    duty: Duty
    where: str
    found: int | None = None
    limit: int | None = None
    unit: str | None = None
    note: str = ""

    @property
    def remedy(self) -> str:
        """What to do."""
        return REMEDIES[self.duty]
