"""The JSON of the rows that the coordinator keeps: strict in what it reads, one spelling in what it writes.

The rules are those of PROTOCOL.md §3.4.

A row is a JSON object with ``v``.  An unknown ``v`` or field is a newer format and is refused;
what is missing or of another type is damage.  ``null`` is never written: the field is left out.
Owns how any stored JSON is read, too: what two readers could take for two things is none.
Must not know which rows there are.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from typing import Any, NoReturn

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError

ROW_FORMAT = 1
# Made once: each call of `json.dumps` that is told how to write makes another.
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
LARGEST_NUMBER = 2**63 - 1
"""Of a stored integer; its negative is the smallest."""
LONGEST_NAME_BYTES = 32_767
"""Of UTF-8; Kafka's requests hold no longer ones."""

Fields = Mapping[str, type | tuple[type, ...]]

_half_pair = re.compile("[\ud800-\udfff]").search
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    """Return the document that stored JSON says.

    Raises
    ------
    ValueError
        It is no JSON; or JSON that readers differ about: a name twice in one object, NaN or an infinite number,
        half of a surrogate pair, more nesting than can be read.
    """
    try:
        document = _document(text)
        if _SURROGATE.search(text):
            # Only escapes can say them, and pairs are letters: what can be written as UTF-8 has no half.
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return document


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"no number: {text}")


_decoder = json.JSONDecoder(object_pairs_hook=_once_each, parse_constant=_no_number)


def _document(text: str) -> Any:
    # What this format writes has no space around it: looking for some takes as long as decoding a row.
    if text[:1] == "{" and text[-1:] == "}":
        document, end = _decoder.raw_decode(text)
        if end == len(text):
            return document
    return _decoder.decode(text)


def check_stored_name(name: str, what: str) -> str:
    """Return `name` when it is one at all: as :func:`check_name`, of any length, since rows may have longer ones."""
    if not isinstance(name, str) or not name or _half_pair(name):
        raise InvalidRequestError(f"{what} must be a non-empty string of valid unicode", name=shown(name))
    return name


def check_name(name: str, what: str) -> str:
    """Return `name` when it may be given: one that can be stored and found again.

    Parameters
    ----------
    name : str
        A transactional id, a group, a batch name.
    what : str
        What the message calls it.

    Raises
    ------
    InvalidRequestError
        It is empty, no text, no valid Unicode, or too long: give another name.
    """
    if (size := len(check_stored_name(name, what).encode())) > LONGEST_NAME_BYTES:
        raise InvalidRequestError(
            f"{what} is too long; give a shorter one", name=reprlib.repr(name), bytes=size, most=LONGEST_NAME_BYTES
        )
    return name


def check_text(text: object, what: str) -> str:
    """Return `text` when it can be stored: a string of valid Unicode, which may be empty.

    Raises
    ------
    InvalidRequestError
        It is none: give another.
    """
    if not isinstance(text, str) or _half_pair(text):
        raise InvalidRequestError(f"{what} must be a string of valid unicode", found=shown(text))
    return text


def check_number(value: object, what: str, lowest: int = 0) -> int:
    """Return `value` when it is a number that may be given: an integer that can be stored.

    Parameters
    ----------
    value : object
        An offset, a time, a producer id.
    what : str
        What the message calls it.
    lowest : int
        The smallest that is one.

    Raises
    ------
    InvalidRequestError
        It is no integer, or out of bounds: 64 bits with a sign, as Kafka's are.
    """
    if type(value) is not int or not lowest <= value <= LARGEST_NUMBER:
        raise InvalidRequestError(
            f"{what} is an integer from {lowest} to 2^63 - 1; give such a number", found=shown(value)
        )
    return value


def encode_key(*parts: str) -> str:
    """Return a row's key: its parts as a JSON array, always spelt the same way."""
    return _dumps(parts)


def encode_row(fields: Mapping[str, object]) -> str:
    """Return a row's JSON: ``v``, then `fields` in their order without those that are ``None``."""
    stored = {name: value for name, value in fields.items() if value is not None}
    return _dumps({"v": ROW_FORMAT, **stored})


def decode_row(text: str, what: str, required: Fields, optional: Fields) -> dict[str, Any]:
    """Return a row's fields.

    Parameters
    ----------
    text : str
        What :func:`encode_row` wrote.
    what : str
        What the messages call the row.
    required, optional : Fields
        The type of each field; ``bool`` never passes for ``int``, and an ``int`` has 64 bits.

    Returns
    -------
    dict
        Every optional field is there; ``None`` when it was left out.

    Raises
    ------
    DamagedDataError
        It is no JSON object, or a field is missing or of another type.
    UnsupportedFormatError
        Its ``v`` or one of its fields is unknown: use a newer version of this software.
    """
    try:
        document = parse_json(text)
    except ValueError as error:
        raise DamagedDataError("a stored row is no json", row=what) from error
    if not isinstance(document, dict) or "v" not in document:
        raise DamagedDataError("a stored row is no object with a version", row=what)
    version = document.pop("v")
    if type(version) is not int or version != ROW_FORMAT:
        raise UnsupportedFormatError(
            "a row was written under a format that this version does not know: use a newer version",
            row=what,
            v=reprlib.repr(version),
            known=ROW_FORMAT,
        )
    return decode_object(document, what, required, optional)


def decode_object(document: object, what: str, required: Fields, optional: Fields) -> dict[str, Any]:
    """Return the fields of an object inside a row; like :func:`decode_row`, without ``v``.

    Raises
    ------
    DamagedDataError
        It is no object, or a field is missing or of another type.
    UnsupportedFormatError
        One of its fields is unknown: use a newer version of this software.
    """
    if not isinstance(document, dict):
        raise DamagedDataError("a stored row holds something that is no object", row=what)
    fields: dict[str, Any] = dict.fromkeys(optional)
    for name, value in document.items():
        kind: Any = required.get(name) or optional.get(name)
        if kind is None:
            raise UnsupportedFormatError(
                "a row has a field that this version does not know: use a newer version",
                row=what,
                field=reprlib.repr(name),
            )
        # Logs have very many: what is plainly right costs no call.
        if type(value) is not kind or (kind is int and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER):
            _check_type(value, kind, what, name)
        fields[name] = value
    if not required.keys() <= document.keys():
        lacking = next(name for name in required if name not in document)
        raise DamagedDataError("a stored row lacks a field", row=what, field=lacking)
    return fields


def _check_type(value: object, kind: type | tuple[type, ...], what: str, name: str) -> None:
    # Exactly: bool is a subclass of int, and `true` would pass for an epoch.
    kinds = kind if isinstance(kind, tuple) else (kind,)
    fits = type(value) in kinds
    if not fits or (isinstance(value, int) and abs(value) > LARGEST_NUMBER):
        # Of what is stored nothing is known: it may be larger than any message.
        raise DamagedDataError(
            "a stored row has a field of another type", row=what, field=name, value=reprlib.repr(value)
        )
