"""Numbers, sizes, dates and names as a page has them."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from txntable.report.page_text import (
    LONGEST_NAME,
    ago_text,
    amount_text,
    commands_text,
    count_text,
    instant_text,
    name_text,
    plain,
    size_text,
    time_text,
)

NOON_MS = 1_764_072_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (123_456_789, "123 MB"),
        (2**63, "9.22 EB"),
        (10**22, "10000 EB"),
    ],
)
def test_size_has_three_digits_and_its_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(("number", "text"), [(None, "–"), (0, "0"), (1_234_567, "1,234,567")])
def test_count_is_in_groups_of_three(number: int | None, text: str) -> None:
    assert count_text(number) == text


@pytest.mark.parametrize(
    ("found", "unit", "text"),
    [(None, "ms", "–"), (90_000, "ms", "1m30s"), (1_200, "entries", "1,200 entries")],
)
def test_amount_of_milliseconds_is_a_duration(found: int | None, unit: str, text: str) -> None:
    assert amount_text(found, unit) == text


@pytest.mark.parametrize(
    ("at_ms", "text"), [(None, "–"), (NOON_MS - 999, "now"), (NOON_MS + 5, "now"), (NOON_MS - 61_000, "1m01s ago")]
)
def test_time_since_is_in_two_units(at_ms: int | None, text: str) -> None:
    assert ago_text(at_ms, NOON_MS) == text


def test_time_of_another_day_has_its_day() -> None:
    assert time_text(NOON_MS, NOON_MS) == "12:00:00"
    assert time_text(NOON_MS - DAY_MS, NOON_MS) == "Nov 24, 12:00:00"


@pytest.mark.parametrize(("at_ms", "text"), [(2**63, "9999-12-31 23:59:59 UTC"), (-5, "1970-01-01 00:00:00 UTC")])
def test_date_beyond_all_dates_is_the_last_or_the_first(at_ms: int, text: str) -> None:
    assert instant_text(at_ms) == text


def test_name_that_is_too_long_is_cut_and_says_how_long_it_is() -> None:
    assert name_text("n" * LONGEST_NAME) == "n" * LONGEST_NAME
    assert name_text("n" * 2_000) == "n" * LONGEST_NAME + "… (2,000 characters)"


def test_command_in_words_is_marked_and_all_else_is_text() -> None:
    assert commands_text("run `a <b>`, and \u202e <i>") == "run <code>a &lt;b&gt;</code>, and \\u202e &lt;i&gt;"


def test_only_markup_stays_as_it_is() -> None:
    assert plain(Markup("<b>\u202e")) == "<b>\u202e"
    assert plain("\u202e<b>") == r"\u202e<b>"
    assert plain(None) == "–"
    assert plain(7) == "7"
