"""Which partition a record goes to: by key as Kafka, without a key, in turn, by the user's own function."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.producer.producing import accounts, row
from txntable.errors import InvalidRequestError
from txntable.format.key import partition_of
from txntable.format.topic import TopicSettings
from txntable.producer.partitioner import Placement, StickyPartition, TopicPartitioner

KEYED = TopicSettings("t", "a" * 32, 8, TWO_COLUMNS, ("account",))
OPTIONAL_KEY = TopicSettings("t", "a" * 32, 8, pa.schema([pa.field("account", pa.string())]), ("account",))
WITHOUT_KEY = TopicSettings("t", "a" * 32, 8, TWO_COLUMNS)


def partitioner_of(partitioner="default", *, ignore_keys: bool = False, batch_size: int = 100, seed: int = 1):
    sticky = StickyPartition(ManualEnvironment(seed=seed), batch_size)
    return TopicPartitioner(partitioner, sticky, ignore_keys=ignore_keys)


def table_of(accounts: list[str | None], schema: pa.Schema = TWO_COLUMNS) -> pa.RecordBatch:
    columns = {"account": pa.array(accounts, pa.string()), "amount": pa.array(range(len(accounts)), pa.int64())}
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], names=schema.names)


def sizes_of(*sizes: int) -> np.ndarray:
    return np.array(sizes, np.int64)


@pytest.mark.parametrize("key", ["ann", "bob", "", "Zürich", "x" * 100])
def test_record_with_a_key_goes_to_the_partition_of_its_murmur2_one_by_one_and_in_tables(key: str) -> None:
    wanted = partition_of(key.encode(), 8)

    one = partitioner_of().place(KEYED, (key, 1), 10)
    many, keyed = partitioner_of().place_all(KEYED, table_of([key, key]), sizes_of(10, 10))

    assert one == (wanted, Placement.KEYED)
    assert many.tolist() == [wanted, wanted]
    assert keyed.all()


@pytest.mark.parametrize("settings", [WITHOUT_KEY, OPTIONAL_KEY])
def test_records_without_a_key_stay_on_one_partition_until_its_batch_is_full(settings: TopicSettings) -> None:
    partitioner = partitioner_of(batch_size=100)

    placed = [partitioner.place(settings, (None, 1), 40)[0] for _ in range(9)]

    assert [len(set(placed[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]
    assert placed[0] != placed[3] != placed[6]


def test_records_without_a_key_go_on_with_another_partition_after_a_flush() -> None:
    partitioner = partitioner_of()
    before = partitioner.place(WITHOUT_KEY, (None, 1), 1)[0]

    partitioner.sticky.close_batch()

    assert partitioner.place(WITHOUT_KEY, (None, 1), 1)[0] != before


def test_many_short_producers_spread_records_without_a_key_over_all_partitions() -> None:
    first = {partitioner_of(seed=seed).place(WITHOUT_KEY, (None, 1), 1)[0] for seed in range(100)}

    assert first == set(range(8))


def test_records_without_a_key_are_placed_in_a_table_as_one_by_one() -> None:
    sizes = [random.Random(7).randrange(0, 60) for _ in range(200)]
    accounts = [None if number % 3 else f"k{number}" for number in range(200)]
    one, many = partitioner_of(seed=5), partitioner_of(seed=5)

    singly = [one.place(OPTIONAL_KEY, (name,), size)[0] for name, size in zip(accounts, sizes, strict=True)]
    at_once, keyed = many.place_all(OPTIONAL_KEY, table_of(accounts, OPTIONAL_KEY.schema), sizes_of(*sizes))

    assert at_once.tolist() == singly
    assert keyed.tolist() == [name is not None for name in accounts]


def test_keys_are_not_looked_at_when_the_producer_ignores_them() -> None:
    partitioner = partitioner_of(ignore_keys=True)

    placed = [partitioner.place(KEYED, (name, 1), 1) for name in ("ann", "bob", "cid", "dan")]

    assert len(set(placed)) == 1
    assert placed[0][1] is Placement.CHOSEN


def test_round_robin_takes_the_next_partition_for_each_record_keyed_or_not() -> None:
    partitioner = partitioner_of("round_robin")

    singly = [partitioner.place(KEYED, ("ann", 1), 1) for _ in range(10)]
    at_once, keyed = partitioner.place_all(KEYED, table_of(["ann"] * 10), sizes_of(*[1] * 10))

    assert [partition for partition, _ in singly] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
    assert at_once.tolist() == [2, 3, 4, 5, 6, 7, 0, 1, 2, 3]
    assert {placement for _, placement in singly} == {Placement.CHOSEN}
    assert not keyed.any()


def test_own_partitioner_is_asked_for_every_record_with_topic_key_and_partitions() -> None:
    asked: list[tuple[str, bytes | None, int]] = []

    def choose(topic: str, key: bytes | None, partitions: int) -> int:
        asked.append((topic, key, partitions))
        return len(asked) - 1

    partitioner = partitioner_of(choose)
    partitioner.place(OPTIONAL_KEY, ("ann",), 1)
    placed, _ = partitioner.place_all(OPTIONAL_KEY, table_of(["bob", None, ""], OPTIONAL_KEY.schema), sizes_of(1, 1, 1))

    assert asked == [("t", key, 8) for key in (b"ann", b"bob", None, b"")]
    assert placed.tolist() == [1, 2, 3]


@pytest.mark.parametrize("answer", [-1, 2, None, "0", True, 1.0])
@pytest.mark.parametrize("rows", [1, 2])
def test_answer_that_is_no_partition_is_refused_and_nothing_is_buffered(site: Site, answer: object, rows: int) -> None:
    answers: list[object] = [0] * (rows - 1) + [answer]
    producer = site.open().producer(partitioner=lambda *_: answers.pop(0))  # type: ignore[arg-type]

    with pytest.raises(InvalidRequestError, match="partitioner") as refused:
        producer.send("t", rows=pa.Table.from_pylist([row("a"), row("b")][:rows], TWO_COLUMNS))

    assert refused.value.facts["partition"] == repr(answer)
    producer.close()
    assert accounts(site, "t") == []


JOINED = [
    (Placement.KEYED, Placement.KEYED, Placement.KEYED),
    (Placement.KEYED, Placement.WITHOUT_KEY, Placement.KEYED),
    (Placement.KEYED, Placement.CHOSEN, None),
    (Placement.CHOSEN, Placement.CHOSEN, Placement.CHOSEN),
    (Placement.CHOSEN, Placement.WITHOUT_KEY, Placement.CHOSEN),
    (Placement.CHOSEN, Placement.KEYED, None),
    (Placement.WITHOUT_KEY, Placement.WITHOUT_KEY, Placement.WITHOUT_KEY),
    (Placement.WITHOUT_KEY, Placement.KEYED, Placement.KEYED),
    (Placement.WITHOUT_KEY, Placement.CHOSEN, Placement.CHOSEN),
]


@pytest.mark.parametrize(("first", "then", "joined"), JOINED)
def test_records_share_a_segment_as_their_placements_allow(
    first: Placement, then: Placement, joined: Placement | None
) -> None:
    assert first.joined(then) is joined


@pytest.mark.parametrize(
    ("settings", "send", "counted"),
    [
        ({}, {}, True),
        ({}, {"partition": 1}, False),
        ({"partitioner": "round_robin"}, {}, False),
        ({"partitioner": lambda *_: 1}, {}, False),
        ({"partitioner_ignore_keys": True}, {}, False),
    ],
)
def test_segment_tells_the_partition_count_only_when_murmur2_placed_its_keys(
    site: Site, settings: dict, send: dict, counted: bool
) -> None:
    warehouse = site.open()
    with warehouse.producer(**settings) as producer:
        producer.send("t", row=row("ann"), **send)
        producer.flush()
        producer.send("t", rows=pa.Table.from_pylist([row("ann")], TWO_COLUMNS), **send)

    adds = list(warehouse.topic_log("t").segments.refresh().files)
    assert [add.tag is not None and "partition_count" in add.tag for add in adds] == [counted, counted]


def test_flush_moves_records_without_a_key_to_another_partition_in_a_producer(site: Site) -> None:
    producer = site.open().producer()
    places = []
    for _ in range(4):
        metadata = producer.send("raw", b"v")
        producer.flush()
        places.append(metadata.partition)

    assert places in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_chosen_partition_wins_over_every_partitioner(site: Site) -> None:
    with site.open().producer(partitioner=lambda *_: 0) as producer:
        producer.send("t", row=row("ann"), partition=1)

    assert [record["_partition"] for record in published(site.open(), "t")] == [1]
