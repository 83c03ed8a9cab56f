"""Snapshots: one position over all topics, now and in the past, and what retention or deletion takes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.administering import decide_only
from tests.unit.playing import OTHER, decided_at, moves, play, read
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts_in,
    commit,
    leave_open,
    plain,
    read_only,
    site_with_topic,
    transactional,
)
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.layout import TRANSACTION_LOG_ROOT, public_root
from txntable.log.cleanup import clean_up
from txntable.snapshot.snapshot import as_of
from txntable.snapshot.snapshot_description import TopicPosition, describe_snapshot
from txntable.warehouse.warehouse import Warehouse

DAY_MS = 86_400_000


# -- what it shows ------------------------------------------------------------------------------


@settings(max_examples=20)
@given(moves)
def test_snapshot_of_each_position_shows_what_was_committed_then_in_all_topics(steps: list) -> None:
    site, warehouse = site_with_topic(partitions=1)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)
    committed = play(warehouse, steps)
    plain_ones = {f"a{number}" for number, (step, _) in enumerate(steps) if step == "plain"}
    reader = site.open()

    for position in range(reader.transactions.refresh() + 1):
        found = set(read(reader, position)) - plain_ones
        assert found == {account for at, account, _ in committed if at <= position}
        assert set(read(reader, position, OTHER)) == {
            account for at, account, both in committed if at <= position and both
        }


def test_pinned_snapshot_reads_the_same_again_whatever_is_written_meanwhile() -> None:
    _, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a")
    plain(warehouse, "b")
    snapshot = warehouse.snapshot()
    first = accounts_in(snapshot.read_arrow(TOPIC))

    commit(producer, "c")
    plain(warehouse, "d")

    assert repr(snapshot) == f"Snapshot(position={snapshot.position}, warehouse={warehouse.url!r})"
    assert first == accounts_in(snapshot.read_arrow(TOPIC)) == ["a", "b"]
    assert accounts_in(warehouse.read_arrow(TOPIC)) == ["a", "b", "c", "d"]


def test_snapshot_pinned_before_its_first_read_shows_nothing_decided_above_it() -> None:
    _, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a")
    snapshot = warehouse.snapshot()

    commit(producer, "b")

    assert accounts_in(snapshot.read_arrow(TOPIC)) == ["a"]


def test_reader_without_write_access_gets_the_published_position() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    decide_only(warehouse, leave_open(warehouse, "b", transactional_id="slow"))
    plain(warehouse, "c")
    decided = decided_at(warehouse)

    snapshot = read_only(site).snapshot()

    assert snapshot.position == decided - 1
    assert accounts_in(snapshot.read_arrow(TOPIC)) == ["a", "c"]
    assert read(site.open(), None) == ["a", "b", "c"]


# -- what is gone -------------------------------------------------------------------------------


def cleaned_up() -> tuple[Warehouse, dict[str, int]]:
    """Two transactions, then a month; the logs were cleaned up to a checkpoint between them and what came later."""
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    positions = {}
    for account in "ab":
        commit(producer, account)
        positions[account] = decided_at(warehouse)
    warehouse.transactions.log.write_checkpoint()
    warehouse.topic_log(TOPIC).public.write_checkpoint()
    site.advance_ms(40 * DAY_MS)
    warehouse = site.open()
    commit(transactional(warehouse), "c")
    positions["c"] = decided_at(warehouse)
    for root in (TRANSACTION_LOG_ROOT, public_root(TOPIC)):
        assert clean_up(warehouse.context, root, 30 * DAY_MS).paths
    return site.open(), positions


def test_snapshot_that_retention_has_removed_says_so() -> None:
    warehouse, positions = cleaned_up()

    with pytest.raises(OffsetOutOfRangeError, match="cleaned up"):
        read(warehouse, positions["a"])
    with pytest.raises(OffsetOutOfRangeError, match="cleaned up"):
        read(warehouse, 0)


def test_position_that_the_error_of_a_removed_snapshot_names_is_read() -> None:
    warehouse, positions = cleaned_up()

    with pytest.raises(OffsetOutOfRangeError, match="from earliest_position on") as removed:
        read(warehouse, positions["a"])

    earliest = int(str(removed.value).rsplit("earliest_position=", 1)[1])
    assert positions["b"] < earliest < positions["c"]
    assert read(warehouse, earliest) == ["a", "b"]


def test_error_of_a_removed_snapshot_says_to_read_now_where_nothing_was_decided_since() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    position = decided_at(warehouse)
    site.advance_ms(40 * DAY_MS)
    for log in (warehouse.transactions.log, warehouse.topic_log(TOPIC).public):
        log.refresh()
        log.write_checkpoint()
        clean_up(warehouse.context, log.root, DAY_MS)
    warehouse = site.open()

    with pytest.raises(OffsetOutOfRangeError, match="read what there is now"):
        read(warehouse, position - 1)

    assert read(warehouse, None) == ["a"]


def test_snapshot_within_retention_is_read_after_cleanup() -> None:
    warehouse, positions = cleaned_up()

    assert read(warehouse, positions["c"] - 1) == ["a", "b"]
    assert read(warehouse, positions["c"]) == ["a", "b", "c"]


def test_snapshot_whose_files_vacuum_may_have_taken_says_so() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    commit(producer, "a")
    position = decided_at(warehouse)
    commit(producer, "b")
    site.advance_ms(DAY_MS)
    compact(site.open())

    assert read(site.open(), position) == ["a"]
    site.advance_ms(29 * DAY_MS)
    assert read(site.open(), position) == ["a"]
    site.advance_ms(2 * DAY_MS)
    with pytest.raises(OffsetOutOfRangeError, match="vacuumed"):
        read(site.open(), position)
    vacuum(site.open(), execute=True)
    with pytest.raises(OffsetOutOfRangeError, match="vacuumed"):
        read(site.open(), position)
    assert read(site.open(), None) == ["a", "b"]


def again(site: Site, warehouse: Warehouse, days: int = 1) -> dict[str, int]:
    """Old topic with `old`, deleted; created again with `new`; days between all of it."""
    positions = {}

    def later(account: str | None = None) -> None:
        if account is not None:
            commit(transactional(warehouse), account)
            positions[account] = decided_at(warehouse)
        site.advance_ms(days * DAY_MS)

    later()
    later("old")
    later("older and newest")
    warehouse.admin().create_topic("elsewhere", schema=TWO_COLUMNS)
    commit(transactional(warehouse), "in another topic", topic="elsewhere")
    positions["in another topic"] = decided_at(warehouse)
    later()
    warehouse.admin().delete_topic(TOPIC)
    site.advance_ms(days * DAY_MS)
    commit(transactional(warehouse), "meanwhile", topic="elsewhere")
    positions["meanwhile"] = decided_at(warehouse)
    site.advance_ms(days * DAY_MS)
    warehouse.admin().create_topic(TOPIC, schema=TWO_COLUMNS)
    later()
    later("new")
    return positions


@pytest.mark.parametrize("opened", [Site.open, read_only])
def test_snapshot_of_the_past_shows_the_topic_that_had_the_name_then(opened: Callable[[Site], Warehouse]) -> None:
    site, warehouse = site_with_topic(partitions=1)
    positions = again(site, warehouse)
    reader = opened(site)

    assert read(reader, positions["old"]) == ["old"]
    for name in ("older and newest", "in another topic"):
        assert read(reader, positions[name]) == ["old", "older and newest"]
    with pytest.raises(UnknownTopicOrPartitionError, match="deleted then"):
        read(reader, positions["meanwhile"])
    assert read(reader, positions["new"]) == read(reader, None) == ["new"]


def test_snapshot_of_the_past_shows_a_topic_that_was_deleted_since() -> None:
    site, warehouse = site_with_topic(partitions=1)
    positions = again(site, warehouse)
    commit(transactional(warehouse), "in another topic", topic="elsewhere")
    between = decided_at(warehouse)
    site.advance_ms(DAY_MS)
    warehouse.admin().delete_topic(TOPIC)
    reader = site.open()

    assert read(reader, positions["old"]) == ["old"]
    assert read(reader, positions["new"]) == read(reader, between) == ["new"]
    with pytest.raises(UnknownTopicOrPartitionError):
        read(reader, None)


def test_topic_that_was_not_there_yet_is_unknown_in_the_past() -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    position = decided_at(warehouse)
    site.advance_ms(DAY_MS)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)

    with pytest.raises(UnknownTopicOrPartitionError, match=f"no such topic then topic=v position={position}"):
        read(warehouse, position, OTHER)
    assert read(warehouse, None, OTHER) == []


# -- what it rests on ---------------------------------------------------------------------------


def test_description_tells_positions_and_how_far_each_topic_is() -> None:
    site, warehouse = site_with_topic()
    producer = transactional(warehouse)
    commit(producer, "a")
    abort(producer, "b", partition=1)
    position = decided_at(warehouse)
    leave_open(warehouse, "c", partition=1)

    described = describe_snapshot(warehouse.transactions, warehouse.snapshot(), warehouse.admin().list_topics)

    head = warehouse.transactions.refresh()
    assert (described.position, described.published_position, described.head) == (head, head, head)
    version = warehouse.topic_log(TOPIC).public.table.version
    assert described.topics == (TopicPosition(TOPIC, version or 0, position, 0, 4, 5),)
    assert site.open().snapshot().position == head


def test_description_of_a_reader_without_write_access_tells_what_is_published() -> None:
    site, warehouse = site_with_topic(partitions=1)
    decide_only(warehouse, leave_open(warehouse, "b", transactional_id="slow"))
    reader = read_only(site)

    described = describe_snapshot(reader.transactions, reader.snapshot(), reader.admin().list_topics)

    assert described.position == described.published_position == decided_at(warehouse) - 1 < described.head


def test_description_leaves_out_topics_that_there_were_not() -> None:
    site, warehouse = site_with_topic(partitions=1)
    positions = again(site, warehouse)
    commit(transactional(warehouse), "last", topic="elsewhere")
    last = decided_at(warehouse)
    site.advance_ms(DAY_MS)
    warehouse.admin().delete_topic(TOPIC)
    topics = partial(warehouse.admin().list_topics, deleted=True)

    def names(position: int) -> list[str]:
        return [
            one.topic for one in describe_snapshot(warehouse.transactions, warehouse.snapshot(position), topics).topics
        ]

    assert names(positions["old"]) == [TOPIC]
    assert names(positions["meanwhile"]) == ["elsewhere"]
    assert names(positions["new"]) == names(last) == ["elsewhere", TOPIC]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("12", 12),
        ("2026-11-20T08:00:00Z", dt.datetime(2026, 11, 20, 8, tzinfo=dt.UTC)),
        ("2026-11-20T08:00:00+09:00", dt.datetime(2026, 11, 19, 23, tzinfo=dt.UTC)),
    ],
)
def test_moment_is_read_from_text(text: str, moment: int | dt.datetime) -> None:
    assert as_of(text) == moment


@pytest.mark.parametrize("text", ["", "-1", "yesterday", "12.5"])
def test_moment_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        as_of(text)
