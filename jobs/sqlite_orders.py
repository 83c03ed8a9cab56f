"""Two-phase commit with an outside database: orders leave an SQLite table and reach a topic, exactly once.

A worked example.  Each run moves the orders that were not moved yet: they are sent in a
transaction, which is prepared; SQLite notes in *its* transaction that they are moved, together with
the token; then the prepared transaction is completed with that token.  Wherever the process dies,
the next run asks SQLite for the last token and ends the prepared transaction as SQLite ended its own.
Its runs must not overlap: nothing here stops an earlier one from committing in SQLite after the next has asked.

``python -m jobs.sqlite_orders --warehouse URL --database FILE``
"""

from __future__ import annotations

import argparse
import sqlite3
import sys

import pyarrow as pa

from txntable.client.producer import Producer
from txntable.errors import TxnTableError
from txntable.warehouse import Warehouse

TOPIC = "orders"
TRANSACTIONAL_ID = "sqlite-orders"
ORDERS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("item", pa.string(), nullable=False)])

_TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, moved INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS two_phase_commit (transactional_id TEXT PRIMARY KEY, token TEXT NOT NULL);
"""


def make_tables(database: sqlite3.Connection) -> None:
    """Make the tables that the job needs; those that are there stay."""
    database.executescript(_TABLES)
    database.commit()


def move_orders(warehouse: Warehouse, database: sqlite3.Connection) -> int:
    """Move every order that was not moved yet; finish first what a killed run left.

    Parameters
    ----------
    warehouse : Warehouse
        Has the topic ``orders``.
    database : sqlite3.Connection
        With the tables of :func:`make_tables`.

    Returns
    -------
    int
        How many orders this run moved.

    Raises
    ------
    InvalidTxnStateError
        Someone aborted a prepared transaction that SQLite has committed: the orders of the last
        token have to be sent again by hand, and the token deleted from SQLite.
    CommitStateUnknownError, StoreUnavailableError
        Run the job again.
    """
    producer = warehouse.producer(TRANSACTIONAL_ID)
    producer.init_transactions(keep_prepared=True)
    producer.complete_transaction(last_token(database))
    orders = database.execute("SELECT id, item FROM orders WHERE NOT moved ORDER BY id").fetchall()
    if orders:
        _move(producer, database, orders)
    return len(orders)


def last_token(database: sqlite3.Connection) -> str | None:
    """Return the token of the last transaction that SQLite committed."""
    found = database.execute(
        "SELECT token FROM two_phase_commit WHERE transactional_id = ?", (TRANSACTIONAL_ID,)
    ).fetchone()
    return None if found is None else str(found[0])


def _move(producer: Producer, database: sqlite3.Connection, orders: list[tuple[int, str]]) -> None:
    producer.begin_transaction()
    for number, item in orders:
        producer.send(TOPIC, row={"id": number, "item": item})
    token = producer.prepare_transaction()
    # From here on SQLite's commit is the decision: prepared, the transaction waits for it, however long.
    database.executemany("UPDATE orders SET moved = 1 WHERE id = ?", [(number,) for number, _ in orders])
    database.execute("INSERT OR REPLACE INTO two_phase_commit VALUES (?, ?)", (TRANSACTIONAL_ID, token))
    database.commit()
    producer.complete_transaction(token)


def main(arguments: list[str] | None = None) -> None:
    """Create what is missing, and move the orders."""
    parser = argparse.ArgumentParser(prog="jobs.sqlite_orders", description=__doc__)
    parser.add_argument("--warehouse", required=True, metavar="URL", help="a warehouse; made when there is none")
    parser.add_argument("--database", required=True, metavar="FILE", help="an SQLite database with a table orders")
    given = parser.parse_args(arguments)
    database = sqlite3.connect(given.database)
    try:
        warehouse = Warehouse.create(given.warehouse, exist_ok=True)
        warehouse.admin().create_topic(TOPIC, partitions=2, schema=ORDERS, key=["id"], exist_ok=True)
        make_tables(database)
        sys.stdout.write(f"moved {move_orders(warehouse, database)} orders\n")
    except TxnTableError as error:
        sys.exit(f"error: {error.code} {error}")
    finally:
        database.close()


if __name__ == "__main__":
    main()
