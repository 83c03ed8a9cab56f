"""Records a second of one producer and of one consumer, records of 1 KB: ours, and confluent-kafka's on a broker.

A producer commits after each interval.  Beside it stand ours without transactions, which flushes as often, and
confluent-kafka's transactional producer.  A consumer reads what is there from its beginning; beside it stand pyarrow's
read of the very same files, and confluent-kafka's ``consume(500)``.  All in turns, on a page cache, as the broker does.
A broker is started here, and left out, with a line that says what it needs, where it cannot be.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset as ds

from benchmarks import kafka_broker
from benchmarks.contenders import Workload
from benchmarks.measurement import Figure, median_ratio, rounds
from txntable.format.layout import public_root
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(5)
INTERVALS_S = (0.1, 1.0, 30.0)
TURN_S = 5.0
PARTITIONS = 4
READ = int(os.environ.get("BENCH_RECORDS", "300000"))
_CONSUMED_AT_ONCE = 500
# Random bytes: nobody gains by a codec.
_VALUES = [os.urandom(1_000) for _ in range(1_000)]
_WRITTEN, _READ_TOPIC = "written", "read"
_KAFKA_NEEDS = "Kafka is left out; it needs {}"

Rate = Callable[[], float]
"""Records a second of one turn."""


def measure(folder: Path) -> list[Figure]:
    """Return the rate of each contender, and ratios of ours to its peers'."""
    warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
    for topic in (_WRITTEN, _READ_TOPIC):
        warehouse.admin().create_topic(topic, partitions=PARTITIONS)
    with ExitStack() as servers:
        address = _broker(servers, folder)
        figures = [figure for interval in INTERVALS_S for figure in _produced(warehouse, address, interval)]
        return [*figures, *_consumed(warehouse, address)]


def _broker(servers: ExitStack, folder: Path) -> str | None:
    if needs := kafka_broker.missing():
        print(_KAFKA_NEEDS.format(needs))
        return None
    broker = servers.enter_context(kafka_broker.kafka_broker(folder / "kafka"))
    for topic in (_WRITTEN, _READ_TOPIC):
        broker.create(Workload(topic, topic, 1, PARTITIONS))
    return broker.address


