"""Money between two databases: a kill at every storage call, and before and after every commit of both databases.

The programs are the worked example, :mod:`examples.transfers`.  What holds afterwards: each order was executed once
or refused, and no money is lost or made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from examples.transfers import (
    MESSAGE,
    TOPIC,
    TRANSACTIONAL_ID,
    OvertakenError,
    balances,
    main,
    open_receiver,
    open_sender,
    receive_transfers,
    send_transfers,
)
from tests.doubles.fault_plan import WRITES, Fault, Rule, at
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.site import Site, published
from txntable.errors import InvalidTxnStateError, TxnTableError
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

ORDERS = [("ann", "bob", 30), ("ann", "cleo", 190), ("ann", "cleo", 50)]
STATES = ["executed", "refused", "executed"]
AT_THE_BEGINNING, AT_THE_END = {"ann": 200}, ({"ann": 120}, {"bob": 30, "cleo": 50})
Program = Callable[[Warehouse, sqlite3.Connection], None]


class WatchedBank(sqlite3.Connection):
    """A database whose process dies before or after one of its commits."""

    commits = 0
    dies_at: tuple[int, str] | None = None

    def commit(self) -> None:
        number, self.commits = self.commits, self.commits + 1
        if self.dies_at == (number, "before"):
            raise ProcessKilled
        super().commit()
        if self.dies_at == (number, "after"):
            raise ProcessKilled


class World:
    """A warehouse and two databases, each of which survives the processes."""

    def __init__(self, site: Site, sender: bytes, receiver: bytes) -> None:
        self.site = site
        self.data: dict[Program, bytes] = {send_transfers: sender, receive_transfers: receiver}

    def copy(self) -> World:
        return World(self.site.copy(), *self.data.values())

    def connect(self, program: Program) -> WatchedBank:
        bank = sqlite3.connect(":memory:", factory=WatchedBank)
        bank.deserialize(self.data[program])
        return bank

    def run(self, program: Program, *plan: Rule, dies_at: tuple[int, str] | None = None) -> tuple[SteppingStore, int]:
        """Run one of the two programs; return its storage calls, and how often it committed in its database."""
        warehouse, bank = self.site.open(*plan), self.connect(program)
        bank.dies_at = dies_at
        try:
            program(warehouse, bank)
        finally:
            # What is on the disk of the database: what it has committed.
            bank.rollback()
            self.data[program] = bank.serialize()
            bank.close()
        assert isinstance(warehouse.store, SteppingStore)
        return warehouse.store, bank.commits

    def finish(self) -> None:
        self.run(send_transfers)
        self.run(receive_transfers)

    def balances(self) -> tuple[dict[str, int], dict[str, int]]:
        sender, receiver = (balances(self.connect(program)) for program in self.data)
        return sender, receiver

    def states(self) -> list[str]:
        bank = self.connect(send_transfers)
        return [state for (state,) in bank.execute("SELECT state FROM orders ORDER BY id")]

    def on_the_way(self) -> int:
        positions = dict(self.connect(receive_transfers).execute("SELECT * FROM positions"))
        rows = published(self.site.open(), TOPIC)
        return sum(row["amount"] for row in rows if row["_offset"] >= positions.get(row["_partition"], 0))


@pytest.fixture
def world() -> World:
    site = Site()
    site.create().admin().create_topic(TOPIC, partitions=2, schema=MESSAGE, key=["payee"])
    sender, receiver = open_sender(":memory:"), open_receiver(":memory:")
    sender.executemany("INSERT INTO accounts VALUES (?, ?)", AT_THE_BEGINNING.items())
    sender.executemany("INSERT INTO orders (payer, payee, amount) VALUES (?, ?, ?)", ORDERS)
    sender.commit()
    return World(site, sender.serialize(), receiver.serialize())


def kills(world: World, program: Program) -> Iterator[tuple[World, str]]:
    """Every way in which one run of a program dies: one that dies at a read leaves what it did before that."""
    store, commits = world.copy().run(program)
    writes = [step for step in store.steps if step.operation in WRITES]
    deaths = [*((Fault.KILL_BEFORE, step) for step in writes[:1]), *((Fault.KILL_AFTER, step) for step in writes)]
    for fault, step in deaths:
        crashed = world.copy()
        with pytest.raises(ProcessKilled):
            crashed.run(program, at(step.number, fault))
        yield crashed, f"{fault.name} {step.operation.value} {step.path}"
    for number in range(commits):
        for moment in ("before", "after"):
            crashed = world.copy()
            with pytest.raises(ProcessKilled):
                crashed.run(program, dies_at=(number, moment))
            yield crashed, f"killed {moment} commit {number} of the database"


def check_end(world: World, where: str) -> None:
    assert world.balances() == AT_THE_END, where
    assert world.states() == STATES, where
    assert world.on_the_way() == 0, where
    warehouse = world.site.open()
    fold = warehouse.transactions.log.fold
    warehouse.completer.look_at(fold.decided())
    # Who was killed before it wrote COMPLETE owes nothing.
    assert list(fold.under_way.values()) == fold.unrecorded(), where


def test_sum_is_the_same_wherever_the_sender_dies(world: World) -> None:
    first_orders = set()
    for crashed, where in kills(world, send_transfers):
        first_orders.add(crashed.states()[0])
        crashed.site.advance_ms(10_000_000)
        crashed.site.open().complete()
        (sender, _) = crashed.balances()
        left = sum(AT_THE_BEGINNING.values()) - sum(sender.values())
        owed = left - crashed.on_the_way()
        waiting = crashed.site.open().transactions.row(TRANSACTIONAL_ID)
        # What SQLite has decided and the topic does not show yet waits under SQLite's token, however long.
        last_token = crashed.connect(send_transfers).execute("SELECT token FROM two_phase_commit").fetchone()[0]
        assert owed == 0 or (waiting is not None and waiting.token == last_token), where
        assert owed in (0, 30, 50), where

        crashed.finish()

        check_end(crashed, where)
    assert first_orders == {"ordered", "executed"}


def test_sum_is_the_same_wherever_the_receiver_dies(world: World) -> None:
    world.run(send_transfers)
    received = set()
    for crashed, where in kills(world, receive_transfers):
        sender, receiver = crashed.balances()
        received.add(sum(receiver.values()))
        assert sum(sender.values()) + sum(receiver.values()) + crashed.on_the_way() == 200, where

        crashed.finish()

        check_end(crashed, where)
    assert {0, 80} <= received <= {0, 30, 50, 80}


def test_recovery_that_is_killed_anywhere_is_finished_by_the_next_run(world: World) -> None:
    """Killed when SQLite has decided the first order, then anywhere in the run that follows."""
    with pytest.raises(ProcessKilled):
        world.run(send_transfers, dies_at=(1, "after"))
    for crashed, where in kills(world, send_transfers):
        crashed.finish()
        check_end(crashed, where)


@pytest.mark.parametrize("program", [send_transfers, receive_transfers])
def test_sum_is_the_same_when_two_runs_overlap(world: World, program: Program, tmp_path: Path) -> None:
    """At each storage call of a run, and before each of its local transactions, another one begins and ends."""
    if program is receive_transfers:
        world.run(send_transfers)
    overtaken = 0
    for number in count():
        overlap = Overlap(world.copy(), program, number, tmp_path / f"{program.__name__}-{number}.db")
        overtaken += overlap.run()
        overlap.world.finish()
        check_end(overlap.world, f"moment {number}")
        if not overlap.happened:
            break
    assert overtaken


class Overlap:
    """Two runs of a program, of which the second lies within one moment of the first."""

    def __init__(self, world: World, program: Program, moment: int, database: Path) -> None:
        self.world, self.program, self.moment, self.happened = world, program, moment, False
        database.write_bytes(world.data[program])
        self.first = sqlite3.connect(database, factory=ObservedBank)
        self.second = sqlite3.connect(database)
        self.left = moment

    def run(self) -> bool:
        """Run both; return whether the first was told that it is overtaken."""
        warehouse = self.world.site.open()
        assert isinstance(warehouse.store, SteppingStore)
        warehouse.store.on_step = lambda step: self.pass_moment()
        self.first.on_begin = self.pass_moment
        try:
            self.program(warehouse, self.first)
        except (OvertakenError, TxnTableError):
            self.first.rollback()
            return True
        finally:
            self.first.on_begin = lambda: None
            self.world.data[self.program] = self.first.serialize()
            self.first.close()
            self.second.close()
        return False

    def pass_moment(self) -> None:
        if self.left == 0:
            self.happened = True
            self.program(self.world.site.open(), self.second)
        self.left -= 1


class ObservedBank(sqlite3.Connection):
    """A database that tells when nothing is under way in it and a statement comes."""

    on_begin: Callable[[], None] = staticmethod(lambda: None)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        if not self.in_transaction:
            self.on_begin()
        return super().execute(*arguments)


def test_prepared_transaction_is_never_timed_out(world: World) -> None:
    with pytest.raises(ProcessKilled):
        world.run(send_transfers, dies_at=(1, "after"))
    world.site.advance_ms(40 * 86_400_000)

    assert world.site.open().completer.abort_timed_out() == 0

    world.finish()
    check_end(world, "")


def prepared(world: World) -> tuple[Producer, str]:
    producer = world.site.open().producer("other")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(TOPIC, row={"payee": "dan", "amount": 9})
    return producer, producer.prepare_transaction()


def test_token_of_a_transaction_that_was_aborted_meanwhile_is_told(world: World) -> None:
    """The external database committed and the warehouse did not: no one may pass over that."""
    producer, token = prepared(world)
    producer.abort_transaction()
    again = world.site.open().producer("other")
    again.init_transactions(keep_prepared=True)

    with pytest.raises(InvalidTxnStateError, match="aborted although its token was committed outside"):
        again.complete_transaction(token)


def test_init_without_keep_prepared_leaves_the_prepared_transaction_alone(world: World) -> None:
    _, token = prepared(world)

    with pytest.raises(InvalidTxnStateError, match="keep_prepared"):
        world.site.open().producer("other").init_transactions()

    heir = world.site.open().producer("other")
    heir.init_transactions(keep_prepared=True)
    heir.complete_transaction(token)
    assert [row["payee"] for row in published(world.site.open(), TOPIC)] == ["dan"]


def test_example_runs_as_its_documentation_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for order in (["--pay", "ann", "bob", "30"], ["--pay", "ann", "bob", "71"], []):
        main(["--folder", str(tmp_path), *order])

    assert capsys.readouterr().out == "sender: {'ann': 70}\nreceiver: {'bob': 30}\nsum: 100\n" * 3
