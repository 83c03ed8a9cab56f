"""A store that asks for fewer requests gets half of them, and slowly more again."""

from __future__ import annotations

from tests.doubles.manual_environment import ManualEnvironment
from txntable.storage.request_rate import FREE_PER_SECOND, LEAST_PER_SECOND, RequestRate


def made_in(environment: ManualEnvironment, rate: RequestRate, milliseconds: int) -> int:
    """How many requests are made in a time."""
    began, count = environment.instant(), 0
    while environment.since_ms(began) < milliseconds:
        rate.wait()
        count += 1
        if rate.per_second is None:
            environment.advance_ms(1)
    return count


def test_nothing_waits_before_the_store_asks() -> None:
    environment = ManualEnvironment()
    rate = RequestRate(environment)
    began = environment.instant()

    for _ in range(1_000):
        rate.wait()
        rate.went_well()

    assert environment.since_ms(began) == 0


def test_rate_is_halved_each_time_that_the_store_asks_but_once_a_second() -> None:
    environment = ManualEnvironment()
    rate = RequestRate(environment)

    for _ in range(16):
        rate.halve()
    first = made_in(environment, rate, 10_000)
    rate.halve()
    second = made_in(environment, rate, 10_000)

    assert abs(first - 10 * FREE_PER_SECOND / 2) <= 20
    assert abs(second - first / 2) <= 20


def test_rate_never_ends_and_becomes_free_again_when_all_goes_well() -> None:
    environment = ManualEnvironment()
    rate = RequestRate(environment)
    for _ in range(30):
        rate.halve()
        environment.advance_ms(1_000)
    assert rate.per_second == LEAST_PER_SECOND

    began = environment.instant()
    while rate.per_second is not None:
        rate.wait()
        rate.went_well()

    assert 10_000 <= environment.since_ms(began) <= 40_000
