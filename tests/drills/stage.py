"""A warehouse under a drill: producers that write down what they were told, and what its readers see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.drills.runbook import Shell
from tests.simulation.site import TWO_COLUMNS
from txntable.errors import TxnTableError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

OLD, NEW = "s3://my-lake/warehouse", "s3://my-lake-2/warehouse"
TOPICS = ("orders", "paid")


@dataclass
class Writer:
    """A producer, and the names of the transactions that it was told are committed."""

    producer: Producer
    name: str
    told: list[str] = field(default_factory=list)
    tried: int = 0

    def transact(self) -> None:
        """Commit one transaction over both topics, and with it a group's offset."""
        self.tried += 1
        name = f"{self.name} {self.tried}"
        self.producer.begin_transaction()
        for amount, topic in enumerate(TOPICS):
            self.producer.send(topic, row={"account": name, "amount": amount})
        self.producer.send_offsets_to_transaction({TopicPartition("orders", 0): self.tried}, self.name)
        self.producer.commit_transaction()
        self.told.append(name)

    def try_to(self, times: int = 3) -> list[TxnTableError]:
        """Go on as a process does that nobody has told anything; return what it was told instead of a commit."""
        refused = []
        for _ in range(times):
            try:
                self.transact()
            except TxnTableError as error:
                refused.append(error)
                with suppress(TxnTableError):
                    self.producer.abort_transaction()
        return refused


@dataclass
class Stage:
    """The place of a drill.

    Attributes
    ----------
    options : dict of str to str
        The store's.
    client : object
        botocore's client of S3, for what happens to a bucket.
    shell : Shell
        Runs the runbook.
    """

    options: dict[str, str]
    client: Any
    shell: Shell

    def create(self, url: str = OLD) -> None:
        """Create the warehouse and its topics."""
        admin = Warehouse.create(url, self.options).admin()
        for topic in TOPICS:
            admin.create_topic(topic, partitions=1, schema=TWO_COLUMNS)

    def writer(self, name: str, url: str = OLD, **options: str) -> Writer:
        """Return a new process's producer, which has its id."""
        producer = Warehouse.open(url, {**self.options, **options}).producer(name)
        producer.init_transactions()
        return Writer(producer, name)

    def seen(self, url: str = OLD) -> list[str]:
        """Return the committed transactions that a new process sees, each whole, in the order of their offsets."""
        warehouse = Warehouse.open(url, self.options)
        read = {topic: warehouse.read_arrow(topic, columns=["account"]).read_all()["account"] for topic in TOPICS}
        orders, paid = (read[topic].to_pylist() for topic in TOPICS)
        assert sorted(orders) == sorted(paid), "a transaction in halves"
        return list(map(str, orders))

    def offsets(self, group: str, url: str = OLD) -> int | None:
        """Return how far a group is."""
        found = Warehouse.open(url, self.options).admin().list_consumer_group_offsets(group)
        place = found.get(TopicPartition("orders", 0))
        return None if place is None else place.offset

    def versions(self, bucket: str = "my-lake") -> Iterator[dict[str, Any]]:
        """Yield the versions of a bucket's objects, and its delete markers."""
        for page in self.client.get_paginator("list_object_versions").paginate(Bucket=bucket):
            yield from page.get("Versions", [])
            yield from page.get("DeleteMarkers", [])

    def lose(self, bucket: str = "my-lake") -> None:
        """Delete every object, as a mistaken command does; a versioned bucket keeps what it had."""
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for found in page.get("Contents", []):
                self.client.delete_object(Bucket=bucket, Key=found["Key"])
