"""The transactional message: money moves from an account in one database to an account in another, exactly once.

There are two SQLite databases, two programs, and one topic between them.  The sender takes the money and sends the
message, or does neither; the receiver adds the money of each message once.  Kill either at any point and run it again.

* **Sender**: two-phase commit.  The message is sent in a transaction that is then *prepared*: from then on it waits for
  SQLite, however long that takes.  SQLite takes the money and stores the transaction's token in one commit, and *that
  commit is the decision*.  A sender that starts asks SQLite for the last token, and ends the prepared transaction the
  way SQLite ended its own.
* **Receiver**: the position in the topic is stored in SQLite, in the commit that adds the money.  A receiver that
  starts continues from there.

Two runs of a program may overlap: the later sender takes over the ``run``, and of two receivers one finds that the
position has moved.

``python -m examples.transfers --folder bank --pay ann bob 30`` creates what is missing, places an order, sends,
receives, and prints all balances; their sum is always the same.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from pathlib import Path

import pyarrow as pa

import txntable
from txntable import ConsumerRecord, TopicPartition
from txntable.errors import TxnTableError
from txntable.producer.producer import Producer

TOPIC = "transfers"
TRANSACTIONAL_ID = "bank-of-the-sender"
MESSAGE = pa.schema([pa.field("payee", pa.string(), nullable=False), pa.field("amount", pa.int64(), nullable=False)])

_ACCOUNTS = "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);"
_SENDER = f"""{_ACCOUNTS}
CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY, payer TEXT NOT NULL, payee TEXT NOT NULL, amount INTEGER NOT NULL CHECK (amount > 0),
    state TEXT NOT NULL DEFAULT 'ordered');
CREATE TABLE IF NOT EXISTS two_phase_commit (run INTEGER NOT NULL, token TEXT);
INSERT INTO two_phase_commit SELECT 0, NULL WHERE NOT EXISTS (SELECT * FROM two_phase_commit);
"""
_RECEIVER = f"""{_ACCOUNTS}
CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, next_offset INTEGER NOT NULL);
"""


class OvertakenError(Exception):
    """Another run of the same program has taken over; this one has changed nothing since."""


# -- the sender -----------------------------------------------------------------------------


def send_transfers(warehouse: txntable.Warehouse, bank: sqlite3.Connection) -> None:
    """Execute every open order, after finishing what a killed run left.

    Parameters
    ----------
    warehouse : Warehouse
        Has the topic.
    bank : sqlite3.Connection
        The sender's.

    Raises
    ------
    OvertakenError, ProducerFencedError
        A later run has taken over.
    InvalidTxnStateError
        An admin aborted a prepared transaction that SQLite has committed: send its message again by hand.
    CommitStateUnknownError, StoreUnavailableError
        Run it again.
    """
    producer = warehouse.producer(TRANSACTIONAL_ID)
    producer.init_transactions(keep_prepared=True)
    run, token = _take_over(bank)
    producer.complete_transaction(token)
    orders = bank.execute("SELECT id, payer, payee, amount FROM orders WHERE state = 'ordered' ORDER BY id").fetchall()
    for order in orders:
        _execute(producer, bank, run, order)


def _take_over(bank: sqlite3.Connection) -> tuple[int, str | None]:
    """Begin a run: from here on no earlier run can commit in the database, so this token is the last one."""
    ((run, token),) = bank.execute("UPDATE two_phase_commit SET run = run + 1 RETURNING run, token").fetchall()
    bank.commit()
    return run, token


def _execute(producer: Producer, bank: sqlite3.Connection, run: int, order: tuple[int, str, str, int]) -> None:
    number, payer, payee, amount = order
    producer.begin_transaction()
    producer.send(TOPIC, row={"payee": payee, "amount": amount})
    token = producer.prepare_transaction()
    paid = bank.execute(
        "UPDATE accounts SET balance = balance - :amount WHERE name = :payer AND balance >= :amount",
        {"payer": payer, "amount": amount},
    )
    if paid.rowcount == 0:
        # Not enough money: neither the money nor the message is sent.
        bank.rollback()
        producer.abort_transaction()
        bank.execute("UPDATE orders SET state = 'refused' WHERE id = ?", (number,))
        bank.commit()
        return
    bank.execute("UPDATE orders SET state = 'executed' WHERE id = ?", (number,))
    if bank.execute("UPDATE two_phase_commit SET token = ? WHERE run = ?", (token, run)).rowcount == 0:
        bank.rollback()
        raise OvertakenError("a later run of the sender has taken over")
    bank.commit()  # the decision
    producer.complete_transaction(token)


# -- the receiver ---------------------------------------------------------------------------


def receive_transfers(warehouse: txntable.Warehouse, bank: sqlite3.Connection) -> None:
    """Add the money of every message that has not been received yet.

    Parameters
    ----------
    warehouse : Warehouse
        Has the topic.
    bank : sqlite3.Connection
        The receiver's.

    Raises
    ------
    OvertakenError
        Another receiver has processed these messages; this one can be run again.
    OffsetOutOfRangeError
        The topic no longer holds messages that were not received.
    """
    (topic,) = warehouse.admin().describe_topics([TOPIC])
    with warehouse.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(topic.settings.partitions)])
        for partition in consumer.assignment():
            consumer.seek(partition, _position(bank, partition.partition))
        while messages := consumer.poll():
            for partition, records in messages.items():
                _receive(bank, partition.partition, records)


def _position(bank: sqlite3.Connection, partition: int) -> int:
    bank.execute("INSERT OR IGNORE INTO positions VALUES (?, 0)", (partition,))
    bank.commit()
    (offset,) = bank.execute("SELECT next_offset FROM positions WHERE partition = ?", (partition,)).fetchone()
    return int(offset)


def _receive(bank: sqlite3.Connection, partition: int, records: list[ConsumerRecord]) -> None:
    """Add the money of some messages, and move the position over them, in one commit."""
    for record in records:
        bank.execute(
            "INSERT INTO accounts VALUES (:payee, :amount) ON CONFLICT DO UPDATE SET balance = balance + :amount",
            record.row,
        )
    moved = bank.execute(
        "UPDATE positions SET next_offset = ? WHERE partition = ? AND next_offset <= ?",
        (records[-1].offset + 1, partition, records[0].offset),
    )
    if moved.rowcount == 0:
        bank.rollback()
        raise OvertakenError("another receiver has added these messages")
    bank.commit()


# -- running it -----------------------------------------------------------------------------


def open_sender(path: str) -> sqlite3.Connection:
    """Return the sender's database, with the tables that it needs."""
    return _opened(path, _SENDER)


