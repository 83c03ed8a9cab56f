"""For how long a call is tried again, on a clock of its own; and that nested calls share one budget."""

from __future__ import annotations

import logging

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from txntable.errors import StoreUnavailableError
from txntable.storage.retries import (
    LARGEST_BACKOFF_MS,
    Attempts,
    asks_for_less,
    ending_within,
    obstore_retries,
    passes,
)

TIMEOUT_MS = 120_000
ANSWER = "Error performing PUT http://s3/b/a in 1ms - Server returned non-2xx status code: {}"
BODY = "400 Bad Request: <Error><Code>{}</Code></Error>"


def waits_ms(environment: ManualEnvironment, attempts: Attempts) -> list[int]:
    """How long was waited before each further attempt."""
    waits = []
    before = environment.instant()
    while attempts.wait():
        waits.append(environment.since_ms(before))
        before = environment.instant()
    return waits


@pytest.mark.parametrize("seed", range(20))
def test_attempts_go_on_until_the_deadline_and_the_last_is_made_there(seed: int) -> None:
    environment = ManualEnvironment(seed)

    waits = waits_ms(environment, attempts := Attempts(TIMEOUT_MS, environment))

    assert TIMEOUT_MS - 1 <= attempts.tried_for_ms <= TIMEOUT_MS
    assert 20 <= len(waits) <= 60
    for number, wait_ms in enumerate(waits[:6]):
        assert 25 * 2**number - 1 <= wait_ms <= 75 * 2**number + 1
    assert max(waits) <= 1.5 * LARGEST_BACKOFF_MS


def test_attempts_wait_differently_in_two_processes() -> None:
    first, second = ManualEnvironment(seed=1), ManualEnvironment(seed=2)

    assert waits_ms(first, Attempts(5_000, first)) != waits_ms(second, Attempts(5_000, second))


def test_nothing_is_tried_again_without_a_timeout() -> None:
    assert not Attempts(0, ManualEnvironment()).wait()


def test_loops_in_loops_share_one_deadline_and_never_multiply() -> None:
    environment = ManualEnvironment()
    made: list[int] = []

    def request() -> None:
        attempts = Attempts(TIMEOUT_MS, environment)
        while True:
            made.append(1)
            if not attempts.wait():
                raise StoreUnavailableError("no answer")

    began = environment.instant()
    with ending_within(environment, TIMEOUT_MS):
        outer = Attempts(TIMEOUT_MS, environment)
        while True:
            with pytest.raises(StoreUnavailableError):
                request()
            if not outer.wait():
                break

    assert environment.since_ms(began) <= TIMEOUT_MS + 1
    assert len(made) <= 62


def test_earliest_of_several_bounds_counts_and_none_outlives_its_call() -> None:
    environment = ManualEnvironment()

    with ending_within(environment, 500), ending_within(environment, 60_000):
        attempts = Attempts(TIMEOUT_MS, environment)
        waits_ms(environment, attempts)
        assert attempts.tried_for_ms <= 500
    after = Attempts(TIMEOUT_MS, environment)

    waits_ms(environment, after)
    assert after.tried_for_ms >= TIMEOUT_MS - 1


def test_long_trying_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    environment = ManualEnvironment()

    with caplog.at_level(logging.WARNING):
        waits_ms(environment, Attempts(TIMEOUT_MS, environment))

    assert [record.message for record in caplog.records if "trying on" in record.message]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "text",
    [
        *(ANSWER.format(status) for status in (408, 409, 429, 500, 502, 503, 504)),
        ANSWER.format(BODY.format("RequestTimeout")),
        "Generic S3 error: Error getting list response body: HTTP error: request or response body error",
        "Generic S3 error: HTTP error: error sending request",
        "DeleteObjects request failed for key w/a: not done (code: InternalError)",
        "External AWS credential provider: StoreUnavailableError: no answer",
    ],
)
def test_error_passes_when_there_was_no_answer_or_the_store_says_later(text: str) -> None:
    assert passes(text)


@pytest.mark.parametrize(
    "text",
    [
        *(ANSWER.format(status) for status in (400, 401, 403, 404, 412, 416, 501)),
        ANSWER.format(BODY.format("ExpiredToken")),
        "External AWS credential provider: StorePermissionError: refused",
        "Received redirect without LOCATION\n\nDebug source:\nconnection",
        "anything else",
    ],
)
def test_error_lasts_when_the_same_request_would_fail_again(text: str) -> None:
    assert not passes(text)


@pytest.mark.parametrize(
    ("text", "less"),
    [
        (ANSWER.format(503), True),
        (ANSWER.format(429), True),
        ("DeleteObjects request failed for key w/a: (code: SlowDown)", True),
        (ANSWER.format(500), False),
        ("HTTP error: error sending request", False),
    ],
)
def test_store_asks_for_fewer_requests(text: str, less: bool) -> None:
    assert asks_for_less(text) is less


def test_obstore_goes_by_the_timeout_for_parts_and_makes_nothing_twice_without_one() -> None:
    told = obstore_retries(TIMEOUT_MS)

    assert told["retry_timeout"].total_seconds() == 120
    assert told["backoff"]["max_backoff"].total_seconds() == 5
    assert told["backoff"]["base"] > 2, "obstore's wait is chance up to this often the last one: it would hardly grow"
    assert obstore_retries(0)["max_retries"] == 0
