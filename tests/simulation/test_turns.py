"""The scheduler and the weather do what the tape says: what every simulation finds stands on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault
from tests.simulation.turns import ManySite, Process, Turns
from tests.simulation.weather import MINUTE_MS, Weather
from txntable.errors import StoreUnavailableError
from txntable.storage.object_store import ObjectStore


def writing(times: int, call: Callable[[ObjectStore, str], object]) -> Callable[[Process], None]:
    """A process that makes a call again and again, whatever becomes of it."""

    def program(process: Process) -> None:
        store = process.store()
        for number in range(times):
            try:
                call(store, f"{process.name}/{number}")
            except StoreUnavailableError:
                continue

    return program


def put(store: ObjectStore, path: str) -> None:
    store.put(path, b"")


def run(seed: int, weather: Weather | None = None, program: Callable[[Process], None] | None = None) -> Turns:
    turns = Turns(ManySite(), seed, weather)
    for name in "abc":
        turns.start(name, program or writing(40, put))
    turns.run()
    return turns


def test_trace_is_the_same_of_the_same_seed_and_another_of_another():
    assert run(1).trace == run(1).trace != run(2).trace


def test_trace_is_the_same_when_the_tape_is_played_again():
    first = run(7)

    again = Turns(ManySite(), type(first.tape)(first.tape.recorded()))
    for name in "abc":
        again.start(name, writing(40, put))
    again.run()

    assert again.trace == first.trace


@pytest.mark.parametrize(
    ("weather", "counted"),
    [
        (Weather(kill=0.05), lambda turns: turns.counts.kills),
        (Weather(jump=0.05), lambda turns: turns.counts.jumps),
        (Weather(pause=0.05), lambda turns: turns.counts.pauses),
        (Weather(burst=0.05), lambda turns: turns.counts.bursts),
        (Weather(fault=0.2, faults=(Fault.SLOW,)), lambda turns: turns.counts.met[Fault.SLOW, "put"]),
        (Weather(fault=0.2, faults=(Fault.DUPLICATE,)), lambda turns: turns.counts.landed),
        (Weather(fault=0.2, faults=(Fault.LATE_LANDING,)), lambda turns: turns.counts.landed),
    ],
)
def test_weather_brings_what_it_is_made_of(weather: Weather, counted: Callable[[Turns], int]):
    assert sum(counted(run(seed, weather)) for seed in range(5)) > 0
    assert counted(run(0, Weather())) == 0


def test_killed_process_does_nothing_more():
    turns = run(1, Weather(kill=0.2))

    killed = next(number for number, line in enumerate(turns.trace) if line == "a is killed")
    assert [line for line in turns.trace[killed:] if line.startswith("a put")] == []


def test_late_writes_are_all_there_in_the_end():
    turns = run(3, Weather(fault=1, faults=(Fault.LATE_LANDING,), land=0.001))

    assert len(turns.site.objects.snapshot()) == 120


def test_pause_takes_the_time_it_was_drawn_to_take():
    turns = Turns(ManySite(), 0, Weather())
    turns.start("a", lambda process: process.rest(10, 31 * MINUTE_MS))

    turns.run()

    assert turns.site.time.instant().boot_ms >= 31 * MINUTE_MS


def test_time_stands_still_between_turns_when_a_turn_takes_none():
    turns = run(1, Weather(tick_ms=0))

    assert len({found.last_modified_ms for found in turns.site.objects.snapshot().values()}) == 1


def test_wall_clock_is_set_on_one_machine_alone():
    site = ManySite()
    first, second = site.environment(), site.environment()

    first.advance_wall_ms(-MINUTE_MS)
    site.advance_ms(5)

    assert (first.instant().wall_ms, first.instant().boot_ms) == (second.instant().wall_ms - MINUTE_MS, 5)
    assert first.since_ms(second.instant()) == 0


def test_first_failure_ends_the_run_and_is_what_it_raises():
    def fail(process: Process) -> None:
        process.store().put(process.name, b"")
        raise AssertionError(process.name)

    turns = Turns(ManySite(), 1, Weather())
    turns.start("a", fail)
    turns.start("b", writing(10_000, put))

    with pytest.raises(AssertionError, match="a"):
        turns.run()

    assert turns.number < 10_000


def test_processes_that_do_not_come_to_an_end_fail_the_run(monkeypatch):
    monkeypatch.setattr("tests.simulation.turns.MOST_STEPS", 50)

    with pytest.raises(AssertionError, match="do not come to an end"):
        run(1, Weather())
