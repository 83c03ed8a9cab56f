"""Where reads of several topics end: no transaction is read in part, and nothing waits that need not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.site import Site
from txntable.consumer.consumer import Consumer
from txntable.consumer.followed_topic import FollowedTopic
from txntable.consumer.joint_ends import TopicRanges, joint_ends
from txntable.errors import IllegalStateError
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.format.topic import TopicSettings
from txntable.partition.topic_view import Bounds, TopicView
from txntable.producer.producer import Producer
from txntable.segments.segment_columns import SegmentColumns
from txntable.warehouse.warehouse import Warehouse

SIZE = 10
"""Offsets of each segment here."""
LATEST = 1_000

Commits = Sequence[Sequence[int]]
"""Of each partition of a topic the decisions of its segments, one after the other."""


def view(commits: Commits, merged_through: int = 0) -> TopicView:
    rows = [(partition, at, commit) for partition, one in enumerate(commits) for at, commit in enumerate(one)]
    numbers = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    partition, base, commit = numbers[0], numbers[1] * SIZE, numbers[2]
    files = pa.table({"path": [str(number) for number in range(len(rows))]})
    columns = SegmentColumns(files, np.arange(len(rows)), partition, base, base + SIZE - 1, base, commit)
    bounds = {
        number: Bounds(0, len(one) * SIZE, len(one) * SIZE, len(one) * SIZE) for number, one in enumerate(commits)
    }
    settings = TopicSettings("t", "0" * 32, len(commits), pa.schema([pa.field("value", pa.binary())]))
    return TopicView(settings, IsolationLevel.READ_COMMITTED, "t", 1, None, columns, bounds, LATEST, merged_through)


def ends(*topics: tuple[Commits, Sequence[int]], position: int = LATEST, merged_through: int = 0) -> list[list[int]]:
    """Where topics end, in segments, each given by its decisions and by how many segments can be read."""
    ranges = [
        TopicRanges(
            view(commits, merged_through),
            dict.fromkeys(range(len(commits)), 0),
            {partition: segments * SIZE for partition, segments in enumerate(readable)},
        )
        for commits, readable in topics
    ]
    found = joint_ends(ranges, position)
    assert all(end % SIZE == 0 for one in found for end in one.values())
    return [[end // SIZE for _, end in sorted(one.items())] for one in found]


def test_all_is_read_where_every_transaction_is_whole() -> None:
    assert ends(([[1, 2]], [2]), ([[1, 3]], [2])) == [[2], [2]]


def test_transaction_waits_in_one_topic_while_it_cannot_be_read_in_the_other() -> None:
    assert ends(([[1, 2]], [1]), ([[1, 2, 3]], [3])) == [[1], [1]]


def test_what_waits_takes_along_whatever_it_splits() -> None:
    orders, lines, notes = [[5]], [[5, 7]], [[7, 8]]

    assert ends((orders, [0]), (lines, [2]), (notes, [2])) == [[0], [0], [0]]


def test_records_without_a_transaction_are_never_split() -> None:
    assert ends(([[0, 0]], [1]), ([[0, 0, 0]], [3])) == [[1], [3]]


def test_decision_above_the_position_waits_because_another_view_may_lack_it() -> None:
    assert ends(([[4]], [1]), ([[4, 9]], [2]), position=8) == [[1], [1]]


def test_merged_segment_waits_for_each_decision_that_may_be_in_it() -> None:
    assert ends(([[3]], [0]), ([[2, 6]], [2]), merged_through=6) == [[0], [1]]


def test_bound_inside_of_a_segment_leaves_its_transaction_for_later() -> None:
    ranges = [TopicRanges(view([[1]]), {0: 0}, {0: SIZE // 2}), TopicRanges(view([[1, 2]]), {0: 0}, {0: 2 * SIZE})]

    assert joint_ends(ranges, LATEST) == [{0: 0}, {0: 0}]


@given(
    commits=st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=4),
    readable=st.lists(st.integers(0, 4), min_size=4, max_size=4),
)
def test_ends_are_the_farthest_at_which_no_transaction_is_in_part(
    commits: list[list[int]], readable: list[int]
) -> None:
    limits = [min(limit, len(one)) for limit, one in zip(readable, commits, strict=False)]

    found = [one for (one,) in ends(*[([one], [limit]) for one, limit in zip(commits, limits, strict=True)])]

    def is_whole(cut: Sequence[int]) -> bool:
        taken = {each for one, end in zip(commits, cut, strict=True) for each in one[:end] if each}
        return not any(each in taken for one, end in zip(commits, cut, strict=True) for each in one[end:])

    valid = [cut for cut in product(*(range(limit + 1) for limit in limits)) if is_whole(cut)]
    assert tuple(found) == tuple(max(cut[place] for cut in valid) for place in range(len(limits)))


# -- a consumer ----------------------------------------------------------------------------


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    warehouse = site.create()
    for topic in ("lines", "orders"):
        warehouse.admin().create_topic(topic, partitions=1)
    return warehouse


def transactional(warehouse: Warehouse, transactional_id: str) -> Producer:
    producer = warehouse.producer(transactional_id=transactional_id)
    producer.init_transactions()
    return producer


def ordered(producer: Producer, value: bytes, *topics: str) -> None:
    with producer.transaction() as transaction:
        for topic in topics or ("orders", "lines"):
            transaction.send(topic, value=value)


def together(consumer: Consumer, most: int | None = None) -> dict[str, list[bytes]]:
    """What is read together, by topic, without Spark."""

    def values(_spark: Any, _view: Any, _starts: Any, _ends: Any, records: Any) -> list[bytes]:
        found: list[bytes] = records().read_all()["value"].to_pylist()
        return found

    consumer.config = replace(consumer.config, read_dataframe=values)
    read: Mapping[str, Any] = consumer.read_together(None, max_offsets_per_partition=most)  # type: ignore[arg-type]
    return dict(read)


def reader(warehouse: Warehouse) -> Consumer:
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", 0), TopicPartition("lines", 0)])
    return consumer


def test_read_together_is_refused_when_nothing_is_assigned(warehouse: Warehouse) -> None:
    with pytest.raises(IllegalStateError, match="subscribe to topics, or assign partitions"):
        together(warehouse.consumer(group_id="g", enable_auto_commit=False))


def test_line_waits_for_its_order_behind_an_open_transaction(warehouse: Warehouse) -> None:
    late, nightly, consumer = transactional(warehouse, "late"), transactional(warehouse, "nightly"), reader(warehouse)
    late.begin_transaction()
    late.send("orders", value=b"late")
    late.flush()
    ordered(nightly, b"2")

    assert together(consumer) == {"lines": [], "orders": []}

    late.commit_transaction()
    assert together(consumer) == {"lines": [b"2"], "orders": [b"late", b"2"]}


def test_transaction_between_the_looks_at_two_topics_comes_in_one_read(
    site: Site, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of another process: what it commits is not known here before it is read.
    producer, consumer = transactional(site.open(), "nightly"), reader(warehouse)
    ordered(producer, b"1")
    real, looked = FollowedTopic.catch_up, []

    def between(topic: FollowedTopic) -> None:
        real(topic)
        looked.append(topic)
        if len(looked) == 1:
            ordered(producer, b"2")

    monkeypatch.setattr(FollowedTopic, "catch_up", between)

    assert together(consumer) == {"lines": [b"1"], "orders": [b"1"]}
    consumer.commit()
    assert together(consumer) == {"lines": [b"2"], "orders": [b"2"]}


def test_bound_is_stretched_to_a_whole_transaction_so_that_each_read_goes_on(warehouse: Warehouse) -> None:
    producer, consumer = transactional(warehouse, "nightly"), reader(warehouse)
    for lowest in (0, 3):
        with producer.transaction() as transaction:
            for number in range(lowest, lowest + 3):
                transaction.send("orders", value=b"%d" % number)
                transaction.send("lines", value=b"%d" % number)

    first = together(consumer, most=1)
    consumer.commit()
    second = together(consumer, most=1)
    consumer.commit()

    assert first == {topic: [b"0", b"1", b"2"] for topic in ("lines", "orders")}
    assert second == {topic: [b"3", b"4", b"5"] for topic in ("lines", "orders")}
    assert together(consumer, most=1) == {"lines": [], "orders": []}