def _produced(warehouse: Warehouse, address: str | None, interval: float) -> Iterator[Figure]:
    seconds = max(TURN_S, interval)
    turns: dict[str, Rate] = {
        "txntable": partial(_timed, _transactional(warehouse, interval), interval, seconds),
        "txntable without transactions": partial(_timed, _at_least_once(warehouse), interval, seconds),
    }
    if address is not None:
        turns["Kafka"] = partial(_timed, _of_kafka(address, interval), interval, seconds)
    # A turn of half a minute is its own warm-up, but for the first.
    several = ROUNDS if seconds == TURN_S else max(1, ROUNDS // 2)
    yield from _compared(turns, f"produced, a commit each {interval:g} s", several)


def _consumed(warehouse: Warehouse, address: str | None) -> Iterator[Figure]:
    _fill(warehouse)
    root = f"{warehouse.url}/{public_root(_READ_TOPIC)}"
    files = [f"{root}/{path}" for path in sorted(warehouse.topic_log(_READ_TOPIC).public.refresh().files.paths())]
    arrow: Rate = partial(_read, lambda: ds.dataset(files, format="parquet").to_table().num_rows)
    batches: dict[str, Rate] = {"poll_batches": partial(_read, partial(_polled, warehouse, "poll_batches"))}
    yield from _compared({**batches, "pyarrow": arrow}, "consumed", ROUNDS)
    records: dict[str, Rate] = {"poll": partial(_read, partial(_polled, warehouse, "poll"))}
    if address is not None:
        _fill_kafka(address)
        records["Kafka"] = partial(_read, partial(_consume, address))
    yield from _compared(records, "consumed", ROUNDS)


def _compared(turns: dict[str, Rate], what: str, several: int) -> Iterator[Figure]:
    """Let all work in turns, one round before is not counted; tell the rates, and the first one's ratios to others."""
    rates: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(several + 1):
        for name, turn in turns.items():
            rate = turn()
            if number:
                rates[name].append(rate)
    for name, found in rates.items():
        yield Figure(f"{name}, {what}", median(found), "records/s", f"{min(found):,.0f}–{max(found):,.0f}")
    ours, *peers = rates
    for peer in peers:
        ratios = [mine / theirs for mine, theirs in zip(rates[ours], rates[peer], strict=True)]
        yield median_ratio(f"{ours} ÷ {peer}, {what}", ratios)


# -- producers ------------------------------------------------------------------------------

Program = tuple[Callable[[], object], Callable[[int, bytes], object], Callable[[], object]]
"""What begins an interval, what sends a record to a partition, and what ends the interval."""


def _timed(program: Program, interval: float, seconds: float) -> float:
    begin, send, commit = program
    began = time.perf_counter()
    sent, end = 0, began + seconds
    while (now := time.perf_counter()) < end:
        begin()
        until = min(now + interval, end)
        while time.perf_counter() < until:
            # The clock is asked once for a hundred records.
            for value in _VALUES[:100]:
                send(sent % PARTITIONS, value)
                sent += 1
        commit()
    return sent / (time.perf_counter() - began)


def _transactional(warehouse: Warehouse, interval: float) -> Program:
    producer = warehouse.producer(f"rate-{interval:g}", transaction_timeout_ms=900_000)
    producer.init_transactions()

    def send(partition: int, value: bytes) -> None:
        producer.send(_WRITTEN, value=value, partition=partition)

    return producer.begin_transaction, send, producer.commit_transaction


def _at_least_once(warehouse: Warehouse) -> Program:
    producer = warehouse.producer()

    def send(partition: int, value: bytes) -> None:
        producer.send(_WRITTEN, value=value, partition=partition)

    return lambda: None, send, producer.flush


def _of_kafka(address: str, interval: float) -> Program:
    producer = _kafka_producer(address, f"rate-{interval:g}")

    def send(partition: int, value: bytes) -> None:
        while True:
            try:
                producer.produce(f"{_WRITTEN}x0", value=value, partition=partition)
            except BufferError:
                producer.poll(0.01)
            else:
                return

    return producer.begin_transaction, send, producer.commit_transaction


def _kafka_producer(address: str, transactional_id: str) -> Any:
    client = importlib.import_module("confluent_kafka")
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 900_000, "log_level": 0}
    producer = client.Producer({"bootstrap.servers": address, **settings})
    producer.init_transactions()
    return producer


# -- consumers ------------------------------------------------------------------------------


def _read(read: Callable[[], int]) -> float:
    began = time.perf_counter()
    found = read()
    took = time.perf_counter() - began
    if found != READ:
        raise RuntimeError(f"there are other records than were written; found={found} written={READ}")
    return found / took


def _fill(warehouse: Warehouse) -> None:
    with warehouse.producer("fill") as producer:
        producer.init_transactions()
        for values in _portions():
            with producer.transaction():
                for number, value in enumerate(values):
                    producer.send(_READ_TOPIC, value=value, partition=number % PARTITIONS)


def _fill_kafka(address: str) -> None:
    producer = _kafka_producer(address, "fill")
    for values in _portions():
        producer.begin_transaction()
        for number, value in enumerate(values):
            producer.produce(f"{_READ_TOPIC}x0", value=value, partition=number % PARTITIONS)
        producer.commit_transaction()


def _portions() -> Iterator[Sequence[bytes]]:
    """Yield the values of one transaction after the other."""
    several = 50_000
    for start in range(0, READ, several):
        yield [_VALUES[number % len(_VALUES)] for number in range(start, min(start + several, READ))]


def _polled(warehouse: Warehouse, call: str) -> int:
    with warehouse.consumer() as consumer:
        consumer.assign([TopicPartition(_READ_TOPIC, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning()
        found, poll = 0, getattr(consumer, call)
        while found < READ:
            found += sum(map(len, poll(timeout_ms=1_000).values()))
        return found


def _consume(address: str) -> int:
    client = importlib.import_module("confluent_kafka")
    settings = {"group.id": f"rate-{time.monotonic_ns()}", "enable.auto.commit": False, "log_level": 0}
    consumer = client.Consumer({"bootstrap.servers": address, "isolation.level": "read_committed", **settings})
    try:
        consumer.assign([client.TopicPartition(f"{_READ_TOPIC}x0", number, 0) for number in range(PARTITIONS)])
        found = 0
        while found < READ:
            found += sum(1 for message in consumer.consume(_CONSUMED_AT_ONCE, 1.0) if message.value() is not None)
        return found
    finally:
        consumer.close()
