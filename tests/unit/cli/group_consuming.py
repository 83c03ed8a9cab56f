"""What tests of ``txntable consume --group`` share: a topic, a run, an interruption, and what the group has."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli import consume_run
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

TOPIC = "numbers"


def send(warehouse: Warehouse, *values: str, partition: int = 0) -> None:
    with warehouse.producer() as producer:
        for value in values:
            producer.send(TOPIC, value=value.encode(), partition=partition)


def committed(warehouse: Warehouse) -> dict[int, int]:
    found = warehouse.admin().list_consumer_group_offsets("g")
    return {each.partition: offset.offset for each, offset in found.items() if offset is not None}


def members(warehouse: Warehouse) -> int:
    (group,) = warehouse.admin().describe_consumer_groups(["g"]).values()
    return len(group.members)


def consume(call: Call, *options: str) -> list[str]:
    result = call("consume", TOPIC, "--group", "g", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def consume_interrupted(call: Call, *options: str) -> list[str]:
    result = call("consume", TOPIC, "--group", "g", *options)
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    return result.stdout.splitlines()


def polled(consumer: Consumer, run: consume_run.ConsumeRun) -> dict[TopicPartition, list[ConsumerRecord]]:
    """What the run's first poll with records returns: the one before says where the partitions begin."""
    run._print(consumer.poll(), lambda record: b"line")
    assert run._begin()
    return consumer.poll()


def interrupt_after(monkeypatch: pytest.MonkeyPatch, polls: int, *, inside: bool = False) -> None:
    """Let the next poll after some be interrupted; `inside`: when it has moved the positions already."""
    poll, made = Consumer.poll, iter(range(polls + 1))

    def interrupted(self: Consumer, timeout_ms: float, max_records: int) -> object:
        last = next(made) == polls
        found = None if last and not inside else poll(self, timeout_ms=timeout_ms, max_records=max_records)
        if last:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Consumer, "poll", interrupted)
