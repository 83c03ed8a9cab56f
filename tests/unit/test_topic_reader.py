"""What the readers of a topic share: bringing it up, looking at it, and older versions of it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.administering import decide_only
from tests.unit.producer.producing import store_of
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts,
    append_without_publishing,
    commit,
    leave_open,
    plain,
    read_only,
    segments_of,
    send,
    site_with_topic,
    transactional,
)
from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.log import table_state
from txntable.log.actions import Action, Add, Txn
from txntable.log.outcome import Committed
from txntable.partition.offsets import MERGED_THROUGH, per_topic
from txntable.snapshot.topic_reader import TopicReader
from txntable.warehouse.warehouse import Warehouse

COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


def caught_up(warehouse: Warehouse) -> TopicReader:
    reader = warehouse.topic_reader(TOPIC)
    reader.catch_up()
    return reader


def decided_and_not_complete(warehouse: Warehouse, account: str = "decided") -> None:
    producer = leave_open(warehouse, account, transactional_id="slow")
    decide_only(warehouse, producer)


# -- bringing up --------------------------------------------------------------------------------


@pytest.mark.parametrize("bring", ["catch_up", "follow"])
def test_what_is_decided_and_not_published_is_published_before_it_is_looked_at(bring: str) -> None:
    site, warehouse = site_with_topic(partitions=1)
    decided_and_not_complete(warehouse)
    reader = site.open().topic_reader(TOPIC)

    getattr(reader, bring)()

    assert accounts(reader, reader.view(COMMITTED)) == ["decided"]


def test_catch_up_publishes_what_a_dead_plain_writer_has_appended() -> None:
    site, warehouse = site_with_topic(partitions=1)
    append_without_publishing(warehouse, "plain")
    reader = site.open().topic_reader(TOPIC)

    reader.follow()
    followed = accounts(reader, reader.view(COMMITTED))
    reader.catch_up()

    assert followed == []
    assert accounts(reader, reader.view(COMMITTED)) == ["plain"]


def test_reader_without_write_access_never_passes_by_what_is_decided_and_not_published() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "before")
    decided_and_not_complete(warehouse)
    plain(warehouse, "after")
    reader = read_only(site).topic_reader(TOPIC)

    for bring in (reader.catch_up, reader.follow):
        bring()
        view = reader.view(COMMITTED)
        assert accounts(reader, view) == ["before"]
        assert view.bounds_of(0).end == 2

    site.open().complete()
    reader.follow()
    assert accounts(reader, reader.view(COMMITTED)) == ["before", "decided", "after"]


def test_following_costs_two_requests_when_nothing_is_new() -> None:
    _, warehouse = site_with_topic()
    commit(transactional(warehouse), "a")
    reader = caught_up(warehouse)
    before = len(store_of(warehouse).steps)

    reader.follow()

    assert len(store_of(warehouse).steps) - before == 2


def test_markers_are_written_once_for_all_that_was_seen_decided() -> None:
    """A transaction stays decided in T while another topic of it waits; this topic is done with it."""
    site, warehouse = site_with_topic(partitions=1)
    warehouse.admin().create_topic("other", schema=TWO_COLUMNS)
    producer = transactional(warehouse, "slow")
    producer.begin_transaction()
    send(producer, "x")
    send(producer, "x", topic="other")
    producer.flush()
    decide_only(warehouse, producer)
    other = site.open()
    reader = other.topic_reader(TOPIC)
    reader.follow()
    before = len(store_of(other).steps)

    reader.follow()

    assert len(store_of(other).steps) - before == 2


@pytest.mark.parametrize("bring", ["catch_up", "follow"])
def test_topic_that_was_created_again_is_followed_with_its_new_transactions(bring: str) -> None:
    site, warehouse = site_with_topic(partitions=1)
    reader = site.open().topic_reader(TOPIC)
    decided_and_not_complete(warehouse, "old")
    reader.follow()
    warehouse.admin().delete_topic(TOPIC)
    reader.follow()
    with pytest.raises(UnknownTopicOrPartitionError, match=r"the topic was deleted.* topic=u"):
        reader.view(COMMITTED)
    warehouse.admin().create_topic(TOPIC, schema=TWO_COLUMNS)
    decided_and_not_complete(warehouse, "new")

    getattr(reader, bring)()

    assert accounts(reader, reader.view(COMMITTED)) == ["new"]


def test_reader_that_lives_for_days_sees_what_is_new() -> None:
    site, warehouse = site_with_topic(partitions=1)
    reader = caught_up(site.open())
    for day in range(3):
        site.advance_ms(86_400_000)
        commit(transactional(warehouse), f"day {day}")
        reader.follow()
        assert accounts(reader, reader.view(COMMITTED))[-1] == f"day {day}"


# -- looking ------------------------------------------------------------------------------------


def test_view_does_not_change_when_more_is_committed() -> None:
    _, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a")
    reader = caught_up(warehouse)
    before = reader.view(COMMITTED)

    commit(producer, "b")
    reader.follow()

    assert accounts(reader, before) == ["a"]
    assert accounts(reader, reader.view(COMMITTED)) == ["a", "b"]


def test_view_costs_nothing_again_when_nothing_is_new() -> None:
    _, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    reader = caught_up(warehouse)

    for level in (COMMITTED, UNCOMMITTED):
        assert reader.view(level).columns is reader.view(level).columns


def test_views_are_right_when_many_commits_came_since_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_state, "_SHORT_TAIL", 3)
    site, warehouse = site_with_topic(partitions=1)
    reader = site.open().topic_reader(TOPIC)
    producer = transactional(warehouse)
    written = []
    for number in range(12):
        (commit if number % 3 else abort)(producer, f"a{number}")
        written.append(f"a{number}")
        reader.catch_up()
        assert accounts(reader, reader.view(UNCOMMITTED)) == written
        assert accounts(reader, reader.view(COMMITTED)) == [a for n, a in enumerate(written) if n % 3]


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_topic_that_there_is_not_can_not_be_looked_at(level: IsolationLevel) -> None:
    reader = Site().create().topic_reader("nowhere")

    with pytest.raises(UnknownTopicOrPartitionError, match="topic=nowhere"):
        reader.view(level, 0)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic=nowhere"):
        reader.catch_up()


# -- the past -----------------------------------------------------------------------------------

moves = st.lists(st.sampled_from(["commit", "abort", "plain", "open", "end", "checkpoint"]), max_size=10)


def play(warehouse: Warehouse, steps: list[str]) -> list[tuple[int, list[str]]]:
    """Write; return after each step the version of P, and the committed records as they were."""
    reader, producer = warehouse.topic_reader(TOPIC), transactional(warehouse)
    seen, opened = [], None
    for number, step in enumerate(steps):
        match step:
            case "commit":
                commit(producer, f"a{number}")
            case "abort":
                abort(producer, f"a{number}")
            case "plain":
                plain(warehouse, f"a{number}")
            case "open" if opened is None:
                opened = leave_open(warehouse, f"a{number}")
            case "end" if opened is not None:
                opened.commit_transaction()
                opened = None
            case "checkpoint":
                warehouse.topic_log(TOPIC).public.write_checkpoint()
        reader.catch_up()
        view = reader.view(IsolationLevel.SNAPSHOT, warehouse.transactions.refresh())
        seen.append((view.version, accounts(reader, view)))
    return seen


@settings(max_examples=25)
@given(moves)
def test_view_at_an_old_version_is_what_the_view_was_then(steps: list[str]) -> None:
    site, warehouse = site_with_topic(partitions=1)
    seen = play(warehouse, steps)
    reader = site.open().topic_reader(TOPIC)
    reader.catch_up()
    position = warehouse.transactions.refresh()

    for version, then in seen:
        assert accounts(reader, reader.view_at(version, position)) == then


@pytest.mark.parametrize("newest", [True, False])
def test_snapshot_below_what_is_merged_is_refused(newest: bool) -> None:
    _, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a")
    reader = caught_up(warehouse)
    position = reader.view(COMMITTED).decided_through
    public = warehouse.topic_log(TOPIC).public
    name = per_topic(MERGED_THROUGH, reader.settings().topic_id)
    assert isinstance(public.commit("TEST", lambda table: [Txn(name, position + 4)]), Committed)
    version = public.table.next_version - 1
    if not newest:
        assert isinstance(public.commit("TEST", lambda table: [Txn(per_topic(MERGED_THROUGH, "0" * 32), 1)]), Committed)

    with pytest.raises(OffsetOutOfRangeError, match=f"position={position} merged_through={position + 4}"):
        reader.view_at(version, position)
    assert reader.view_at(version, position + 4).merged_through == position + 4


def test_version_before_the_topic_shows_none() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    warehouse.admin().delete_topic(TOPIC)
    warehouse.admin().create_topic(TOPIC, schema=TWO_COLUMNS)
    reader = caught_up(site.open())
    deleted = reader.topic.public.table.next_version - 2

    with pytest.raises(UnknownTopicOrPartitionError, match=f"deleted then topic=u version={deleted}"):
        reader.view_at(deleted, 3)


def test_merged_segment_is_read_right_when_offsets_cut_it() -> None:
    """Written by hand, as compaction will: one file for offsets 0 to 9, of which four are left."""
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), *"abcd")
    reader = caught_up(warehouse)
    public = warehouse.topic_log(TOPIC).public
    (row,) = public.table.files
    path = segments_of(site)[0]
    thinned = _with_gaps(site, path, [0, 3, 7, 9])
    values = {**row.partition_values, "_last_offset": "9"}
    merged = Add(row.path, values, thinned, 0, False, row.stats, None)
    names = {name: 10 for name in public.table.numbers if name.startswith(("lso/", "high_watermark/"))}
    changes: list[Action] = [merged, *(Txn(name, number) for name, number in names.items())]
    assert isinstance(public.commit("TEST", lambda table: changes), Committed)
    view = reader.view(COMMITTED)

    def between(start: int, end: int) -> list[int]:
        table = reader.batches(view, ["_offset"], ({0: start}, {0: end})).read_all()
        found: list[int] = table["_offset"].to_pylist()
        return found

    assert (between(0, 10), between(1, 9), between(4, 7), between(7, 8)) == ([0, 3, 7, 9], [3, 7], [], [7])


def _with_gaps(site: Site, path: str, deltas: list[int]) -> int:
    found = site.objects.get(path)
    assert found is not None
    table = pq.read_table(pa.BufferReader(found.data))
    index = table.schema.get_field_index("_offset_delta")
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(index, "_offset_delta", pa.array(deltas, pa.int64())), sink, store_schema=False)
    site.objects.put(path, sink.getvalue().to_pybytes())
    return int(sink.getvalue().size)
