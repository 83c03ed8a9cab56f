"""How long a table's checkpoints remember what was removed: as the table itself says."""

from __future__ import annotations

import pytest

from tests.unit.log.world import DAY_MS, GUARD_MS, Process, World, creation, file
from txntable.errors import DamagedDataError
from txntable.log.actions import Metadata, Remove
from txntable.log.retention import DELETED_FILES_PROPERTY, deleted_files_retention_ms, retention_properties


@pytest.mark.parametrize("retention_ms", [1_000, DAY_MS, 400 * DAY_MS])
def test_retention_is_read_as_it_was_written(retention_ms: int) -> None:
    assert deleted_files_retention_ms(retention_properties(retention_ms)) == retention_ms


def test_retention_is_deltas_where_a_table_says_nothing() -> None:
    assert deleted_files_retention_ms({}) == 7 * DAY_MS


@pytest.mark.parametrize("interval", ["", "3 days", "interval 1 week", "interval -1 seconds", "interval 1.5 seconds"])
def test_retention_in_a_form_that_nobody_writes_is_damage(interval: str) -> None:
    with pytest.raises(DamagedDataError, match="retention"):
        deleted_files_retention_ms({DELETED_FILES_PROPERTY: interval})


@pytest.mark.parametrize("days", [3, 30])
@pytest.mark.parametrize(("later_ms", "remembered"), [(GUARD_MS - 1_000, {"old", "new"}), (GUARD_MS + 1_000, {"new"})])
def test_checkpoint_forgets_what_was_removed_longer_ago_than_the_tables_own_retention_and_a_guard(
    days: int, later_ms: int, remembered: set[str]
) -> None:
    world = World()
    writer = world.process()
    writer.create()
    writer.log.commit("RETENTION", lambda table: [with_retention(days * DAY_MS)])
    remove(writer, "old")
    world.advance_ms(days * DAY_MS + later_ms)
    remove(writer, "new")

    writer.log.write_checkpoint()

    assert set(world.process().log.refresh().tombstones) == set(writer.log.table.tombstones) == remembered


def remove(process, path: str) -> None:
    """Add a file, and remove it."""
    process.add_file(path)
    process.log.commit("REMOVE", lambda table: [Remove(path, table.timestamp_ms, False)])


def with_retention(retention_ms: int) -> Metadata:
    """The table's metadata with a retention."""
    (metadata,) = [action for action in creation() if isinstance(action, Metadata)]
    properties = {**metadata.configuration, **retention_properties(retention_ms)}
    return Metadata(metadata.table_id, metadata.name, metadata.schema, (), properties, metadata.created_ms)


def test_who_follows_a_log_forgets_tombstones_as_who_opens_it_has() -> None:
    """A consumer that polls for years must not remember every file that ever was."""
    world = World()
    writer, follower = world.process(), world.process()
    writer.create()
    for day in range(40):
        come_and_go(writer, [f"{day}/{number}" for number in range(200)])
        follower.log.refresh()
        world.advance_ms(DAY_MS)

    # Seven days are kept, and some of those that have expired until there are many.
    assert 7 * 200 <= len(follower.log.table.tombstones) <= 2 * 8 * 200 + 1_000
    writer.log.write_checkpoint()
    opened = world.process().log.refresh().tombstones
    assert opened.items() <= follower.log.table.tombstones.items()


def come_and_go(writer: Process, paths: list[str]) -> None:
    now_ms = writer.log.context.clock.now_ms()
    writer.log.commit("ADD", lambda _: [file(path) for path in paths])
    writer.log.commit("REMOVE", lambda table: [Remove(add.path, now_ms, data_change=False) for add in table.files])
