"""Numbers, sizes, dates and names as a page has them.

Owns how they are written, and that a name is no longer than people read.  Pure.  What steers the order of text is made
visible by :func:`plain`, which every value of a page goes through; HTML's own characters are the template's to escape.
"""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from txntable.admin.blocking_words import duration_text
from txntable.format.control_characters import escaped

LONGEST_NAME = 160
_NOTHING = "–"
_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")
_THOUSAND = 1000
_LATEST_MS = 253_402_300_799_999


def plain(value: object) -> object:
    """Return what a template prints for a value: markup as it is, all else as text without control characters."""
    if isinstance(value, Markup):
        return value
    return _NOTHING if value is None else escaped(str(value))


def count_text(number: int | None) -> str:
    """Return a number in groups of three digits."""
    return _NOTHING if number is None else f"{number:,}"


def size_text(size: int) -> str:
    """Return a number of bytes with three digits that count."""
    if size < _THOUSAND:
        return f"{size} B"
    value = float(size)
    for unit in _UNITS:
        value /= _THOUSAND
        # What would be rounded to a thousand is one of the next unit.
        if value < _THOUSAND - 0.5 or unit == _UNITS[-1]:
            digits = 2 if value < 10 else 1 if value < 100 else 0
            return f"{value:.{digits}f} {unit}"
    raise AssertionError("there is a last unit")


def instant_text(at_ms: int) -> str:
    """Return a date in UTC, to the second."""
    return f"{_at(at_ms):%Y-%m-%d %H:%M:%S} UTC"


def machine_text(at_ms: int) -> str:
    """Return a date as ``<time datetime>`` has it."""
    return _at(at_ms).isoformat(timespec="milliseconds")


def time_text(at_ms: int, since_ms: int) -> str:
    """Return a time of the day, with its day where it is another than that of `since_ms`."""
    at = _at(at_ms)
    return f"{at:%H:%M:%S}" if at.date() == _at(since_ms).date() else f"{at:%b %d, %H:%M:%S}"


def ago_text(at_ms: int | None, now_ms: int) -> str:
    """Return how long ago something was."""
    if at_ms is None:
        return _NOTHING
    return f"{duration_text(now_ms - at_ms)} ago" if now_ms - at_ms >= _THOUSAND else "now"


def amount_text(number: int | None, unit: str) -> str:
    """Return a number and its unit; milliseconds as a duration."""
    if number is None:
        return _NOTHING
    return duration_text(number) if unit == "ms" else f"{number:,} {unit}"


def sentence_text(words: str) -> str:
    """Return words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}."


def commands_text(words: str) -> Markup:
    """Return words in which what stands between backticks is a command."""
    parts = [str(plain(part)) for part in words.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def name_text(name: str) -> str:
    """Return a name that is at most so long as people read; how long it is is told."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}… ({len(name):,} characters)"


def _at(at_ms: int) -> datetime:
    # A record's timestamp may be later than any date that Python has.
    return datetime.fromtimestamp(min(max(at_ms, 0), _LATEST_MS) / _THOUSAND, tz=UTC)
