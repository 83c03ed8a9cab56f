"""Two-phase commit with SQLite: a kill at every storage call and at every commit of the database.

The job is the worked example, :mod:`jobs.sqlite_orders`; what holds afterwards is that an order is
in the topic exactly when SQLite says that it was moved, and never twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from jobs.sqlite_orders import ORDERS, TOPIC, TRANSACTIONAL_ID, last_token, main, make_tables, move_orders
from tests.simulation.site import Site, published
from txntable.client.producer import Producer
from txntable.errors import InvalidTxnStateError
from txntable.testing.fault_plan import Fault, Rule, at
from txntable.testing.stepping_store import ProcessKilled, SteppingStore

ITEMS = {1: "bread", 2: "salt", 3: "wine"}


class KilledAtCommit(sqlite3.Connection):
    """A database whose process dies before or after a commit."""

    before, after = False, False

    def commit(self) -> None:
        if self.before:
            raise ProcessKilled
        super().commit()
        if self.after:
            raise ProcessKilled


class World:
    """A warehouse and a database, each of which survives the process."""

    def __init__(self, site: Site, data: bytes) -> None:
        self.site, self.data = site, data

    def copy(self) -> World:
        return World(self.site.copy(), self.data)

    def connect(self, kind: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:", factory=kind)
        database.deserialize(self.data)
        return database

    def keep(self, database: sqlite3.Connection) -> None:
        """What is on the disk of the database: what it has committed."""
        database.rollback()
        self.data = database.serialize()
        database.close()

    def run(self, *plan: Rule, kind: type[sqlite3.Connection] = sqlite3.Connection) -> SteppingStore:
        warehouse = self.site.open(*plan)
        database = self.connect(kind)
        try:
            move_orders(warehouse, database)
        finally:
            self.keep(database)
        assert isinstance(warehouse.store, SteppingStore)
        return warehouse.store

    def moved(self) -> list[int]:
        database = self.connect()
        return [number for (number,) in database.execute("SELECT id FROM orders WHERE moved ORDER BY id")]

    def arrived(self) -> list[int]:
        return sorted(row["id"] for row in published(self.site.open(), TOPIC))


@pytest.fixture
def world() -> World:
    site = Site()
    site.create().admin().create_topic(TOPIC, partitions=2, schema=ORDERS, key=["id"])
    database = sqlite3.connect(":memory:")
    make_tables(database)
    database.executemany("INSERT INTO orders (id, item) VALUES (?, ?)", list(ITEMS.items()))
    database.commit()
    return World(site, database.serialize())


def kills(world: World) -> Iterator[tuple[World, str]]:
    for step in world.copy().run().steps:
        for fault in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
            crashed = world.copy()
            with pytest.raises(ProcessKilled):
                crashed.run(at(step.number, fault))
            yield crashed, f"{fault.name} {step.operation.value} {step.path}"


def kills_at_the_database(world: World) -> Iterator[tuple[World, str]]:
    for moment in ("before", "after"):
        crashed = world.copy()
        with pytest.raises(ProcessKilled):
            crashed.run(kind=type("Killed", (KilledAtCommit,), {moment: True}))
        yield crashed, f"killed {moment} SQLite's commit"


def test_order_arrives_exactly_when_sqlite_says_so_wherever_the_job_dies(world: World) -> None:
    both = set()
    for crashed, where in chain(kills(world), kills_at_the_database(world)):
        both.add(bool(crashed.moved()))
        crashed.site.advance_ms(10_000_000)
        crashed.site.open().complete()
        if crashed.moved() and not crashed.arrived():
            waiting = crashed.site.open().transactions.row(TRANSACTIONAL_ID)
            assert waiting is not None, where
            assert waiting.token == last_token(crashed.connect()), where

        crashed.run()

        assert crashed.moved() == crashed.arrived() == list(ITEMS), where
        assert not crashed.site.open().transactions.log.fold.under_way, where
    assert both == {False, True}


def test_recovery_killed_anywhere_is_finished_by_the_next_run(world: World) -> None:
    """Killed after the database committed, then at every call of the run that completes."""
    with pytest.raises(ProcessKilled):
        world.run(kind=type("Killed", (KilledAtCommit,), {"after": True}))
    for crashed, where in kills(world):
        crashed.run()
        assert crashed.moved() == crashed.arrived() == list(ITEMS), where


def test_prepared_transaction_is_never_timed_out(world: World) -> None:
    with pytest.raises(ProcessKilled):
        world.run(kind=type("Killed", (KilledAtCommit,), {"after": True}))
    world.site.advance_ms(40 * 86_400_000)

    assert world.site.open().completer.abort_timed_out() == 0

    world.run()
    assert world.arrived() == list(ITEMS)


def prepared(world: World) -> tuple[Producer, str]:
    producer = world.site.open().producer("other")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(TOPIC, row={"id": 9, "item": "rope"})
    return producer, producer.prepare_transaction()


def test_token_of_a_transaction_that_was_aborted_meanwhile_is_told(world: World) -> None:
    """The outside database committed and the warehouse did not: no one may pass over that."""
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
    assert world.arrived() == [9]


def test_job_runs_as_its_documentation_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--warehouse", str(tmp_path / "warehouse"), "--database", str(tmp_path / "orders.db")]
    main(arguments)
    database = sqlite3.connect(tmp_path / "orders.db")
    database.execute("INSERT INTO orders (item) VALUES ('rope')")
    database.commit()

    main(arguments)
    main(arguments)

    assert capsys.readouterr().out.splitlines() == ["moved 0 orders", "moved 1 orders", "moved 0 orders"]
