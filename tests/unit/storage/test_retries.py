"""How often and for how long a call is tried again, on a clock of its own."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError

from txntable.storage.retries import Attempts, obstore_retries
from txntable.testing.manual_environment import ManualEnvironment

CONFLICT = (
    "Object at location a already exists: Error performing PUT in 1ms - Server returned non-2xx status code: 409 C"
)
TOO_SLOW = "Server returned non-2xx status code: 400 Bad Request: <Error><Code>RequestTimeout</Code></Error>"
CUT = "Generic S3 error: Error getting list response body: HTTP error: request or response body error"


def waits_ms(environment: ManualEnvironment, attempts: Attempts, error: Exception) -> list[int]:
    """How long was waited before each further attempt."""
    waits = []
    before = environment.instant()
    while attempts.again(error):
        waits.append(environment.since_ms(before))
        before = environment.instant()
    return waits


@pytest.mark.parametrize("text", [CONFLICT, TOO_SLOW, CUT])
def test_again_waits_longer_each_time_and_stops_at_the_number_when_the_error_may_pass(text: str) -> None:
    environment = ManualEnvironment()

    waits = waits_ms(environment, Attempts(6, environment), GenericError(text))

    assert len(waits) == 6
    for number, wait_ms in enumerate(waits):
        assert 50 * 2**number - 1 <= wait_ms <= 150 * 2**number + 1


@pytest.mark.parametrize("text", ["status code: 500", "status code: 403", "status code: 412", "HTTP error: timeout"])
def test_again_says_no_when_obstore_has_tried_already_or_trying_is_no_use(text: str) -> None:
    assert not Attempts(6, ManualEnvironment()).again(GenericError(text))


def test_again_stops_after_two_minutes_when_the_number_is_large() -> None:
    environment = ManualEnvironment()

    waits = waits_ms(environment, attempts := Attempts(1_000, environment), GenericError(CONFLICT))

    assert 120_000 <= attempts.tried_for_ms < 120_000 + 22_500
    assert max(waits) <= 22_500


def test_again_waits_differently_in_two_processes() -> None:
    first, second = ManualEnvironment(seed=1), ManualEnvironment(seed=2)

    assert waits_ms(first, Attempts(5, first), GenericError(CUT)) != waits_ms(
        second, Attempts(5, second), GenericError(CUT)
    )


def test_obstore_is_told_the_same_bounds() -> None:
    told = obstore_retries(8)

    assert told["max_retries"] == 8
    assert told["retry_timeout"].total_seconds() == 120
    assert told["backoff"]["max_backoff"].total_seconds() == 15
