"""Entries that no writer of ours writes are damage, and are never put (PROTOCOL.md §4.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.world import ROOT, Process, World, creation, file, info_above, plant
from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.format.layout import commit_path
from txntable.log.actions import Action, Add, Commit, CommitInfo, Metadata, Protocol, Remove
from txntable.log.entry_encoding import encode_commit


def world_with_log() -> tuple[World, Process]:
    world = World()
    first = world.process()
    first.create()
    return world, first


@pytest.mark.parametrize("again", [file("a"), Remove("a", 1, True)])
def test_log_is_refused_when_an_entry_has_two_actions_of_one_path(again: Add | Remove) -> None:
    _, first = world_with_log()
    plant(first.log, file("a"), again)

    with pytest.raises(DamagedDataError, match=r"two file actions of one path.* file=a"):
        first.log.refresh()


@pytest.mark.parametrize("name", ["commit_id", "log", "previous"])
@pytest.mark.parametrize("value", ["", "a" * 31, "A" * 32, "a" * 33, "a" * 32 + "\n", "another"])
def test_log_is_refused_when_an_entry_names_one_by_what_is_no_commit_id(name: str, value: str) -> None:
    world, first = world_with_log()
    # Void but for that: nobody would compare it with anything.
    info = replace(info_above(first.log.table, "a" * 32), log="b" * 32, previous="c" * 32)
    info = replace(info, **{name: value})  # type: ignore[arg-type]
    world.objects.put(commit_path(ROOT, 1), encode_commit(Commit(1, info, ()), "x"))

    with pytest.raises(DamagedDataError, match="a commit id in a log is none"):
        first.log.refresh()


@pytest.mark.parametrize("lacking", [Protocol, Metadata])
def test_log_is_refused_when_its_first_entry_lacks_its_protocol_or_metadata(lacking: type[Action]) -> None:
    process = World().process()
    actions = [action for action in creation() if not isinstance(action, lacking)]
    info = CommitInfo("a" * 32, None, 1, "CREATE", "a" * 32)

    with pytest.raises(InvalidRequestError, match="nothing was written"):
        process.log.commit("CREATE", lambda table: actions)
    process.store.put(commit_path(ROOT, 0), encode_commit(Commit(0, info, tuple(actions)), "x"))
    with pytest.raises(DamagedDataError, match="lacks its protocol or metadata"):
        process.log.refresh()
