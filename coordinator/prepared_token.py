"""Tokens of prepared transactions: what an external database stores to say which one it committed (PROTOCOL.md §6.3).

Owns the token's spelling, and what a holder of a token may conclude from the row that it finds
after a restart (KIP-939's ``completeTransaction``, with a token that is durable here).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from txntable.coordinator.decision import Outcome
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import InvalidRequestError, InvalidTxnStateError, TransactionOutcomeUnknownError
from txntable.coordinator.past_decisions import Ended
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import ProducerIdentity
from txntable.coordinator.transaction_state import TransactionState

_TOKEN = re.compile(r"([0-9]{1,19}):([0-9]{1,19}):([0-9a-f]+)")
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class PreparedToken:
    """The name of one prepared transaction.

    Attributes
    ----------
    producer_id, epoch : int
        The transaction.
    nonce : str
        Hex digits that no other token has; they begin with some of the transactional id's digest.
    """

    producer_id: int
    epoch: int
    nonce: str

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}:{self.nonce}"

    @classmethod
    def new(cls, transactional_id: str, producer_id: int, epoch: int, unique: str) -> PreparedToken:
        """Return the token of a transaction; `unique` are hex digits that no other has."""
        return cls(producer_id, epoch, _id_digits(transactional_id) + unique)

    def is_of(self, transactional_id: str) -> bool:
        """Return whether the token was made for `transactional_id`, under whatever producer id."""
        return self.nonce.startswith(_id_digits(transactional_id))

    @classmethod
    def parse(cls, text: str) -> PreparedToken:
        """Return the token that `text` spells.

        Raises
        ------
        InvalidRequestError
            It is no token: give what ``prepare_transaction`` returned.
        """
        match = _TOKEN.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidRequestError("this is no token; give what prepare_transaction returned", token=shown(text))
        return cls(int(match[1]), int(match[2]), match[3])


def _id_digits(transactional_id: str) -> str:
    return sha256(transactional_id.encode()).hexdigest()[:_ID_DIGITS]


def compare_token(row: TransactionMetadata, token: str | None, holder: ProducerIdentity) -> Outcome | None:
    """Return how a prepared transaction is to be ended, given the token that the external database committed.

    Parameters
    ----------
    row : TransactionMetadata
        The row of the id, with nothing decided and incomplete.
    token : str, optional
        The last token that the external database committed; ``None``: none ever.
    holder : ProducerIdentity
        Who asks, since its init.

    Returns
    -------
    Outcome, optional
        COMMIT when it is the prepared transaction's, ABORT when it is that of an earlier one, which was committed:
        the external database did not commit.  ``None``: nothing is prepared, and nothing contradicts the token; or
        what is prepared is another process's, which has taken the id since: that process ends it.

    Raises
    ------
    InvalidRequestError
        It is no token, or of another transactional id.
    InvalidTxnStateError
        The transaction of the token was aborted although the external database committed, or never
        was: the two differ, and someone has to look.
    TransactionOutcomeUnknownError
        Nobody knows how it ended: of a producer id that the id has no more (it expired, or the warehouse was
        restored), or so old that the row has forgotten it.
    """
    named = None if token is None else PreparedToken.parse(token)
    if named is not None and token != row.token:
        _require_earlier(row, named)
    if row.state is not TransactionState.PREPARED:
        return None
    if token == row.token:
        return Outcome.COMMIT
    is_held = (row.producer_id, row.producer_epoch) == (holder.producer_id, holder.producer_epoch)
    return Outcome.ABORT if is_held else None


def _require_earlier(row: TransactionMetadata, named: PreparedToken) -> None:
    """Refuse a token whose transaction is not an earlier one, or did not end as its holder takes for granted."""
    facts = {"transactional_id": row.transactional_id, "producer_epoch": row.producer_epoch, "token": str(named)}
    if named.producer_id != row.producer_id and not named.is_of(row.transactional_id):
        raise InvalidRequestError(
            "the token is of another producer id: use the transactional id that it was prepared under",
            producer_id=row.producer_id,
            **facts,
        )
    # Whatever is decided under the row's own epoch is none that was committed outside.
    is_over = named.producer_id == row.producer_id and named.epoch < row.producer_epoch
    ended = row.ended(named.epoch) if is_over else None
    if named.producer_id != row.producer_id or (is_over and ended is None):
        raise TransactionOutcomeUnknownError(
            "the token is of a transaction that ended so long ago, or before a restore, that nobody knows how:"
            " look whether its records are there, write them again by hand if not, then delete the token"
            " in the external database",
            **facts,
        )
    if ended is Ended.ABORTED:
        raise InvalidTxnStateError(
            "the transaction was aborted although its token was committed outside: write its records again by hand,"
            " then delete the token there",
            **facts,
        )
    if ended is not Ended.COMMITTED:
        raise InvalidTxnStateError(
            "the transaction of the token is not prepared: check the warehouse and the external database", **facts
        )
