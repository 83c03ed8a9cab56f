"""A record in a line of text, as Kafka's console producer reads it: headers, key, value.

Owns the separators and the order of the parts.  Bytes all the way: a key or value need not be
text.  Pure; must not know of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from txntable.cli.column_value import shown
from txntable.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a line is divided.

    Attributes
    ----------
    key_separator : bytes or None
        Between key and value; ``None``: lines have no key.
    headers_delimiter : bytes or None
        Between headers and what follows them; ``None``: lines have no headers.
    headers_separator : bytes
        Between two headers.
    headers_key_separator : bytes
        Between a header's name and its value.
    null_marker : bytes or None
        What stands for null: as the headers, a header's value, the key or the value (a tombstone).

    Raises
    ------
    InvalidRequestError
        A separator is empty, or two that must be told apart are equal.
    """

    key_separator: bytes | None = None
    headers_delimiter: bytes | None = None
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None

    def __post_init__(self) -> None:
        used = {"key_separator": self.key_separator, "null_marker": self.null_marker}
        if self.headers_delimiter is not None:
            used["headers_delimiter"] = self.headers_delimiter
            used["headers_separator"] = self.headers_separator
            used["headers_key_separator"] = self.headers_key_separator
        given = {name: mark for name, mark in used.items() if mark is not None}
        for name, mark in given.items():
            if not mark or b"\n" in mark:
                raise InvalidRequestError(
                    "a separator has at least one character, and no line break", option=_typed(name)
                )
        for one, other in combinations(given, 2):
            # As in Kafka, headers and key may be divided by the same text: headers are cut off first.
            apart = "key_separator" in (one, other) and "null_marker" not in (one, other)
            if given[one] == given[other] and not apart:
                options = f"{_typed(one)},{_typed(other)}"
                raise InvalidRequestError("two options are the same text; change one", options=options)

    @property
    def divides(self) -> bool:
        """Whether a line is more than a value."""
        return any(mark is not None for mark in (self.key_separator, self.headers_delimiter, self.null_marker))

    def record(self, line: bytes) -> dict[str, Any]:
        """Return the record of a line.

        Parameters
        ----------
        line : bytes
            Without its end.

        Returns
        -------
        dict
            ``key``, ``value`` and ``headers`` as Kafka's columns hold them.

        Raises
        ------
        ValueError
            A separator is not there, or a header's name is none; the message says which.
        """
        headers = key = None
        if self.headers_delimiter is not None:
            text, line = _divided(line, self.headers_delimiter, "headers delimiter")
            headers = self._headers(text)
        if self.key_separator is not None:
            key, line = _divided(line, self.key_separator, "key separator")
        return {"key": self._unless_null(key), "value": self._unless_null(line), "headers": headers}

    def _headers(self, text: bytes) -> list[dict[str, Any]] | None:
        if text == self.null_marker:
            return None
        headers = []
        for pair in text.split(self.headers_separator):
            name, value = _divided(pair, self.headers_key_separator, "header key separator")
            if name == self.null_marker:
                raise ValueError("a header's name cannot be null")
            headers.append({"key": name.decode(), "value": self._unless_null(value)})
        return headers

    def _unless_null(self, part: bytes | None) -> bytes | None:
        return None if part == self.null_marker else part


def _typed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _divided(text: bytes, separator: bytes, name: str) -> tuple[bytes, bytes]:
    before, found, after = text.partition(separator)
    if not found:
        raise ValueError(f"no {name} {shown(separator)} in {shown(text)}")
    return before, after
