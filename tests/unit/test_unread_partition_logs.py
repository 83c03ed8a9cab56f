"""Readers of committed records that leave the partition logs unread, and when they do not (DECISIONS 147)."""

from __future__ import annotations

import pytest

from tests.unit.producer.producing import store_of
from tests.unit.reading import (
    TOPIC,
    accounts,
    accounts_in,
    append_without_publishing,
    commit,
    leave_open,
    plain,
    site_with_topic,
    transactional,
)
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import commit_path, segments_root

COMMITTED = IsolationLevel.READ_COMMITTED


@pytest.mark.parametrize("level", [COMMITTED, IsolationLevel.SNAPSHOT])
def test_reader_of_committed_records_asks_for_the_end_of_the_partition_logs_alone(level: IsolationLevel) -> None:
    site, warehouse = site_with_topic(partitions=1)
    commit(transactional(warehouse), "a")
    warehouse.coordinator().run_once()
    reading = site.open()

    found = accounts_in(reading.read_arrow(TOPIC, isolation_level=level))

    newest = warehouse.topic_log(TOPIC).segments.refresh().version
    assert newest is not None
    root = segments_root(TOPIC)
    asked = [step.path for step in store_of(reading).steps if step.path.startswith(f"{root}/_delta_log")]
    # Beside each look at the public table, the entry that it reflects so far and the one above.
    assert asked[-2:] == [commit_path(root, newest + 1), commit_path(root, newest)]
    assert set(asked) <= {commit_path(root, version) for version in range(newest + 2)}
    assert found == ["a"]


def test_reader_without_the_partition_logs_ends_a_transaction_that_is_overdue() -> None:
    """The public table says that something holds readers back."""
    site, warehouse = site_with_topic(partitions=1)
    leave_open(warehouse, "open")
    plain(warehouse, "behind")
    reading = site.open()
    site.advance_ms(warehouse.producer("any").config.transaction_timeout_ms + 10_000)
    reader = reading.topic_reader(TOPIC)

    reader.catch_up()

    assert accounts(reader, reader.view(COMMITTED)) == ["behind"]


@pytest.mark.parametrize("clean", [False, True])
def test_what_was_appended_long_ago_and_never_published_is_published_though_its_entries_are_cleaned_up(
    clean: bool,
) -> None:
    """No entry is above the one that the public table reflects then: nor is that one."""
    site, warehouse = site_with_topic(partitions=1)
    plain(warehouse, "a")
    for account in ("b", "c"):
        append_without_publishing(warehouse, account)
    log = warehouse.topic_log(TOPIC).segments
    newest = log.write_checkpoint()
    for version in range(newest if clean else 0):
        site.objects.delete(commit_path(log.root, version))

    assert accounts_in(site.open().read_arrow(TOPIC)) == ["a", "b", "c"]


def test_entry_that_was_seen_to_be_the_end_is_asked_for_again_once_it_may_be_cleaned_up() -> None:
    site, warehouse = site_with_topic(partitions=1)
    plain(warehouse, "a")
    reading = site.open()
    topic, store = reading.topic_log(TOPIC), store_of(reading)
    newest = commit_path(segments_root(TOPIC), warehouse.topic_log(TOPIC).segments.refresh().next_version - 1)
    asked = []
    for wait_ms in (0, 1, topic.context.guard_ms):
        site.advance_ms(wait_ms)
        store.steps.clear()
        assert topic.public_shows_everything()
        asked.append(newest in {step.path for step in store.steps})

    assert asked == [True, False, True]


def test_reader_that_has_not_read_the_partition_logs_sees_what_is_appended_later() -> None:
    site, warehouse = site_with_topic(partitions=1)
    plain(warehouse, "a")
    reader = site.open().topic_reader(TOPIC)
    reader.catch_up()
    append_without_publishing(warehouse, "b")

    reader.catch_up()

    assert reader.topic.segments.is_read
    assert accounts(reader, reader.view(COMMITTED)) == ["a", "b"]
