"""When the coordinator job writes a checkpoint: what the next to open a log gains against what it costs."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.log.world import DAY_MS, ROOT, World, file
from txntable.errors import InvalidRequestError
from txntable.format.layout import checkpoint_path
from txntable.log.actions import Remove, Txn
from txntable.log.checkpoint import LogTail, is_worthwhile
from txntable.log.cleanup import clean_up
from txntable.log.table_state import LiveFiles, TableState

KIB = 1024
NOW_MS = 10 * DAY_MS


def state_of(live: int = 0, expired: int = 0, young: int = 0) -> TableState:
    """A table at version 50 with live files, and with tombstones from before and after `NOW_MS`."""
    files = LiveFiles()
    for number in range(live):
        files.put(file(f"live{number}"))
    gone = [Remove(f"expired{number}", NOW_MS - 1, data_change=False) for number in range(expired)]
    gone += [Remove(f"young{number}", NOW_MS, data_change=False) for number in range(young)]
    return TableState(version=50, files=files, tombstones={remove.path: remove for remove in gone})


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (LogTail(checkpoint=40, entries=10, size=10_000), False),
        (LogTail(checkpoint=39, entries=11, size=11_000), True),
        (LogTail(entries=11, size=11_000), True),
        (LogTail(checkpoint=49, checkpoint_size=KIB, entries=1, size=64 * KIB), False),
        (LogTail(checkpoint=49, checkpoint_size=KIB, entries=1, size=64 * KIB + 1), True),
        (LogTail(checkpoint=49, checkpoint_size=200 * KIB, entries=1, size=200 * KIB), False),
        (LogTail(checkpoint=49, checkpoint_size=200 * KIB, entries=1, size=200 * KIB + 1), True),
        (LogTail(checkpoint=50, entries=0, size=0), False),
        # The view is behind what was listed: it has nothing to add.
        (LogTail(checkpoint=60, entries=11, size=11_000), False),
    ],
)
def test_checkpoint_is_worthwhile_when_the_tail_is_long_or_outweighs_it(tail: LogTail, expected: bool) -> None:
    assert is_worthwhile(tail, state_of(), NOW_MS) is expected


@pytest.mark.parametrize(
    ("live", "expired", "young", "expected"),
    [
        (0, 100, 0, False),
        (0, 101, 0, True),
        (150, 200, 50, False),
        (150, 201, 50, True),
        (0, 200, 200, False),
    ],
)
def test_checkpoint_is_worthwhile_when_expired_tombstones_outnumber_the_rest(
    live: int, expired: int, young: int, expected: bool
) -> None:
    tail = LogTail(checkpoint=49, checkpoint_size=KIB, entries=1, size=KIB)

    assert is_worthwhile(tail, state_of(live, expired, young), NOW_MS) is expected
    at_rest = dataclasses.replace(tail, checkpoint=50, entries=0, size=0)
    assert not is_worthwhile(at_rest, state_of(live, expired, young), NOW_MS)


def test_log_is_opened_from_a_checkpoint_without_the_one_large_entry_above_it() -> None:
    world = World()
    writer = world.process()
    writer.create()
    writer.log.write_checkpoint()
    writer.log.commit(
        "NAMES", lambda _: [Txn(f"a name as long as a path of a segment, number {n}", n) for n in range(2_000)]
    )

    writer.log.write_worthwhile_checkpoint(clean_up(writer.context, ROOT, DAY_MS).tail)

    assert checkpoint_path(ROOT, 1) in world.paths()
    assert world.process().log.refresh().numbers == writer.log.table.numbers
    writer.count()
    writer.log.write_worthwhile_checkpoint(clean_up(writer.context, ROOT, DAY_MS).tail)
    assert checkpoint_path(ROOT, 2) not in world.paths()


def test_checkpoint_that_nobody_could_open_is_not_written_and_the_log_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    writer = world.process()
    writer.create()
    monkeypatch.setattr("txntable.log.checkpoint.LARGEST_ROWS", 20)
    for number in range(100):
        writer.add_file(f"p00000/{number}.parquet")

    assert checkpoint_path(ROOT, 100) not in world.paths()
    assert len(world.process().log.refresh().files) == 100
    with pytest.raises(InvalidRequestError, match="too large"):
        writer.log.write_checkpoint()
