"""The lease of the coordinator job: which job is the coordinator, under which epoch (PROTOCOL.md §6.6).

Owns the lease's row of the transaction log.  A claim always takes over, and raises the coordinator
epoch; who held the lease before finds out at its next commit.  It is there against double work:
safety never rests on it, since every request is decided on the row that it changes.  A job of one round says so in
the row: one that runs all the time claims the lease again that it lost to such a job, unless another one like it has
it by now.
Must not know of transactions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import DamagedDataError, TransactionCoordinatorFencedError
from txntable.coordinator.row_json import Fields, decode_row, encode_key, encode_row

LEASE_KEY = encode_key("coordinator")
NEVER_CLAIMED = 0
_OWNER = re.compile(r"[0-9a-f]{32}")
_REQUIRED: Fields = {"owner": str, "coordinator_epoch": int, "position": int}
_OPTIONAL: Fields = {"runs_once": bool}


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The lease as the transaction log keeps it.

    Attributes
    ----------
    owner : str
        32 hex digits that the job made for itself.
    coordinator_epoch : int
        From 1; rises with every claim.
    position : int
        The version of the transaction log that wrote this row.
    runs_once : bool
        Whether the job does one round, and ends.

    Raises
    ------
    DamagedDataError
        A field is not what it must be.
    """

    owner: str
    coordinator_epoch: int
    position: int
    runs_once: bool = False

    def __post_init__(self) -> None:
        if not _OWNER.fullmatch(self.owner) or self.coordinator_epoch <= NEVER_CLAIMED or self.position < 0:
            raise DamagedDataError(
                "the lease's row contradicts the format",
                owner=shown(self.owner),
                coordinator_epoch=self.coordinator_epoch,
                position=self.position,
            )

    def to_json(self) -> str:
        """Return the stored form."""
        return encode_row(
            {
                "owner": self.owner,
                "coordinator_epoch": self.coordinator_epoch,
                "position": self.position,
                "runs_once": self.runs_once or None,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> LeaseRow:
        """Return the row that `text` stores.

        Raises
        ------
        DamagedDataError
            It contradicts the format.
        UnsupportedFormatError
            It is of a format that this version does not know.
        """
        fields = decode_row(text, "lease", _REQUIRED, _OPTIONAL)
        if fields["runs_once"] is False:
            raise DamagedDataError("the lease's row says what is said by leaving it out", field="runs_once")
        return cls(**{**fields, "runs_once": fields["runs_once"] is True})


def claim(row: LeaseRow | None, owner: str, position: int, *, runs_once: bool = False) -> LeaseRow:
    """Return the row that makes `owner` the coordinator, whoever was it before.

    Parameters
    ----------
    row : LeaseRow, optional
        The lease; ``None``: nobody has claimed it yet.
    owner : str
        32 hex digits that no other job has.
    position : int
        The slot decided on.
    runs_once : bool
        Whether the job does one round, and ends.
    """
    return LeaseRow(owner, coordinator_epoch_of(row) + 1, position, runs_once)


def claim_again(row: LeaseRow | None, owner: str, position: int) -> LeaseRow:
    """Return the row that gives a job that runs all the time the lease back, which a job of one round has taken.

    Raises
    ------
    TransactionCoordinatorFencedError
        A job that runs all the time has it by now: stop.
    """
    if row is not None and not row.runs_once:
        require_held(row, owner)
    return claim(row, owner, position)


def coordinator_epoch_of(row: LeaseRow | None) -> int:
    """Return the epoch that markers carry; 0: nobody has claimed the lease yet."""
    return NEVER_CLAIMED if row is None else row.coordinator_epoch


def require_held(row: LeaseRow | None, owner: str) -> None:
    """Return when `owner` holds the lease.

    Parameters
    ----------
    row : LeaseRow, optional
        The lease at the version that is decided on.
    owner : str
        Who is about to write.

    Raises
    ------
    TransactionCoordinatorFencedError
        Another job has it: stop.
    """
    if row is None or row.owner != owner:
        raise TransactionCoordinatorFencedError(
            "another coordinator job has taken the lease over: stop this one; a new claim would take it back",
            owner=owner,
            current_owner=row and row.owner,
            coordinator_epoch=coordinator_epoch_of(row),
        )
