"""A tape gives the same chances again, and calm ones where there are none: replaying and shrinking stand on it."""

from __future__ import annotations

import random

import pytest

from tests.doubles.fault_plan import Operation, Step
from tests.simulation.tape import CALM, Recording, Stream, Tape
from tests.simulation.turns import ManySite, Turns
from tests.simulation.weather import Weather


def draw(chance: random.Random) -> list[object]:
    return [
        chance.random(),
        chance.choice("abcdefg"),
        chance.randint(2, 6),
        chance.randrange(20),
        chance.choices([1, 2, 3], k=4),
        chance.sample(range(9), 4),
        chance.uniform(1, 2),
        chance.choice(range(1000)),
    ]


def test_chances_are_the_same_of_the_same_seed_and_others_of_another():
    first, again, other = (draw(Tape(seed).stream("a")) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert draw(Tape(1).stream("b")) != first


def test_replay_gives_the_recorded_chances_and_then_calm_ones():
    tape = Tape(1)
    drawn = draw(tape.stream("a"))

    replayed = Tape(Recording.decode(tape.recorded().encode())).stream("a")

    assert draw(replayed) == drawn
    assert [replayed.random() for _ in range(3)] == [CALM] * 3


@pytest.mark.parametrize("options", range(1, 21))
def test_calm_chance_makes_the_first_choice(options: int):
    calm = Stream()

    assert calm.choice(range(options)) == 0
    assert calm.randint(5, 4 + options) == 5
    assert not calm.random() < 0.999


def test_calm_weather_is_fair_and_meets_nothing():
    weather = Weather.drawn(Stream())

    assert weather.is_fair
    assert all(weather.meets(Step(1, operation, "a"), Stream()) is None for operation in Operation)


def test_calm_chances_leave_the_worst_weather_without_a_fault():
    worst = Weather(fault=0.9, burst=0.9, late=0.9, kill=0.9, pause=0.9, clock=0.9, jump=0.9)

    assert all(worst.meets(Step(1, operation, "system/"), Stream()) is None for operation in Operation)


def test_a_quarter_of_the_weathers_is_fair():
    drawn = [Weather.drawn(random.Random(seed)) for seed in range(1000)]

    assert 200 < sum(weather.is_fair for weather in drawn) < 330


def test_recording_drops_what_is_calm_at_the_end():
    recording = Recording().with_stream("a", (0.5, CALM, 0.25, CALM, CALM))

    assert recording.streams["a"] == (0.5, CALM, 0.25)
    assert recording.size == 2


def test_absent_process_does_not_take_part():
    turns = Turns(ManySite(), Tape(Recording(absent=frozenset({"a"}))))
    ran: list[str] = []

    for name in "ab":
        turns.start(name, lambda process: ran.append(process.name))
    turns.run()

    assert ran == ["b"]
