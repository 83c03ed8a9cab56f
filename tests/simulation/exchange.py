"""What a simulation's merchants do: two-phase commit with an external database.

The database survives every process and commits in one step.  It lets only the process that took an
owner last commit for it, as a database must for which several processes may run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.actor import Action
from tests.simulation.bank import Teller
from tests.simulation.journal import Journal
from tests.simulation.recorded import RecordedProducer
from tests.simulation.turns import Process
from txntable.errors import (
    CommitStateUnknownError,
    InvalidRequestError,
    InvalidTxnStateError,
    TxnTableError,
)

MERCHANTS = ("v", "v", "v", "w")


@dataclass
class ExternalDatabase:
    """The external database: of each owner the last token that it committed."""

    tokens: dict[str, str] = field(default_factory=dict)
    # Token -> the transaction's name in the operation log.
    committed: dict[str, str] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)

    def take(self, owner: str) -> int:
        """Take an owner from all earlier processes."""
        self.taken[owner] += 1
        return self.taken[owner]

    def commit(self, owner: str, taken: int, token: str, txn: str) -> bool:
        """Commit, unless another process has the owner by now."""
        if self.taken[owner] != taken:
            return False
        self.tokens[owner] = token
        self.committed[token] = txn
        return True

    def recover(self, owner: str, producer: RecordedProducer) -> None:
        """End what is prepared as this database ended its own."""
        token = self.tokens.get(owner)
        try:
            producer.complete(token, None if token is None else self.committed[token], commit=True)
        except InvalidTxnStateError as error:
            if "aborted although its token was committed" in error.message and self.tokens.get(owner) == token:
                # An admin did it: now it is told, and mended by hand.
                del self.tokens[owner]
            raise
        except InvalidRequestError as error:
            raise AssertionError(f"an owner that can never sell again: {error}") from error


class Merchant(Teller):
    """Sells: an order arrives exactly when the external database committed it."""

    def __init__(self, process: Process, journal: Journal, topics: tuple[str, ...], database: ExternalDatabase) -> None:
        super().__init__(process, journal, topics)
        self.database = database

    def actions(self) -> list[Action]:
        """Sell, mostly."""
        return [*[self.sell] * 6, self.intrude, self.look, self.sleep]

    def sell(self) -> None:
        """Take the owner over, end what was left, then sell; walk away anywhere in between."""
        owner = self.random.choice(MERCHANTS)
        producer = self.producer(owner)
        producer.init(keep_prepared=True)
        # Not before init: whoever takes the prepared transaction over must know that no one commits it any more.
        taken = self.database.take(owner)
        self.database.recover(owner, producer)
        for _ in range(self.random.randint(1, 3)):
            self.maybe_sleep(0.1)
            if not self.order(owner, taken, producer):
                return

    def order(self, owner: str, taken: int, producer: RecordedProducer) -> bool:
        """One order; whether the merchant may go on."""
        before = self.database.tokens.get(owner)
        producer.txn = None
        try:
            producer.begin(self.random.choice([None, None, "monday", "tuesday"]))
            self.fill(producer)
            self.process.pause()
            token = producer.prepare()
        except TxnTableError as error:
            if isinstance(error, CommitStateUnknownError) or producer.txn is None:
                return False
            producer.abort()
            return True
        if self.random.random() < 0.15:
            return False
        self.process.pause()
        self.maybe_sleep(0.1)
        assert producer.txn is not None
        done = self.random.random() >= 0.25 and self.database.commit(owner, taken, token, producer.txn)
        if self.random.random() < 0.15:
            return False
        self.process.pause()
        ends_by_token = self.random.random() >= 0.35
        if done and ends_by_token:
            producer.complete(token, producer.txn, commit=True)
        elif done:
            producer.commit()
        elif ends_by_token:
            # Only who has lost the owner cannot say which token was the last.
            producer.complete(before, producer.txn, commit=False)
        else:
            producer.abort()
        return True

    def intrude(self) -> None:
        """Take an owner as who knows nothing of two-phase commit: a prepared transaction has to withstand it.

        What it does then comes after the last token's transaction, and must not make that one's outcome forgotten.
        """
        producer = self.producer(self.random.choice(MERCHANTS))
        producer.init()
        if self.random.random() < 0.6:
            self.transact(producer, None)