def open_receiver(path: str) -> sqlite3.Connection:
    """Return the receiver's database, with the tables that it needs."""
    return _opened(path, _RECEIVER)


def _opened(path: str, tables: str) -> sqlite3.Connection:
    bank = sqlite3.connect(path)
    bank.executescript(tables)
    return bank


def balances(bank: sqlite3.Connection) -> dict[str, int]:
    """Return what is in each account."""
    return dict(bank.execute("SELECT name, balance FROM accounts ORDER BY name"))


def main(arguments: list[str] | None = None) -> None:
    """Create what is missing, take an order, and run both programs."""
    parser = argparse.ArgumentParser(prog="examples.transfers", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", required=True, type=Path, help="for the warehouse and the two databases")
    parser.add_argument("--pay", nargs=3, metavar=("PAYER", "PAYEE", "AMOUNT"), help="ann has 100 at the beginning")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    sender, receiver = open_sender(given.folder / "sender.db"), open_receiver(given.folder / "receiver.db")
    try:
        warehouse = txntable.Warehouse.create(str(given.folder / "warehouse"), exist_ok=True)
        warehouse.admin().create_topic(TOPIC, partitions=2, schema=MESSAGE, key=["payee"], exist_ok=True)
        sender.execute("INSERT OR IGNORE INTO accounts VALUES ('ann', 100)")
        if given.pay is not None:
            sender.execute("INSERT INTO orders (payer, payee, amount) VALUES (?, ?, ?)", given.pay)
        sender.commit()
        send_transfers(warehouse, sender)
        receive_transfers(warehouse, receiver)
        everything = {"sender": balances(sender), "receiver": balances(receiver)}
        total = sum(sum(accounts.values()) for accounts in everything.values())
        sys.stdout.write("".join(f"{bank}: {accounts}\n" for bank, accounts in everything.items()) + f"sum: {total}\n")
    except TxnTableError as error:
        sys.exit(f"error: {error.code} {error}")
    finally:
        sender.close()
        receiver.close()


if __name__ == "__main__":
    main()
