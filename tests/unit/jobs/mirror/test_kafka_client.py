"""Where a mirror to Kafka stands, with another client in confluent-kafka's place: what is waited for, what is not."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from txntable.errors import InvalidRequestError, TransactionAbortableError
from txntable.jobs.mirror.kafka_client import KafkaTarget
from txntable.jobs.mirror.positions import Position

COORDINATOR = ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"]


class Refused:
    """An error as confluent-kafka has them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return f"broker: {self._name}"


class Refusal(Exception):
    """What confluent-kafka raises."""


class Consumer:
    """Refuses as it is told, and then answers."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.of_partition: list[str] = []

    def committed(self, partitions: list[Any], timeout: float) -> list[Any]:
        assert timeout > 0
        if self.refusals:
            raise Refusal(Refused(self.refusals.pop(0)))
        error = Refused(self.of_partition.pop(0)) if self.of_partition else None
        return [SimpleNamespace(partition=number, offset=7, metadata="it", error=error) for _, number in partitions]


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Consumer:
    found = Consumer()
    module = SimpleNamespace(
        Consumer=lambda _: found,
        Producer=lambda _: None,
        TopicPartition=lambda topic, number: (topic, number),
        KafkaException=Refusal,
    )
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)
    return found


@pytest.fixture
def target(consumer: Consumer) -> KafkaTarget:
    return KafkaTarget("orders", "mirror", {"bootstrap.servers": "127.0.0.1:1"}, ManualEnvironment())


def test_positions_are_found_when_the_coordinator_was_on_its_way(target: KafkaTarget, consumer: Consumer) -> None:
    consumer.refusals = [*COORDINATOR]
    consumer.of_partition = [*COORDINATOR]

    assert target.positions(2) == {0: Position(7, "it"), 1: Position(7, "it")}
    assert not consumer.refusals
    assert not consumer.of_partition


def test_error_is_raised_when_no_coordinator_comes_in_time(target: KafkaTarget, consumer: Consumer) -> None:
    consumer.refusals = ["NOT_COORDINATOR"] * 10_000

    with pytest.raises(TransactionAbortableError, match="error=NOT_COORDINATOR"):
        target.positions(1)

    assert consumer.refusals


@pytest.mark.parametrize(
    ("name", "kind"), [("GROUP_AUTHORIZATION_FAILED", InvalidRequestError), ("_TIMED_OUT", TransactionAbortableError)]
)
def test_positions_that_are_refused_for_good_are_asked_for_once(
    target: KafkaTarget, consumer: Consumer, name: str, kind: type[Exception]
) -> None:
    consumer.refusals = [name]

    with pytest.raises(kind, match=f"error={name}"):
        target.positions(1)

    assert not consumer.refusals
