"""What happened in a world before its run: enough, and long enough ago, for upkeep to have work.

One process did it, with nothing in its way; it is part of the operation log.
"""

from __future__ import annotations

from tests.simulation.bank import ACCOUNTS, MONEY
from tests.simulation.copying import IN
from tests.simulation.journal import Draft, Witness
from tests.simulation.keyed import KEYED, KEYS
from tests.simulation.recorded import RecordedProducer
from txntable.warehouse.warehouse import Warehouse

AGO_MS = 180_000


def money_moved(warehouse: Warehouse, witness: Witness) -> None:
    """Two transactions, one that was aborted in between, and a plain append."""

    def transfer(number: int) -> list[Draft]:
        return [
            Draft(topic, witness.name("v"), ACCOUNTS[number], sign * (10 + number), number % 2)
            for topic, sign in zip(MONEY, (1, -1), strict=True)
        ]

    producer = _transactional(warehouse, witness)
    for number in range(3):
        producer.begin()
        producer.send(transfer(number))
        if number == 1:
            producer.abort()
        else:
            producer.commit()
    plain = RecordedProducer(warehouse.producer(), warehouse, witness)
    plain.send([Draft(MONEY[0], witness.name("v"), "ann", sign, 0) for sign in (1, -1)], together=True)


def keys_written(warehouse: Warehouse, witness: Witness) -> None:
    """All keys twice, the second time in a transaction, one of them dead since."""
    plain = RecordedProducer(warehouse.producer(), warehouse, witness)
    plain.send([Draft(topic, witness.name("v"), key) for topic in KEYED for key in KEYS])
    producer = _transactional(warehouse, witness)
    producer.begin()
    producer.send([Draft(topic, witness.name("v"), key) for topic in KEYED for key in KEYS[:3]])
    producer.commit()
    producer.begin()
    producer.send([Draft(topic, "", KEYS[0], dead=True) for topic in KEYED[:2]])
    producer.commit()


def source_filled(warehouse: Warehouse, witness: Witness) -> None:
    """Some records to copy, and some that were aborted."""
    producer = _transactional(warehouse, witness)
    for number in range(3):
        producer.begin()
        producer.send([Draft(IN, witness.name("v"), f"past/{key}", partition=key) for key in (0, 1)])
        if number == 1:
            producer.abort()
        else:
            producer.commit()


def _transactional(warehouse: Warehouse, witness: Witness) -> RecordedProducer:
    producer = RecordedProducer(warehouse.producer("past", transaction_timeout_ms=60_000), warehouse, witness)
    producer.init()
    return producer
