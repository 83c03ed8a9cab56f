"""Runs of all worlds, each from a seed: 250 in a build, 2,000 by night; a failing one is told as a small program.

``TXNTABLE_SEEDS=<first>-<last>`` runs other seeds; ``python -m tests.simulation.campaign`` runs many more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.doubles.fault_plan import Fault
from tests.parts import parts
from tests.simulation import campaign
from tests.simulation.campaign import SHRINKING_RUNS, main, run_part, seeds_of, tell_failure
from tests.simulation.every_world import SMALL
from tests.simulation.playing import play
from tests.simulation.turns import ManySite, Process, Turns
from tests.simulation.weather import ORDINARY, Weather
from tests.simulation.worlds import WORLDS

LARGE_RUNS, SMALL_RUNS = 1_100, 900
PARTS = 16


def seeds() -> list[tuple[str, int]]:
    """The seeds that are run; their figures do not change from one machine to the next."""
    if "TXNTABLE_SEEDS" in os.environ:
        first, last = map(int, os.environ["TXNTABLE_SEEDS"].split("-"))
        return list(islice(seeds_of(list(WORLDS), first), (last + 1 - first) * len(WORLDS)))
    large, small = islice(seeds_of(list(WORLDS), 0), LARGE_RUNS), islice(seeds_of(list(SMALL), 0), SMALL_RUNS)
    return [*large, *small]


@pytest.mark.parametrize("part", parts(PARTS, of_a_build=2))
def test_every_check_holds_in_every_world_and_weather(part: int, tmp_path: Path) -> None:
    totals = run_part(seeds()[part::PARTS])

    if totals.failed:
        name, seed, _ = totals.failed[0]
        pytest.fail(tell_failure(name, seed, tmp_path, SHRINKING_RUNS))
    if "TXNTABLE_SEEDS" in os.environ:
        return
    assert {met.split(" ")[0] for met in totals.met} == {fault.name for fault in ORDINARY}
    assert min(totals.kills, totals.jumps, totals.clocks, totals.pauses, totals.bursts, totals.landed, totals.fair) > 0


def late_puts_into_cleaned_slots(trace: Sequence[str]) -> set[str]:
    """Return the entries that a late put wrote into a slot after cleanup had deleted it."""
    deleted: set[str] = set()
    found = set()
    for line in trace:
        if gone := re.search(r"delete (\S+/_delta_log/\d{20}\.json)", line):
            deleted.add(gone[1])
        elif (late := re.search(r"late put-if-absent (\S+) lands", line)) and late[1] in deleted:
            found.add(late[1])
    return found


def test_late_put_may_lie_in_a_slot_that_was_cleaned_up() -> None:
    """The checker once took it for a resurrected commit.  Such runs are rare: the first of some seeds that has it."""
    for seed in range(91_350, 91_550):
        played = play(WORLDS["office"], seed)
        assert played.failure is None
        if late_puts_into_cleaned_slots(played.trace):
            return
    pytest.fail("no run has a late put into a slot that was cleaned up")


@pytest.mark.parametrize("name", WORLDS)
def test_world_makes_the_same_run_of_the_same_tape(name: str) -> None:
    first = play(WORLDS[name], 3)

    assert play(WORLDS[name], 3).trace == first.trace
    assert play(WORLDS[name], first.recording).trace == first.trace


@pytest.mark.parametrize("name", ["office", "compaction", "vacuum"])
def test_every_check_holds_on_a_store_whose_lists_are_not_up_to_date(name: str) -> None:
    stale = 0
    for seed in range(3):
        turns = Turns(None, seed, Weather(stale=0.6, jump=0.004, tick_ms=400))
        WORLDS[name].play(turns)
        stale += turns.counts.met[Fault.STALE_LIST, "list"]

    assert stale > 0


class Racing:
    """A world that fails when two processes write one object."""

    def play(self, turns: Turns) -> None:
        turns.site = ManySite()

        def write(process: Process) -> None:
            process.doing("write")
            process.store().put_if_absent(f"a{process.random.randrange(4)}", process.name.encode())

        for number in range(8):
            turns.start(f"p{number}", write)
        turns.run()
        assert len(turns.site.objects.snapshot()) >= len(turns.processes), "two wrote one object"


def test_command_tells_a_failing_seed_and_replays_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "WORLDS", {"racing": Racing()})

    told = main(["--world", "racing", "--seed", "3", "--keep", str(tmp_path)])
    first = capsys.readouterr().out
    replayed = main(["--replay", str(tmp_path / "failure-racing-3.json")])
    second = capsys.readouterr().out

    assert (told, replayed) == (1, 1)
    assert "world racing: 2 processes" in first
    assert "world racing: 2 processes" in second
    assert f"--replay {tmp_path / 'failure-racing-3.json'}" in first
    assert "--world racing --seed 3" in first


def test_command_ends_well_when_every_check_holds() -> None:
    assert main(["--world", next(iter(WORLDS)), "--seed", "0"]) == 0
