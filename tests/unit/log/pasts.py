"""Logs that were wiped or restored under processes that live on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.world import ROOT, Nothing, Process, World
from txntable.errors import WarehouseReplacedError
from txntable.log.delta_log import DeltaLog
from txntable.storage.object_store import StoredObject

Objects = dict[str, StoredObject]


def log_of(commits: int) -> tuple[World, Process, list[Objects]]:
    """Return a log, its writer, and what the store held after each of its versions."""
    world = World()
    writer = world.process()
    writer.create()
    past = [world.objects.snapshot()]
    for _ in range(commits):
        writer.count()
        past.append(world.objects.snapshot())
    return world, writer, past


def wiped(world: World, commits: int = 0) -> Process:
    """Delete everything, create the log anew, and go on in it."""
    world.objects.restore({})
    new = world.process()
    new.create()
    for _ in range(commits):
        new.count()
    return new


def recovering(process: Process) -> DeltaLog[Nothing]:
    return DeltaLog(replace(process.context, recovering=True), ROOT, Nothing())


def entries(world: World) -> list[str]:
    return sorted(path for path in world.paths() if path.startswith(ROOT))


def restored(world: World, objects: Objects, commits: int = 0) -> None:
    """Hold what a backup says, and go on from there."""
    world.objects.restore(objects)
    for _ in range(commits):
        world.process().count()


def plant(world: World, past: Process) -> str:
    """Let a process of the past put its one entry; return where."""
    before = set(entries(world))
    with pytest.raises(WarehouseReplacedError):
        past.add_file("past")
    (path,) = set(entries(world)) - before
    return path
