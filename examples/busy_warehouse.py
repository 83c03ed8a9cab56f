"""A warehouse on a busy day, to look at: transactions in every state, groups that wait, a producer that was fenced.

``python -m examples.busy_warehouse ./busy`` plays eight hours of a shop in as many seconds, and leaves two
transactions open, which hold readers back.  Then look::

    txntable --warehouse ./busy status
    txntable --warehouse ./busy report busy.html
    txntable --warehouse ./busy ui
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import txntable
from txntable import TopicPartition
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment

HOUR_MS = 1_000
"""How long an hour of the story takes, by default."""
SHIPMENT = pa.schema(
    [
        pa.field("order_id", pa.string(), nullable=False),
        pa.field("carrier", pa.string()),
        pa.field("weight_kg", pa.float64()),
    ]
)
LEAST_TIMEOUT_MS = 1_000
_TOWNS = ("Lisboa", "Zürich", "Kraków", "Malmö", "Thessaloníki", "Gdańsk", "Ljubljana")
_CARRIERS = ("DHL", "Posti", "GLS", "SEUR")


@dataclass(slots=True)
class Day:
    """The story.

    Parameters
    ----------
    warehouse : Warehouse
        An empty one.
    wait_ms : callable
        Lets so many milliseconds pass.
    hour_ms : int
        How many an hour of the story takes.
    """

    warehouse: txntable.Warehouse
    wait_ms: Callable[[int], None]
    hour_ms: int = HOUR_MS
    _number: int = 1000

    def play(self) -> list[Producer]:
        """Play the day; return the producers whose transactions it leaves open."""
        self._open_shop()
        chance = random.Random(11)
        orders, payments = self._producer("orders-eu"), self._producer("payments-eu")
        shipments, load = self._producer("shipments"), self._producer("catalogue-load")
        for hour in range(8):
            self._sell(orders, 3 + hour % 3, chance)
            self._pass(1 / 8)
            self._settle(payments, chance, abort=hour == 4)
            self._pass(1 / 8)
            self._ship(shipments, chance)
            if hour == 1:
                self._load(load, chance)
            if hour == 3:
                payments = self._fence(payments)
            if hour == 5:
                self._time_out(chance)
            if hour == 6:
                self._abort_by_hand()
            self._read(hour)
            self._pass(1 / 2)
            # What the coordinator job does every few minutes.
            self.warehouse.complete()
        return self._leave_open(orders, chance)

    def _pass(self, hours: float) -> None:
        self.wait_ms(int(hours * self.hour_ms))

    def _open_shop(self) -> None:
        admin = self.warehouse.admin()
        admin.create_topic("orders", partitions=4)
        admin.create_topic("payments", partitions=2)
        admin.create_topic("shipments", partitions=2, schema=SHIPMENT, key=["order_id"])
        admin.create_topic("catalogue", partitions=1, config={"cleanup.policy": "compact"})
        admin.create_topic("returns", partitions=1)

    def _producer(self, transactional_id: str, hours: float = 1000) -> Producer:
        # A timeout as long as the story's clock says, within what the warehouse allows.
        timeout_ms = max(LEAST_TIMEOUT_MS, min(900_000, int(hours * self.hour_ms)))
        producer = self.warehouse.producer(transactional_id, transaction_timeout_ms=timeout_ms)
        producer.init_transactions()
        return producer

    def _next(self) -> str:
        self._number += 1
        return f"order-{self._number}"

    def _sell(self, producer: Producer, count: int, chance: random.Random) -> None:
        with producer.transaction() as transaction:
            for _ in range(count):
                town, cents = chance.choice(_TOWNS), chance.randrange(500, 20_000)
                value = f'{{"town": "{town}", "total": {cents / 100:.2f}, "currency": "EUR"}}'
                transaction.send("orders", key=self._next().encode(), value=value.encode())

    def _settle(self, producer: Producer, chance: random.Random, *, abort: bool) -> None:
        producer.begin_transaction()
        for _ in range(2):
            number = chance.randrange(1001, self._number + 1)
            producer.send("payments", key=f"order-{number}".encode(), value=b'{"state": "paid"}')
        producer.flush()
        self._pass(1 / 16)
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    def _ship(self, producer: Producer, chance: random.Random) -> None:
        with producer.transaction() as transaction:
            number, weight = chance.randrange(1001, self._number + 1), round(chance.uniform(0.2, 18), 1)
            row = {"order_id": f"order-{number}", "carrier": chance.choice(_CARRIERS), "weight_kg": weight}
            transaction.send("shipments", row=row)

    def _load(self, producer: Producer, chance: random.Random) -> None:
        with producer.transaction(batch_id="2026-11-25") as transaction:
            for article in range(40):
                price = f"{chance.randrange(199, 9_900) / 100:.2f}"
                transaction.send("catalogue", key=f"article-{article}".encode(), value=price.encode())

    def _fence(self, first: Producer) -> Producer:
        """Let a second instance take an id while the first one is in a transaction."""
        first.begin_transaction()
        first.send("payments", key=b"order-1001", value=b'{"state": "paid twice?"}')
        first.flush()
        self._pass(1 / 4)
        return self._producer("payments-eu")

    def _time_out(self, chance: random.Random) -> None:
        # A quarter of an hour, or the shortest that there is: a second.
        hours = max(1 / 4, LEAST_TIMEOUT_MS / self.hour_ms)
        till = self._producer("till-17", hours=hours)
        till.begin_transaction()
        till.send("orders", key=self._next().encode(), value=b'{"town": "?", "total": 0.00}')
        till.flush()
        self._pass(2 * hours)
        self.warehouse.complete()

    def _abort_by_hand(self) -> None:
        stuck = self._producer("returns-import")
        stuck.begin_transaction()
        stuck.send("returns", key=b"order-1002", value=b'{"reason": "too small"}')
        stuck.flush()
        self._pass(1 / 8)
        self.warehouse.admin().abort_transaction(transactional_id="returns-import")

    def _read(self, hour: int) -> None:
        admin = self.warehouse.admin()
        for partition in range(4):
            with self.warehouse.consumer() as consumer:
                place = TopicPartition("orders", partition)
                consumer.assign([place])
                end = consumer.last_stable_offset(place)
            admin.alter_consumer_group_offsets("billing", {place: end})
            if hour < 3:
                admin.alter_consumer_group_offsets("fraud-watch", {place: end})
        admin.alter_consumer_group_offsets("dashboards", {TopicPartition("payments", 0): 1})

    def _leave_open(self, orders: Producer, chance: random.Random) -> list[Producer]:
        """Leave a transaction that holds readers back, and one that waits for its token."""
        export = self._producer("export-to-erp")
        export.begin_transaction()
        for partition in (0, 2):
            export.send("orders", key=self._next().encode(), value=b'{"town": "Lisboa"}', partition=partition)
        export.flush()
        self._pass(1 / 16)
        bank = self._producer("bank-transfers")
        bank.begin_transaction()
        bank.send("payments", key=b"order-1003", value=b'{"state": "booked"}', partition=1)
        bank.prepare_transaction()
        for _ in range(2):
            self._pass(1 / 16)
            self._sell(orders, 6, chance)
        self._read(7)
        return [export, bank]


def main() -> None:
    """Play the day in a new folder."""
    parser = argparse.ArgumentParser(prog="examples.busy_warehouse", description=__doc__)
    parser.add_argument("folder", help="made; must not hold a warehouse")
    folder = parser.parse_args().folder
    environment = SystemEnvironment()
    left = Day(txntable.Warehouse.create(folder), environment.sleep_ms).play()
    sys.stdout.write(f"{len(left)} transactions are left open; txntable --warehouse {folder} status\n")


if __name__ == "__main__":
    main()
