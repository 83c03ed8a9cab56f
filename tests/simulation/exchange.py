"""What a simulation's merchants do: two-phase commit with an outside database.

The database survives every process and commits in one step.  It lets only the process that took an
owner last commit for it, as a database must for which several processes may run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.bank import Actor, Fate, Ledger, Promise, stubbornly
from tests.simulation.turns import Process
from txntable.client.producer import Producer
from txntable.errors import InvalidRequestError, InvalidTxnStateError, TxnTableError

MERCHANTS = ("v", "v", "v", "w")


@dataclass
class Outside:
    """The outside database: of each owner the last token that it committed."""

    tokens: dict[str, str] = field(default_factory=dict)
    committed: dict[str, Promise] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)

    def take(self, owner: str) -> int:
        self.taken[owner] += 1
        return self.taken[owner]

    def commit(self, owner: str, taken: int, token: str, promise: Promise) -> bool:
        if self.taken[owner] != taken:
            return False
        self.tokens[owner] = token
        self.committed[token] = promise
        promise.fate = Fate.ASKED
        return True

    def recover(self, owner: str, producer: Producer) -> bool:
        """End what is prepared as this database ended its own; whether that is known to be done."""
        token = self.tokens.get(owner)
        try:
            return stubbornly(lambda: producer.complete_transaction(token))
        except InvalidTxnStateError as error:
            if "aborted although its token was committed" in error.message and self.tokens.get(owner) == token:
                # An admin did it: now it is told, and mended by hand.
                del self.tokens[owner]
            raise
        except InvalidRequestError as error:
            raise AssertionError(f"an owner that can never sell again: {error}") from error


class Merchant(Actor):
    """Sells: an order arrives exactly when the outside database committed it."""

    def __init__(self, process: Process, ledger: Ledger, outside: Outside) -> None:
        super().__init__(process, ledger)
        self.outside = outside

    def actions(self) -> list[Callable[[], object]]:
        return [*[self.sell] * 6, self.intrude, self.look, self.sleep]

    def sell(self) -> None:
        """Take the owner over, end what was left, then sell; walk away anywhere in between."""
        owner = self.random.choice(MERCHANTS)
        producer = self.producer(owner)
        if not stubbornly(lambda: producer.init_transactions(keep_prepared=True)):
            return
        # Not before init: whoever takes the prepared transaction over must know that no one commits it any more.
        taken = self.outside.take(owner)
        if not self.outside.recover(owner, producer):
            return
        for _ in range(self.random.randint(1, 3)):
            self.maybe_jump(0.1)
            if not self.order(owner, taken, producer):
                return

    def order(self, owner: str, taken: int, producer: Producer) -> bool:
        promise = self.ledger.promise(self.tag(), self.random.choice([None, None, "monday", "tuesday"]), owner)
        before = self.outside.tokens.get(owner)
        try:
            producer.begin_transaction(promise.batch)
            self.fill(producer, promise)
            self.process.pause()
            tokens: list[str] = []
            if not stubbornly(lambda: tokens.append(producer.prepare_transaction())):
                return False
            self.ledger.wrote(producer)
        except TxnTableError:
            return stubbornly(producer.abort_transaction)
        if self.random.random() < 0.15:
            return False
        self.process.pause()
        self.maybe_jump(0.1)
        done = self.random.random() < 0.75 and self.outside.commit(owner, taken, tokens[0], promise)
        if self.random.random() < 0.15:
            return False
        self.process.pause()
        if not done:
            # Only who has lost the owner can not say which token was the last.
            end = (lambda: producer.complete_transaction(before)) if self.random.random() < 0.5 else None
            return stubbornly(end or producer.abort_transaction)
        end = (lambda: producer.complete_transaction(tokens[0])) if self.random.random() < 0.8 else None
        return stubbornly(end or producer.commit_transaction)

    def intrude(self) -> None:
        """Take an owner as who knows nothing of two-phase commit: a prepared transaction has to withstand it."""
        self.producer(self.random.choice(MERCHANTS)).init_transactions()
