"""Which records are the latest of their keys, against a naive dict, with memory for few keys and for many (§5.8)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.site import Site
from txntable.compaction.latest import LatestRecords
from txntable.compaction.rewriter import TopicWork, rewriter_here
from txntable.compaction.spec import KeyCleaning, RewriteResult, RewriteTask
from txntable.format.isolation import IsolationLevel
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_reader import SegmentReader, offsets_of
from txntable.warehouse.warehouse import Warehouse

ONE_KEY = pa.schema([pa.field("key", pa.string()), pa.field("value", pa.int64())])
TWO_KEYS = pa.schema([pa.field("key", pa.string()), pa.field("day", pa.int32()), pa.field("value", pa.int64())])
Row = dict[str, Any]


class Compacted:
    """A topic of one partition, and its segments."""

    def __init__(self, schema: pa.Schema, key: Sequence[str], segments: Sequence[Sequence[Row]]) -> None:
        self.warehouse: Warehouse = Site().create()
        self.warehouse.admin().create_topic("t", schema=schema, key=key)
        with self.warehouse.producer() as producer:
            for rows in segments:
                producer.send("t", rows=pa.Table.from_pylist(list(rows), schema))
                producer.flush()
        self.rows = [row for rows in segments for row in rows]
        log = self.warehouse.topic_log("t")
        self.plan = SegmentPlan(log.segments.root, log.settings(), None, 5)
        self.sources = tuple(self.warehouse.topic_reader("t").view(IsolationLevel.READ_UNCOMMITTED).plan())

    def task(self, **changes: Any) -> RewriteTask:
        return RewriteTask(0, self.sources, replace(KeyCleaning(1 << 40, 0, frozenset(), 1 << 28), **changes))

    def latest(self, **changes: Any) -> LatestRecords:
        found = LatestRecords(self.warehouse.store, self.plan, self.task(**changes))
        found.find()
        return found

    def staying(self, latest: LatestRecords) -> list[int]:
        reader = SegmentReader(self.warehouse.store, self.plan.root, self.plan.settings)
        return [
            int(offset)
            for source in self.sources
            for batch in reader.read(source, 7)
            for offset in offsets_of(latest.choose(source, batch))
        ]

    def rewritten(self, segment_bytes: int = 1 << 28, **changes: Any) -> RewriteResult:
        work = TopicWork(self.warehouse.context.store.spec, self.plan, segment_bytes)
        rewriter = rewriter_here(self.warehouse.context)
        (result,) = rewriter(work, [self.task(**changes)])
        return result


def naive(rows: Sequence[Row], key: Sequence[str]) -> list[int]:
    latest = {tuple(row[name] for name in key): offset for offset, row in enumerate(rows)}
    if len(key) == 1:
        latest.pop((None,), None)
    return sorted(latest.values())


def one_key(*values: tuple[str | None, int | None]) -> list[Row]:
    return [{"key": key, "value": value} for key, value in values]


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcdefgh") | st.none(), st.integers(0, 3)), min_size=1, max_size=20),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([300, 1000, 1 << 28]),
)
def test_of_each_key_the_record_with_the_highest_offset_stays(
    segments: list[list[tuple[str | None, int]]], memory_bytes: int
) -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(*rows) for rows in segments])

    latest = topic.latest(memory_bytes=memory_bytes)

    assert topic.staying(latest) == naive(topic.rows, ["key"])
    assert latest.read_records == len(topic.rows)
    assert latest.dropped_records == len(topic.rows) - len(naive(topic.rows, ["key"]))


Keys = list[tuple[str | None, int | None]]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("ab") | st.none(), st.integers(0, 1) | st.none()), min_size=1, max_size=30))
def test_of_several_key_columns_each_combination_is_a_key_also_with_nulls(keys: Keys) -> None:
    rows = [{"key": key, "day": day, "value": number} for number, (key, day) in enumerate(keys)]
    topic = Compacted(TWO_KEYS, ["key", "day"], [rows])

    for memory_bytes in (400, 1 << 28):
        assert topic.staying(topic.latest(memory_bytes=memory_bytes)) == naive(rows, ["key", "day"])


def test_more_keys_than_fit_into_memory_are_looked_at_in_several_passes() -> None:
    chance = random.Random(1)
    rows = one_key(*((f"key {chance.randrange(2_000)}", number) for number in range(6_000)))
    topic = Compacted(ONE_KEY, ["key"], [rows[:2_500], rows[2_500:5_000], rows[5_000:]])

    small, large = topic.latest(memory_bytes=40_000), topic.latest()

    assert topic.staying(small) == topic.staying(large) == naive(rows, ["key"])
    assert (small.passes > 8, large.passes) == (True, 1)


def test_pass_never_holds_more_than_arrow_can_group_whatever_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.compaction.latest._LARGEST_SHARE", 10_000)
    rows = one_key(*((f"key {number}", number) for number in range(2_000)))
    topic = Compacted(ONE_KEY, ["key"], [rows])

    latest = topic.latest(memory_bytes=1 << 40)

    assert topic.staying(latest) == list(range(2_000))
    assert latest.passes > 1


def test_records_that_the_start_of_a_source_cuts_off_are_none() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0), ("b", 1), ("c", 2)), one_key(("b", 3))])
    topic.sources = (replace(topic.sources[0], start=1), topic.sources[1])

    assert topic.staying(topic.latest()) == [2, 3]


@pytest.mark.parametrize(
    ("through", "with_tombstones", "stays"),
    [(0, True, [1, 2, 4, 5]), (2, True, [2, 4, 5]), (5, True, [2, 5]), (6, True, [2]), (6, False, [1, 2, 4, 5])],
)
def test_tombstones_go_below_their_offset_where_there_may_be_some(
    through: int, with_tombstones: bool, stays: list[int]
) -> None:
    rows = one_key(("a", 0), ("a", None), ("b", 2), ("c", 3), ("c", None), ("d", None))
    topic = Compacted(ONE_KEY, ["key"], [rows])
    paths = frozenset(source.path for source in topic.sources) if with_tombstones else frozenset()

    latest = topic.latest(tombstones_through=through, with_tombstones=paths)

    assert topic.staying(latest) == stays


# -- what is written anew -----------------------------------------------------------------------


def groups(topic: Compacted, latest: LatestRecords, segment_bytes: int) -> list[list[int]]:
    return [[source.base_offset for source in group] for group in latest.groups(segment_bytes)]


def test_source_that_loses_nothing_stays_when_it_is_large_and_alone() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0)), one_key(("b", 1)), one_key(("c", 2))])
    latest = topic.latest()

    assert groups(topic, latest, 1 << 28) == [[0, 1, 2]]
    assert groups(topic, latest, 2 * topic.sources[0].size) == []
    assert groups(topic, latest, 2 * topic.sources[0].size + 1) == [[0, 1]]


def test_source_that_loses_a_record_is_written_anew_however_large_it_is() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0), ("b", 1)), one_key(("b", 2))])

    assert groups(topic, topic.latest(), 1) == [[0]]


def test_source_that_is_cut_or_may_hold_old_tombstones_is_written_anew() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0), ("b", 1)), one_key(("c", None))])
    paths = frozenset({topic.sources[1].path})

    assert groups(topic, topic.latest(tombstones_through=3, with_tombstones=paths), 1) == [[2]]
    topic.sources = (replace(topic.sources[0], start=1), topic.sources[1])
    assert groups(topic, topic.latest(), 1) == [[0]]


def test_rewrite_by_key_says_whom_records_were_left_out_for_and_remembers_how_far_it_looked() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0)), one_key(("a", 1)), one_key(("b", 2))])
    topic.sources = tuple(replace(source, commit=7 + n) for n, source in enumerate(topic.sources))

    result = topic.rewritten(segment_bytes=1, through=3)

    first, last = result.rewrites
    assert (first.sources, first.outputs, first.left_out_for) == ((topic.sources[0].path,), (), 9)
    assert (last.sources, last.outputs, last.by_key) == ((), (), 3)
    assert (result.read_records, result.dropped_records) == (3, 1)


def test_sources_of_which_nothing_stays_go_by_as_many_as_a_commit_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.compaction.latest.MOST_SOURCES", 2)
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", number)) for number in range(6)])

    assert groups(topic, topic.latest(), 1 << 28) == [[0, 1], [2, 3], [4, 5]]


def test_rewrite_by_key_writes_what_stays_between_its_own_offsets() -> None:
    topic = Compacted(ONE_KEY, ["key"], [one_key(("a", 0), ("b", 1)), one_key(("a", 2), ("c", 3), ("c", 4))])

    (rewrite, _) = topic.rewritten().rewrites

    (output,) = rewrite.outputs
    assert (output.base_offset, output.last_offset, output.segment.records) == (1, 4, 3)
    assert rewrite.sources == tuple(source.path for source in topic.sources)
